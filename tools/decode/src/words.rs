//! How does a packet read?

use std::fmt;

use apus_wire::{AckList, Body, Cutoffs, Data, Flags, Grant, Kind, Refusal, Resend};

use crate::message::Half;
use crate::packet::{Content, Packet, Quoted, Verdict};
use crate::rpc::{Links, Note};

/// A packet in words, without number, time and addresses.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    packet: &'a Packet,
    links: Links,
}

impl Packet {
    /// The packet in words: type, RPC, what it says, in brackets what is worth a second look, and in parentheses
    /// what it is linked to: `DATA rpc 6 response 0..100 of 100 [complete] (request in 5, 41.0 µs before)`.
    #[must_use]
    pub fn words(&self, links: Links) -> Words<'_> {
        Words { packet: self, links }
    }
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.packet.content {
            Content::Whole { header, body, data_len } => {
                write!(f, "{} rpc {}", body.kind(), header.sender_id.client_id())?;
                self.body(f, body, *data_len)?;
                self.linked(f)
            }
            Content::Malformed { error, header: None } => write!(f, "[malformed: {error}]"),
            Content::Malformed { error, header: Some((kind, id)) } => {
                write!(f, "{} rpc {} [malformed: {error}]", Type(*kind), id.client_id())
            }
            Content::Cut { header: None } => f.write_str("[cut short in the capture]"),
            Content::Cut { header: Some((kind, id)) } => {
                write!(f, "{} rpc {} [cut short in the capture]", Type(*kind), id.client_id())
            }
            Content::Unreachable { what, about: Quoted { from, to, header } } => {
                write!(f, "ICMP {what} unreachable")?;
                match header {
                    Some((kind, id)) => {
                        write!(
                            f,
                            ", about {} rpc {} from {from} to {to}",
                            Type(*kind),
                            id.client_id()
                        )
                    }
                    None => write!(f, ", about a packet from {from} to {to}"),
                }
            }
        }
    }
}

impl Words<'_> {
    fn body(&self, f: &mut fmt::Formatter<'_>, body: &Body<'_>, data_len: u32) -> fmt::Result {
        // Every whole packet has one; without it there is less to say, and nothing wrong.
        let Some(note) = &self.packet.note else { return Ok(()) };
        match body {
            Body::Data(data, _) => data_words(f, data, data_len, note),
            Body::Grant(grant) => grant_words(f, grant, note),
            Body::Resend(resend) => resend_words(f, resend, note),
            Body::Cutoffs(cutoffs) => cutoffs_words(f, cutoffs),
            Body::Ack(list) => ack_words(f, list),
            Body::RpcUnknown => match self.packet.verdict() {
                Some(Verdict::Refused(refusal)) => write!(f, " refused: {}", refusal_name(refusal)),
                Some(Verdict::Finished) => f.write_str(" finished"),
                None => Ok(()),
            },
            Body::NeedAck if self.packet.flags().contains(Flags::CONFIRM) => {
                f.write_str(" (does it live?)")
            }
            Body::Busy if self.packet.flags().contains(Flags::CONFIRM) => {
                f.write_str(" (it lives)")
            }
            Body::NeedAck | Body::Busy | Body::Freeze => Ok(()),
        }
    }

    /// Only what begins or ends something says to what it belongs, or lines would be long.
    fn linked(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(note) = &self.packet.note else { return Ok(()) };
        let first_of_request = match &self.packet.content {
            Content::Whole { body: Body::Data(..), data_len, .. } => {
                note.half == Half::Request && note.seen == u64::from(*data_len)
            }
            _ => false,
        };
        let mut said = Vec::new();
        if let Some((number, time)) = note.asked {
            said.push(format!("asked for in {number}, {} before", duration(time)));
        }
        if first_of_request && self.links.request.is_none() {
            said.extend(self.end());
        }
        let time = note.response_time.or(note.completion_time);
        if let (Some(request), Some(time)) = (self.links.request, time) {
            said.push(format!("request in {request}, {} before", duration(time)));
        }
        if said.is_empty() { Ok(()) } else { write!(f, " ({})", said.join("; ")) }
    }
}

impl Words<'_> {
    /// What came of a request.
    fn end(&self) -> Option<String> {
        let Links { response, refused, unreachable, .. } = self.links;
        let ends = [("response", response), ("refused", refused), ("unreachable", unreachable)];
        ends.into_iter().find_map(|(what, number)| Some(format!("{what} in {}", number?)))
    }
}

/// A type by its number.
struct Type(u8);

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Kind::from_wire(self.0) {
            Some(kind) => write!(f, "{kind}"),
            None => write!(f, "type {:#04x}", self.0),
        }
    }
}

fn data_words(f: &mut fmt::Formatter<'_>, data: &Data, data_len: u32, note: &Note) -> fmt::Result {
    let end = u64::from(data.offset) + u64::from(data_len);
    write!(f, " {} {}..{end} of {}", note.half.name(), data.offset, data.message_length)?;
    let mut remarks = Vec::new();
    if data.retransmit {
        remarks.push("retransmitted".to_owned());
    }
    if note.gap > 0 {
        remarks.push(format!("gap of {} before it", note.gap));
    }
    if note.repeated > 0 && !data.retransmit {
        remarks.push(format!("{} bytes seen before", note.repeated));
    }
    if note.beyond.is_some() {
        remarks.push("beyond what was granted".to_owned());
    }
    if let Some(length) = note.length_was {
        remarks.push(format!("length was {length}"));
    }
    if note.completes {
        remarks.push("complete".to_owned());
    }
    if remarks.is_empty() { Ok(()) } else { write!(f, " [{}]", remarks.join(", ")) }
}

fn grant_words(f: &mut fmt::Formatter<'_>, grant: &Grant, note: &Note) -> fmt::Result {
    write!(f, " {} to {}", note.half.name(), grant.offset)?;
    if let Some(length) = note.length {
        write!(f, " of {length}")?;
    }
    match note.granted {
        0 => f.write_str(" (nothing new)")?,
        new => write!(f, " (+{new})")?,
    }
    write!(f, ", level {}", grant.priority)
}

fn resend_words(f: &mut fmt::Formatter<'_>, resend: &Resend, note: &Note) -> fmt::Result {
    write!(f, " {} ", note.half.name())?;
    if resend.is_everything() {
        f.write_str("everything")?;
    } else {
        let end = u64::from(resend.offset) + u64::from(resend.length);
        write!(f, "{}..{end}", resend.offset)?;
    }
    write!(f, ", level {}", resend.priority)
}

/// From the highest level down to the one that takes everything.
fn cutoffs_words(f: &mut fmt::Formatter<'_>, cutoffs: &Cutoffs) -> fmt::Result {
    write!(f, " version {}:", cutoffs.version)?;
    let mut separator = " up to";
    for (level, length) in cutoffs.unscheduled.iter().enumerate().rev() {
        if *length == u32::MAX || level == 0 {
            return write!(f, "{separator} any length level {level}");
        }
        if *length > 0 {
            write!(f, "{separator} {length} level {level}")?;
            separator = ",";
        }
    }
    Ok(())
}

fn ack_words(f: &mut fmt::Formatter<'_>, list: &AckList) -> fmt::Result {
    let mut separator = ", and rpc";
    for ack in list.iter() {
        write!(f, "{separator} {}", ack.client_id & !1)?;
        separator = ",";
    }
    Ok(())
}

/// A reason as `docs/spec/wire.md` names it.
pub(crate) const fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Overloaded => "overloaded",
        Refusal::TooLarge => "too large",
        Refusal::NotServing => "not serving",
        Refusal::ShuttingDown => "shutting down",
        Refusal::Abandoned => "abandoned",
    }
}

/// Nanoseconds in the unit that suits them.
#[must_use]
pub fn duration(nanoseconds: i64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds.unsigned_abs() {
        0..=999_999 => format!("{:.1} µs", time / 1e3),
        1_000_000..=999_999_999 => format!("{:.3} ms", time / 1e6),
        _ => format!("{:.3} s", time / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        assert_eq!(duration(41_040), "41.0 µs");
        assert_eq!(duration(-41_040), "-41.0 µs");
        assert_eq!(duration(4_104_000), "4.104 ms");
        assert_eq!(duration(4_104_000_000), "4.104 s");
        assert_eq!(duration(i64::MIN), "-9223372036.855 s");
    }

    #[test]
    fn cutoffs_go_down_to_the_level_that_takes_everything() {
        let unscheduled = [u32::MAX, 0, 0, 0, 1_000_000, 15_000, 2800, 200];
        struct Shown(Cutoffs);
        impl fmt::Display for Shown {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                cutoffs_words(f, &self.0)
            }
        }
        let shown = Shown(Cutoffs { unscheduled, version: 1 }).to_string();
        let expected = " version 1: up to 200 level 7, 2800 level 6, 15000 level 5, 1000000 level 4, \
                        any length level 0";
        assert_eq!(shown, expected);
    }
}
