//! Event log: the events before a violation.
//!
//! An ordinary run is not recorded. A run with a violation is repeated, and the events of the calls
//! concerned are recorded then; the same seed gives the same run.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use apus_wire::{Body, Flags};

use super::observation::{CallId, HostEvent, Observation, WirePacket};

/// Maximum number of lines per call; the latest lines are kept.
const LINES: usize = 40;

/// Last events of some calls, or of the whole run.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// Numbered lines for each call, or for the whole run.
    lines: BTreeMap<Option<CallId>, VecDeque<(u64, String)>>,
    number: u64,
}

impl EventLog {
    /// Creates a log for these calls, or for the whole run if the list is empty.
    pub(crate) fn of(calls: &[CallId]) -> Self {
        let mut lines: BTreeMap<_, _> =
            calls.iter().map(|call| (Some(*call), VecDeque::new())).collect();
        if lines.is_empty() {
            lines.insert(None, VecDeque::new());
        }
        Self { lines, number: 0 }
    }

    /// Records an event if it belongs to one of the calls.
    pub(crate) fn observe(&mut self, observation: &Observation<'_>) {
        let call = if self.lines.contains_key(&None) { None } else { call_of(&observation.event) };
        let Some(lines) = self.lines.get_mut(&call) else { return };
        if lines.len() == LINES {
            lines.pop_front();
        }
        self.number += 1;
        lines.push_back((self.number, line(observation)));
    }

    /// Returns the lines, the oldest first.
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.lines.values().flatten().collect();
        lines.sort_unstable();
        lines.into_iter().map(|(_, line)| line.clone()).collect()
    }
}

const fn call_of(event: &HostEvent<'_>) -> Option<CallId> {
    match event {
        HostEvent::Waiting(call)
        | HostEvent::Called(call)
        | HostEvent::Cancelled(call)
        | HostEvent::Replied(call)
        | HostEvent::Abandoned(call)
        | HostEvent::Responded(call, _)
        | HostEvent::Failed(call, _) => Some(*call),
        HostEvent::Requested(call, _) => *call,
        HostEvent::Sent(wire) | HostEvent::Received(wire) | HostEvent::Forged(wire) => wire.call,
        HostEvent::Crashed | HostEvent::Served(_) | HostEvent::Frozen(_) => None,
    }
}

fn line(observation: &Observation<'_>) -> String {
    let mut line = format!("{:>14} ns  host {:<2}  ", observation.at, observation.host);
    let written = match &observation.event {
        HostEvent::Waiting(call) => write!(line, "call {call} waits for room"),
        HostEvent::Called(call) => write!(line, "call {call} is made"),
        HostEvent::Cancelled(call) => write!(line, "call {call} is cancelled"),
        HostEvent::Requested(call, bytes) => {
            write!(line, "request of {call:?}, {} bytes", bytes.len())
        }
        HostEvent::Replied(call) => write!(line, "reply to call {call}"),
        HostEvent::Abandoned(call) => write!(line, "request of call {call} is abandoned"),
        HostEvent::Responded(call, bytes) => {
            write!(line, "response to call {call}, {} bytes", bytes.len())
        }
        HostEvent::Failed(call, error) => write!(line, "call {call} fails: {error}"),
        HostEvent::Crashed => write!(line, "crashes"),
        HostEvent::Served(peer) => write!(line, "request of the hostile host, address {peer:#x}"),
        HostEvent::Frozen(peer) => write!(line, "host {peer} asks for the time trace"),
        HostEvent::Forged(wire) => write!(line, "<- forged, as {:<2} {}", wire.peer, packet(wire)),
        HostEvent::Sent(wire) => write!(line, "-> {:<2} {}", wire.peer, packet(wire)),
        HostEvent::Received(wire) => write!(line, "<- {:<2} {}", wire.peer, packet(wire)),
    };
    written.expect("writing to a string succeeds");
    line
}

fn packet(wire: &WirePacket<'_>) -> String {
    let packet = wire.packet;
    let call = wire.call.map_or_else(|| "?".to_owned(), |call| call.to_string());
    let mut text = format!("{} of {:?}, call {call}", packet.body.kind(), wire.sender);
    let written = match &packet.body {
        Body::Data(data, payload) => {
            let again = if data.retransmit { " retransmitted" } else { "" };
            let end = data.offset as usize + payload.len();
            write!(
                text,
                " {}..{end} of {}{again}, incoming {}",
                data.offset, data.message_length, data.incoming
            )
        }
        Body::Grant(grant) => write!(text, " up to {}, level {}", grant.offset, grant.priority),
        Body::Resend(resend) => write!(text, " {}..{}", resend.offset, resend.end()),
        Body::Ack(list) => write!(text, " and {} more", list.len()),
        _ => Ok(()),
    };
    written.expect("writing to a string succeeds");
    if let Some(fields) = packet.header.udp() {
        let of = if fields.flags.contains(Flags::SESSION) { "session" } else { "incarnation" };
        text += &format!(" ({of} {:08x}", fields.incarnation);
        for (flag, name) in [
            (Flags::CONFIRM, "confirm"),
            (Flags::FINISHED, "finished"),
            (Flags::REFUSED, "refused"),
        ] {
            if fields.flags.contains(flag) {
                text += &format!(", {name}");
            }
        }
        text.push(')');
    }
    text
}
