//! Packets as text, for `apus decode`.

use std::fmt;

use apus_wire::{AckList, Body, Cutoffs, Data, Flags, Grant, Kind, Refusal, Resend, SealKind};

use crate::message::MessageKind;
use crate::note::{Links, Note};
use crate::packet::{CapturedPacket, Content, QuotedPacket, Verdict};

/// Displays a packet as text, without number, time and addresses.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    packet: &'a CapturedPacket,
    links: Links,
}

impl CapturedPacket {
    /// Describes the packet: type, RPC and fields, anomalies in brackets, linked packets in
    /// parentheses. Example:
    /// `DATA rpc 6 response 0..100 of 100 [complete] (request in 5, 41.0 µs before)`.
    #[must_use]
    pub fn describe(&self, links: Links) -> Description<'_> {
        Description { packet: self, links }
    }
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.packet.content {
            Content::Whole { header, body, data_len } => {
                write!(f, "{} rpc {}", body.kind(), header.sender_id.client_id())?;
                self.write_body(f, body, *data_len)?;
                self.write_links(f)
            }
            Content::Sealed { sealed, header: (kind, id) } => match sealed.kind {
                None => {
                    let (kind, id, number) = (TypeNumber(*kind), id.client_id(), sealed.number);
                    write!(f, "{kind} rpc {id} [sealed, packet number {number}]")
                }
                Some(SealKind::Failed) => {
                    write!(f, "FAILED [handshake, cause {}]", sealed.sequence)
                }
                Some(kind) => write!(f, "{} [handshake]", seal_name(kind)),
            },
            Content::Malformed { error, header: None } => write!(f, "[malformed: {error}]"),
            Content::Malformed { error, header: Some((kind, id)) } => {
                write!(f, "{} rpc {} [malformed: {error}]", TypeNumber(*kind), id.client_id())
            }
            Content::Truncated { header: None } => f.write_str("[cut short in the capture]"),
            Content::Truncated { header: Some((kind, id)) } => {
                write!(f, "{} rpc {} [cut short in the capture]", TypeNumber(*kind), id.client_id())
            }
            Content::Unreachable { what, about: QuotedPacket { from, to, header } } => {
                write!(f, "ICMP {what} unreachable")?;
                match header {
                    Some((kind, id)) => {
                        write!(
                            f,
                            ", about {} rpc {} from {from} to {to}",
                            TypeNumber(*kind),
                            id.client_id()
                        )
                    }
                    None => write!(f, ", about a packet from {from} to {to}"),
                }
            }
        }
    }
}

impl Description<'_> {
    fn write_body(
        &self,
        f: &mut fmt::Formatter<'_>,
        body: &Body<'_>,
        data_len: u32,
    ) -> fmt::Result {
        // Every valid packet has a note; checking for `None` avoids a panic.
        let Some(note) = &self.packet.note else { return Ok(()) };
        match body {
            Body::Data(data, _) => {
                write_data(f, data, data_len, note, self.packet.is_sprayed())?;
                let answers = self.packet.flags().contains(Flags::CONFIRM);
                if answers { f.write_str(" (answers a session challenge)") } else { Ok(()) }
            }
            Body::Grant(grant) => write_grant(f, grant, note),
            Body::Resend(resend) => write_resend(f, resend, note),
            Body::Cutoffs(cutoffs) => {
                write_cutoffs(f, cutoffs)?;
                match self.packet.stated_room() {
                    Some(room) => write!(f, ", room for {room} unscheduled bytes"),
                    None => Ok(()),
                }
            }
            Body::Ack(list) => write_acks(f, list),
            Body::RpcUnknown => match self.packet.verdict() {
                Some(Verdict::Refused(refusal)) => write!(f, " refused: {}", refusal_name(refusal)),
                Some(Verdict::Finished) => f.write_str(" finished"),
                None => Ok(()),
            },
            Body::NeedAck if self.packet.flags().contains(Flags::CONFIRM) => {
                f.write_str(" (session challenge)")
            }
            Body::Busy if self.packet.flags().contains(Flags::CONFIRM) => {
                f.write_str(" (session confirmed)")
            }
            Body::NeedAck | Body::Busy | Body::Freeze => Ok(()),
        }
    }

    /// Writes links only for the first and last packets of an exchange, to keep lines short.
    fn write_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(note) = &self.packet.note else { return Ok(()) };
        let first_of_request = match &self.packet.content {
            Content::Whole { body: Body::Data(..), data_len, .. } => {
                note.message_kind == MessageKind::Request && note.seen == u64::from(*data_len)
            }
            _ => false,
        };
        let mut links = Vec::new();
        if let Some((number, time)) = note.resend {
            links.push(format!("RESEND in {number}, {} before", duration(time)));
        }
        if first_of_request && self.links.request.is_none() {
            links.extend(self.rpc_end());
        }
        let time = note.response_time.or(note.completion_time);
        if let (Some(request), Some(time)) = (self.links.request, time) {
            links.push(format!("request in {request}, {} before", duration(time)));
        }
        if links.is_empty() { Ok(()) } else { write!(f, " ({})", links.join("; ")) }
    }
}

impl Description<'_> {
    /// Returns the packet that ended the RPC of a request.
    fn rpc_end(&self) -> Option<String> {
        let Links { response, refused, unreachable, .. } = self.links;
        let ends = [("response", response), ("refused", refused), ("unreachable", unreachable)];
        ends.into_iter().find_map(|(what, number)| Some(format!("{what} in {}", number?)))
    }
}

const fn seal_name(kind: SealKind) -> &'static str {
    match kind {
        SealKind::Hello => "HELLO",
        SealKind::Finish => "FINISH",
        SealKind::Ready => "READY",
        SealKind::Retry => "RETRY",
        SealKind::NoKey => "NO_KEY",
        SealKind::Failed => "FAILED",
    }
}

/// Wire value of a packet type.
struct TypeNumber(u8);

impl fmt::Display for TypeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Kind::from_wire(self.0) {
            Some(kind) => write!(f, "{kind}"),
            None => write!(f, "type {:#04x}", self.0),
        }
    }
}

fn write_data(
    f: &mut fmt::Formatter<'_>,
    data: &Data,
    data_len: u32,
    note: &Note,
    is_sprayed: bool,
) -> fmt::Result {
    let end = u64::from(data.offset) + u64::from(data_len);
    write!(f, " {} {}..{end} of {}", note.message_kind.name(), data.offset, data.message_length)?;
    let mut remarks = Vec::new();
    if data.retransmit {
        remarks.push("retransmitted".to_owned());
    }
    if is_sprayed {
        remarks.push("sprayed".to_owned());
    }
    if let Some(bytes @ 1..) = data.waiting.bytes() {
        remarks.push(format!("{bytes} bytes wait at its sender"));
    }
    if let Some(bytes @ 1..) = data.response_limit.bytes() {
        remarks.push(format!("its response may begin with {bytes} bytes"));
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

fn write_grant(f: &mut fmt::Formatter<'_>, grant: &Grant, note: &Note) -> fmt::Result {
    write!(f, " {} to {}", note.message_kind.name(), grant.offset)?;
    if let Some(length) = note.length {
        write!(f, " of {length}")?;
    }
    match note.granted {
        0 => f.write_str(" (nothing new)")?,
        new => write!(f, " (+{new})")?,
    }
    write!(f, ", level {}", grant.priority)
}

fn write_resend(f: &mut fmt::Formatter<'_>, resend: &Resend, note: &Note) -> fmt::Result {
    write!(f, " {} ", note.message_kind.name())?;
    if resend.is_everything() {
        f.write_str("everything")?;
    } else {
        let end = u64::from(resend.offset) + u64::from(resend.length);
        write!(f, "{}..{end}", resend.offset)?;
    }
    write!(f, ", level {}", resend.priority)
}

/// Writes the cutoffs from the highest level down to the level that accepts any length.
fn write_cutoffs(f: &mut fmt::Formatter<'_>, cutoffs: &Cutoffs) -> fmt::Result {
    write!(f, " version {}:", cutoffs.version)?;
    let mut separator = " up to";
    for (level, length) in cutoffs.unscheduled.iter().enumerate().rev() {
        if *length == u32::MAX || level == 0 {
            write!(f, "{separator} any length level {level}")?;
            let is_said = level == 0 && (1..u32::MAX >> 1).contains(length);
            return if is_said { write!(f, ", unscheduled up to {length}") } else { Ok(()) };
        }
        if *length > 0 {
            write!(f, "{separator} {length} level {level}")?;
            separator = ",";
        }
    }
    Ok(())
}

fn write_acks(f: &mut fmt::Formatter<'_>, list: &AckList) -> fmt::Result {
    let mut separator = ", and rpc";
    for ack in list.iter() {
        write!(f, "{separator} {}", ack.client_id & !1)?;
        separator = ",";
    }
    Ok(())
}

/// Returns the name of a refusal, as in `docs/spec/udp-profile.md`.
pub(crate) const fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Overloaded => "overloaded",
        Refusal::TooLarge => "too large",
        Refusal::NotServing => "not serving",
        Refusal::ShuttingDown => "shutting down",
        Refusal::Abandoned => "abandoned",
        Refusal::ClientTooOld => "client too old",
        Refusal::ResponseTooLarge => "response too large",
    }
}

/// Formats nanoseconds as µs, ms or s.
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
    fn durations_have_a_readable_unit() {
        assert_eq!(duration(41_040), "41.0 µs");
        assert_eq!(duration(-41_040), "-41.0 µs");
        assert_eq!(duration(4_104_000), "4.104 ms");
        assert_eq!(duration(4_104_000_000), "4.104 s");
        assert_eq!(duration(i64::MIN), "-9223372036.855 s");
    }

    #[test]
    fn cutoffs_go_down_to_the_level_that_takes_everything() {
        let unscheduled = [u32::MAX, 0, 0, 0, 1_000_000, 15_000, 2800, 200];
        struct Displayed(Cutoffs);
        impl fmt::Display for Displayed {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_cutoffs(f, &self.0)
            }
        }
        let displayed = Displayed(Cutoffs { unscheduled, version: 1 }).to_string();
        let expected = " version 1: up to 200 level 7, 2800 level 6, 15000 level 5, 1000000 level 4, \
                        any length level 0";
        assert_eq!(displayed, expected);
        let unscheduled = [1_500, 0, 0, 0, 0, 0, 0, 0];
        let displayed = Displayed(Cutoffs { unscheduled, version: 1 }).to_string();
        assert_eq!(displayed, " version 1: up to any length level 0, unscheduled up to 1500");
    }
}
