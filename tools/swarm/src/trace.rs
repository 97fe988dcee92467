//! What happened before a promise was broken?
//!
//! Nothing is written down in an ordinary run: a run that breaks a promise is repeated, and what concerns the
//! call in question is written down then. The same seed gives the same run.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use apus_wire::{Body, Flags};

use super::seen::{CallId, Seen, What, Wire};

/// Lines that are kept for each call: the last ones.
const LINES: usize = 40;

/// The last things that concern some calls, or anything at all.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Lines with their numbers, for each call; or for everything.
    lines: BTreeMap<Option<CallId>, VecDeque<(u64, String)>>,
    number: u64,
}

impl Trace {
    /// Of these calls, or of everything if there are none.
    pub(crate) fn of(calls: &[CallId]) -> Self {
        let mut lines: BTreeMap<_, _> =
            calls.iter().map(|call| (Some(*call), VecDeque::new())).collect();
        if lines.is_empty() {
            lines.insert(None, VecDeque::new());
        }
        Self { lines, number: 0 }
    }

    /// Notes what was seen, if it concerns the calls.
    pub(crate) fn see(&mut self, seen: &Seen<'_>) {
        let call = if self.lines.contains_key(&None) { None } else { call_of(&seen.what) };
        let Some(lines) = self.lines.get_mut(&call) else { return };
        if lines.len() == LINES {
            lines.pop_front();
        }
        self.number += 1;
        lines.push_back((self.number, line(seen)));
    }

    /// What was noted, oldest first.
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.lines.values().flatten().collect();
        lines.sort_unstable();
        lines.into_iter().map(|(_, line)| line.clone()).collect()
    }
}

const fn call_of(what: &What<'_>) -> Option<CallId> {
    match what {
        What::Waiting(call)
        | What::Called(call)
        | What::Cancelled(call)
        | What::Replied(call)
        | What::Abandoned(call)
        | What::Responded(call, _)
        | What::Failed(call, _) => Some(*call),
        What::Requested(call, _) => *call,
        What::Sent(wire) | What::Received(wire) => wire.call,
        What::Crashed => None,
    }
}

fn line(seen: &Seen<'_>) -> String {
    let mut line = format!("{:>14} ns  host {:<2}  ", seen.at, seen.host);
    let written = match &seen.what {
        What::Waiting(call) => write!(line, "call {call} waits for room"),
        What::Called(call) => write!(line, "call {call} is made"),
        What::Cancelled(call) => write!(line, "call {call} is cancelled"),
        What::Requested(call, bytes) => write!(line, "request of {call:?}, {} bytes", bytes.len()),
        What::Replied(call) => write!(line, "reply to call {call}"),
        What::Abandoned(call) => write!(line, "request of call {call} is let go"),
        What::Responded(call, bytes) => {
            write!(line, "response to call {call}, {} bytes", bytes.len())
        }
        What::Failed(call, error) => write!(line, "call {call} fails: {error}"),
        What::Crashed => write!(line, "dies"),
        What::Sent(wire) => write!(line, "-> {:<2} {}", wire.peer, packet(wire)),
        What::Received(wire) => write!(line, "<- {:<2} {}", wire.peer, packet(wire)),
    };
    written.expect("texts take everything");
    line
}

fn packet(wire: &Wire<'_>) -> String {
    let packet = wire.packet;
    let call = wire.call.map_or_else(|| "?".to_owned(), |call| call.to_string());
    let mut text = format!("{} of {:?}, call {call}", packet.body.kind(), wire.sender);
    let written = match &packet.body {
        Body::Data(data, payload) => {
            let again = if data.retransmit { " again" } else { "" };
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
    written.expect("texts take everything");
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
