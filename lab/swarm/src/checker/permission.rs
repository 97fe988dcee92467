//! Permission checker: only unscheduled and granted bytes are sent.
//!
//! Requirements GRANT-9, PRIO-1, PRIO-2, SEND-7, BAD-7. A packet that starts below the limit may be
//! sent as a whole, but no packet crosses the unscheduled limit. Bytes are sent in order and only
//! once, except for retransmissions, which repeat sent bytes. A request starts over when it
//! continues in another session.

use apus_wire::{Body, Data, EVERYTHING, Role};

use super::contract::Checker;
use super::order::end;
use super::session::session;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::scenario::max_unscheduled;
use crate::violation::{Violation, ViolationKind};

/// Outgoing messages of all calls.
#[derive(Debug)]
pub(crate) struct Permission {
    /// Request and response of each call.
    messages: Vec<[Outgoing; 2]>,
    max_unscheduled: u64,
}

/// A message, as its sender may see it.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    /// Announced unscheduled bytes; `None` before the first packet.
    unscheduled: Option<u32>,
    /// End of the bytes that were granted, or requested by RESEND.
    limit: u32,
    /// End of the bytes that were sent.
    sent: u32,
    /// The session of the last packet, if it had one.
    session: Option<u64>,
}

impl Permission {
    pub(crate) fn new(directory: &Directory) -> Self {
        let max_unscheduled = max_unscheduled(&directory.scenario.config);
        let messages = vec![Default::default(); directory.scenario.calls.len()];
        Self { messages, max_unscheduled }
    }

    fn message(&mut self, call: CallId, sender: Role) -> &mut Outgoing {
        &mut self.messages[call as usize][sender as usize]
    }

    fn sent(
        &mut self,
        call: CallId,
        wire: &WirePacket<'_>,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let most = self.max_unscheduled;
        let message = self.message(call, wire.sender);
        let session = session(wire.packet);
        if data.offset == 0 && session != message.session {
            // AMO-1: a server that offers a session has kept no state.
            *message = Outgoing { sent: 0, limit: 0, session, ..*message };
        }
        let before = *message;
        // An empty message needs no permission.
        let incoming = if data.message_length == 0 { 1 } else { data.incoming };
        let unscheduled = *message.unscheduled.get_or_insert(incoming);
        let (start, end) = (data.offset, end(data, payload));
        let allowed = if data.retransmit {
            end <= message.sent && incoming <= unscheduled.max(message.sent)
        } else {
            message.sent = end;
            start == before.sent
                && incoming == unscheduled
                && u64::from(unscheduled) <= most
                && start < unscheduled.max(message.limit)
                && (start >= unscheduled || end <= unscheduled)
        };
        Violation::unless(allowed, ViolationKind::Permission, call, || {
            let expected = format!(
                "the {:?} of call {call} sends what is permitted: {before:?}, at most {most} unscheduled",
                wire.sender
            );
            let again = if data.retransmit { " as a retransmission" } else { "" };
            (expected, format!("it sends {start}..{end}{again}, announcing {}", data.incoming))
        })
    }

    /// Applies a received packet that permits sending more of `call`.
    fn received(&mut self, call: CallId, wire: &WirePacket<'_>) {
        let limit = match &wire.packet.body {
            Body::Grant(grant) => grant.offset,
            Body::Resend(resend) if resend.length != EVERYTHING => resend.end(),
            _ => return,
        };
        let message = self.message(call, wire.sender.peer());
        message.limit = message.limit.max(limit);
    }
}

impl Checker for Permission {
    fn observe(
        &mut self,
        _directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match &observation.event {
            // A restarted server sends another response.
            HostEvent::Replied(call) => *self.message(*call, Role::Server) = Outgoing::default(),
            HostEvent::Received(wire @ WirePacket { call: Some(call), .. }) => {
                self.received(*call, wire);
            }
            HostEvent::Sent(wire @ WirePacket { call: Some(call), .. }) => {
                if let Body::Data(data, payload) = &wire.packet.body {
                    self.sent(*call, wire, data, payload)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
