//! Is anything sent beyond what is unscheduled or granted?
//!
//! Requirements GRANT-9, PRIO-1, PRIO-2, SEND-7, BAD-7. A packet that starts below the limit may leave whole,
//! but none crosses the unscheduled limit; bytes leave for the first time once and in order, and what is sent
//! again has left before.

use apus_wire::{Body, Data, EVERYTHING, Role};

use super::Checker;
use crate::directory::Directory;
use crate::scenario::most_unscheduled;
use crate::seen::{CallId, Seen, What, Wire};
use crate::violation::{Kind, Violation};

/// The outgoing messages of all calls.
#[derive(Debug)]
pub(crate) struct Permission {
    /// Request and response of each call.
    messages: Vec<[Outgoing; 2]>,
    most_unscheduled: u64,
}

/// A message, as its sender may know it.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    /// What it announced as unscheduled; `None` before its first packet.
    unscheduled: Option<u32>,
    /// Up to where it was granted, or asked for.
    limit: u32,
    /// Up to where it has left.
    sent: u32,
}

impl Permission {
    pub(crate) fn new(directory: &Directory) -> Self {
        let most_unscheduled = most_unscheduled(&directory.scenario.config);
        let messages = vec![Default::default(); directory.scenario.calls.len()];
        Self { messages, most_unscheduled }
    }

    fn message(&mut self, call: CallId, sender: Role) -> &mut Outgoing {
        &mut self.messages[call as usize][sender as usize]
    }

    fn sent(
        &mut self,
        call: CallId,
        wire: &Wire<'_>,
        data: &Data,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let most = self.most_unscheduled;
        let message = self.message(call, wire.sender);
        let before = *message;
        let unscheduled = *message.unscheduled.get_or_insert(data.incoming);
        let (start, end) = (data.offset, data.offset + payload.len() as u32);
        let allowed = if data.retransmit {
            end <= message.sent && data.incoming <= unscheduled.max(message.sent)
        } else {
            message.sent = end;
            start == before.sent
                && data.incoming == unscheduled
                && u64::from(unscheduled) <= most
                && start < unscheduled.max(message.limit)
                && (start >= unscheduled || end <= unscheduled)
        };
        Violation::unless(allowed, Kind::Permission, call, || {
            let expected = format!(
                "the {:?} of call {call} sends what may leave: {before:?}, at most {most} unscheduled",
                wire.sender
            );
            let again = if data.retransmit { " again" } else { "" };
            (expected, format!("it sends {start}..{end}{again}, announcing {}", data.incoming))
        })
    }

    /// A packet that allows the other end of `call` more.
    fn received(&mut self, call: CallId, wire: &Wire<'_>) {
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
    fn see(&mut self, _directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        match &seen.what {
            // A server that has lost its memory makes another response.
            What::Replied(call) => *self.message(*call, Role::Server) = Outgoing::default(),
            What::Received(wire @ Wire { call: Some(call), .. }) => self.received(*call, wire),
            What::Sent(wire @ Wire { call: Some(call), .. }) => {
                if let Body::Data(data, payload) = &wire.packet.body {
                    self.sent(*call, wire, data, payload)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
