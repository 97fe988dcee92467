//! What happened in an exchange?
//!
//! Packets are cut into exchanges: each begins with the first byte of a command. Then it is seen in which order and at what
//! distance they came: whether a second piece left before or after the first one was acknowledged, and how long
//! that took.
//!
//! The first exchange is left out. A young connection acknowledges at once what comes (up to 16 segments, until the first
//! time it answers: `TCP_MAX_QUICKACKS`), so it shows less than all others.

use super::counters::Counters;
use super::message::LENGTH;
use super::packet::{Content, Packet, kind_name};
use super::tally::STALL;
use super::watch::Seen;

/// What the exchanges of a variant have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Anatomy {
    /// Exchanges that were looked at, and those that were left out besides the first: a packet was missing, or came twice.
    pub(super) exchanges: usize,
    pub(super) irregular: usize,
    /// Packets of an exchange: all, with a piece of the command, with a piece of the reply, and with neither.
    pub(super) packets: f64,
    pub(super) command: f64,
    pub(super) reply: f64,
    pub(super) bare: f64,
    /// How the second piece of the command left, if there is one.
    pub(super) second: Option<Second>,
    /// Nanoseconds from the last piece of the command to the first of the reply.
    pub(super) to_reply: u64,
    /// Nanoseconds from the first packet to the last piece of the reply.
    pub(super) total: u64,
    /// What the kernel counted in all exchanges, the first one, too; `None` if it does not say.
    pub(super) counted: Option<Counters>,
    /// An exchange that took as long as most.
    pub(super) typical: Vec<Event>,
}

/// How the second piece of a command left. Times are medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Second {
    /// Nanoseconds after the first piece.
    pub(super) after_first: u64,
    /// Share of the exchanges in which the first piece was acknowledged before.
    pub(super) after_ack: f64,
    /// Where it was: nanoseconds from the first piece to its ACK, and from the ACK to the second piece.
    pub(super) waits: Option<(u64, u64)>,
}

impl Second {
    /// Whether it left only when the first piece was acknowledged: Nagle's algorithm.
    pub(super) fn is_held(&self) -> bool {
        self.after_ack > 0.5
    }

    /// Whether the ACK itself waited for a timer.
    pub(super) fn is_ack_delayed(&self) -> bool {
        self.is_held() && self.waits.is_some_and(|(ack, _)| ack > STALL)
    }
}

/// A packet of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Nanoseconds since the exchange began.
    pub(super) at: u64,
    pub(super) from_client: bool,
    /// Payload bytes.
    pub(super) bytes: u32,
    /// Bytes of commands that are acknowledged with it, of this exchange; only segments of the server have that.
    pub(super) acknowledged: u32,
    /// What it is, in words.
    pub(super) says: String,
}

/// What packets cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// The beginning of the connection is missing.
    NoBeginning,
    /// So many exchanges there were, and so many of them, besides the first, are as they should be.
    Missing { expected: usize, whole: usize },
}

impl std::fmt::Display for Unclear {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoBeginning => write!(formatter, "the beginning of the connection was not seen"),
            Self::Missing { expected, whole } => {
                write!(formatter, "of {expected} exchanges only {whole} were seen as a whole")
            }
        }
    }
}

impl Anatomy {
    /// Of the packets to and from the server at that port, in which there should be so many exchanges.
    pub(super) fn of(seen: &Seen, server: u16, expected: usize) -> Result<Self, Unclear> {
        let ours =
            seen.packets.iter().filter(|packet| packet.to == server || packet.from == server);
        let exchanges = cut(ours, server)?;
        let later = exchanges.into_iter().skip(1);
        let whole: Vec<Vec<Event>> = later.filter(|each| is_whole(each)).collect();
        let irregular = expected.saturating_sub(1 + whole.len());
        if whole.is_empty() || irregular > whole.len() {
            return Err(Unclear::Missing { expected, whole: whole.len() });
        }
        Ok(Self { irregular, ..Self::common(&whole, seen.counted) })
    }

    /// Exchanges that the kernel's counts are of.
    pub(super) const fn all(&self) -> usize {
        1 + self.exchanges + self.irregular
    }

    fn common(exchanges: &[Vec<Event>], counted: Option<Counters>) -> Self {
        let mean = |of: fn(&Event) -> bool| {
            let all: usize =
                exchanges.iter().map(|each| each.iter().filter(|it| of(it)).count()).sum();
            all as f64 / exchanges.len() as f64
        };
        let sections: Vec<Section> = exchanges.iter().map(|each| Section::of(each)).collect();
        let total = median(sections.iter().map(|each| each.total)).unwrap_or_default();
        let typical =
            exchanges.iter().zip(&sections).min_by_key(|(_, it)| it.total.abs_diff(total));
        Self {
            exchanges: exchanges.len(),
            irregular: 0,
            packets: mean(|_| true),
            command: mean(|it| it.from_client && it.bytes > 0),
            reply: mean(|it| !it.from_client && it.bytes > 0),
            bare: mean(|it| it.bytes == 0),
            second: second(&sections),
            to_reply: median(sections.iter().map(|each| each.to_reply)).unwrap_or_default(),
            total,
            counted,
            typical: typical.map(|(events, _)| events.clone()).unwrap_or_default(),
        }
    }
}

/// Times in one exchange.
struct Section {
    /// From the first piece of the command to the second, if there is one.
    second: Option<u64>,
    /// From the first piece to its ACK, and from there to the second piece, if it came between them.
    waits: Option<(u64, u64)>,
    to_reply: u64,
    total: u64,
}

impl Section {
    fn of(events: &[Event]) -> Self {
        let mut command =
            events.iter().enumerate().filter(|(_, it)| it.from_client && it.bytes > 0);
        let mut reply = events.iter().filter(|it| !it.from_client && it.bytes > 0);
        let (first, second) = (command.next(), command.next());
        let last = command.next_back().or(second).or(first);
        let answered = reply.next().map_or(0, |it| it.at);
        let ended = reply.next_back().map_or(answered, |it| it.at);
        let waits = first.zip(second).and_then(|((from, first), (to, second))| {
            let ack = events[from..to]
                .iter()
                .find(|it| !it.from_client && it.acknowledged >= first.bytes)?;
            Some((ack.at - first.at, second.at - ack.at))
        });
        Self {
            second: first.zip(second).map(|((_, first), (_, second))| second.at - first.at),
            waits,
            to_reply: answered.saturating_sub(last.map_or(0, |(_, it)| it.at)),
            total: ended,
        }
    }
}

fn second(sections: &[Section]) -> Option<Second> {
    let after_first = median(sections.iter().filter_map(|each| each.second))?;
    let seconds = sections.iter().filter(|each| each.second.is_some()).count();
    let waits: Vec<(u64, u64)> = sections.iter().filter_map(|each| each.waits).collect();
    let to_ack = median(waits.iter().map(|(to_ack, _)| *to_ack));
    let from_ack = median(waits.iter().map(|(_, from_ack)| *from_ack));
    let after_ack = waits.len() as f64 / seconds as f64;
    Some(Second { after_first, after_ack, waits: to_ack.zip(from_ack) })
}

/// The upper one of the two in the middle, if their number is even.
fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// A command went and its reply came, each with all of its bytes and none twice.
fn is_whole(events: &[Event]) -> bool {
    let bytes = |from_client: bool| -> u32 {
        events.iter().filter(|it| it.from_client == from_client).map(|it| it.bytes).sum()
    };
    bytes(true) == LENGTH as u32 && bytes(false) == LENGTH as u32
}

/// The packets of each exchange.
fn cut<'a>(
    packets: impl Iterator<Item = &'a Packet> + Clone,
    server: u16,
) -> Result<Vec<Vec<Event>>, Unclear> {
    let mut exchanges: Vec<(u64, Vec<Event>)> = Vec::new();
    let mut cutter = Cutter::of(packets.clone(), server)?;
    for packet in packets {
        let Some((begins, mut event)) = cutter.event(packet) else { continue };
        if begins {
            exchanges.push((packet.at, Vec::new()));
        }
        // What comes before the first command opens the connection.
        let Some((began, events)) = exchanges.last_mut() else { continue };
        event.at = packet.at.saturating_sub(*began);
        events.push(event);
    }
    Ok(exchanges.into_iter().map(|(_, events)| events).collect())
}

/// What tells where an exchange begins.
enum Cutter {
    /// Numbers of the first byte of the client, and of the next command's first; whether the connection has come to its end.
    Tcp { server: u16, first: u32, begun: u32, over: bool },
    /// The call that was seen last.
    Apus { server: u16, last: Option<u64> },
}

impl Cutter {
    fn of<'a>(mut packets: impl Iterator<Item = &'a Packet>, server: u16) -> Result<Self, Unclear> {
        let first = packets.find_map(|packet| match packet.content {
            Content::Apus { .. } => Some(Self::Apus { server, last: None }),
            Content::Tcp { sequence, opens: true, .. } if packet.to == server => {
                let first = sequence.wrapping_add(1);
                Some(Self::Tcp { server, first, begun: 0, over: false })
            }
            Content::Tcp { .. } => None,
        });
        first.ok_or(Unclear::NoBeginning)
    }

    /// What a packet is, and whether an exchange begins with it; `None` if it belongs to none.
    fn event(&mut self, packet: &Packet) -> Option<(bool, Event)> {
        match (self, packet.content) {
            (
                Self::Tcp { server, first, begun, over },
                Content::Tcp { sequence, acknowledged, bytes, opens, ends },
            ) => {
                *over |= ends;
                if opens || *over {
                    return None;
                }
                let from_client = packet.to == *server;
                // What was sent already has come twice.
                let offset = sequence.wrapping_sub(*first);
                let new = offset >= *begun && offset.is_multiple_of(LENGTH as u32);
                let begins = from_client && bytes > 0 && new;
                if begins {
                    *begun = offset + LENGTH as u32;
                }
                // Of this exchange: what was acknowledged before it counts for nothing.
                let before = begun.saturating_sub(LENGTH as u32);
                let acknowledged = acknowledged.wrapping_sub(*first).saturating_sub(before);
                let acknowledged = if from_client { 0 } else { acknowledged };
                let says = match bytes {
                    0 => "ACK".to_owned(),
                    bytes => format!("{bytes} bytes"),
                };
                Some((begins, Event { at: 0, from_client, bytes, acknowledged, says }))
            }
            (Self::Apus { server, last }, Content::Apus { kind, call, bytes }) => {
                let from_client = packet.to == *server;
                let begins = from_client && bytes > 0 && *last != Some(call);
                if begins {
                    *last = Some(call);
                }
                let says = match bytes {
                    0 => kind_name(kind).to_owned(),
                    bytes => format!("{}, {bytes} bytes", kind_name(kind)),
                };
                Some((begins, Event { at: 0, from_client, bytes, acknowledged: 0, says }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod made_up {
    use super::*;

    pub(in crate::small_writes) const SERVER: u16 = 4_000;
    const CLIENT: u16 = 40_000;
    /// So near to the end that numbers begin anew.
    const FIRST: u32 = u32::MAX - 100;

    /// Who sends what, and how many microseconds after the packet before: bytes, or what it acknowledges of the command.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::small_writes) enum Made {
        Client(u64, u32),
        Server(u64, u32),
        Ack(u64, u32),
    }

    /// An exchange as it goes with Nagle's algorithm and a delayed ACK, over so many microseconds.
    pub(in crate::small_writes) fn stalled(wait: u64) -> Vec<Made> {
        use Made::{Ack, Client, Server};
        vec![Client(10, 4), Ack(wait, 4), Client(6, 60), Server(9, 64)]
    }

    /// A connection with these exchanges, after a first one in which nobody waits.
    pub(in crate::small_writes) fn tcp(exchanges: &[Vec<Made>]) -> Seen {
        let mut at = 1_700_000_000_000_000_000;
        let mut packets = Vec::new();
        let packet = |at, from_client, sequence, acknowledged, bytes, opens, ends| {
            let (from, to) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
            Packet {
                at,
                from,
                to,
                content: Content::Tcp { sequence, acknowledged, bytes, opens, ends },
            }
        };
        let (mut ours, mut theirs) = (FIRST.wrapping_add(1), 5_001_u32);
        packets.push(packet(at, true, FIRST, 0, 0, true, false));
        packets.push(packet(at + 1, false, 5_000, ours, 0, true, false));
        packets.push(packet(at + 2, true, ours, theirs, 0, false, false));
        for exchange in [stalled(5)].iter().chain(exchanges) {
            let began = ours;
            for made in exchange {
                let (Made::Client(after, _) | Made::Server(after, _) | Made::Ack(after, _)) = made;
                at += after * 1_000;
                match *made {
                    Made::Client(_, bytes) => {
                        packets.push(packet(at, true, ours, theirs, bytes, false, false));
                        ours = ours.wrapping_add(bytes);
                    }
                    Made::Server(_, bytes) => {
                        packets.push(packet(at, false, theirs, ours, bytes, false, false));
                        theirs = theirs.wrapping_add(bytes);
                    }
                    Made::Ack(_, bytes) => {
                        let acknowledged = began.wrapping_add(bytes);
                        packets.push(packet(at, false, theirs, acknowledged, 0, false, false));
                    }
                }
            }
        }
        packets.push(packet(at + 5, true, ours, theirs, 0, false, true));
        packets.push(packet(at + 6, false, theirs, ours.wrapping_add(1), 0, false, false));
        let delayed_acks = exchanges.len() as u64;
        Seen { packets, counted: Some(Counters { delayed_acks, segments: 9 }) }
    }

    /// So many calls of apus, over in 6 us each.
    pub(in crate::small_writes) fn apus(calls: u64) -> Seen {
        let data = |at, from, to, call| {
            let content = Content::Apus { kind: 0x10, call, bytes: 64 };
            Packet { at, from, to, content }
        };
        let pair = |call: u64| {
            let at = call * 10_000;
            [data(at, CLIENT, SERVER, 2 * call), data(at + 6_000, SERVER, CLIENT, 2 * call)]
        };
        let mut packets: Vec<Packet> = (0..calls).flat_map(pair).collect();
        let content = Content::Apus { kind: 0x18, call: 0, bytes: 0 };
        packets.push(Packet { at: calls * 10_000, from: CLIENT, to: SERVER, content });
        Seen { packets, counted: None }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::Made::{Ack, Client, Server};
    use super::made_up::{SERVER, apus, stalled, tcp};
    use super::*;

    #[test]
    fn who_waits_for_an_acknowledgement_is_seen_to() {
        let seen = tcp(&vec![stalled(44_000); 3]);
        let anatomy = Anatomy::of(&seen, SERVER, 4).unwrap();
        assert_eq!((anatomy.exchanges, anatomy.packets), (3, 4.0), "the first one does not count");
        assert_eq!((anatomy.command, anatomy.reply, anatomy.bare), (2.0, 1.0, 1.0));
        let second = anatomy.second.unwrap();
        assert_eq!((second.after_first, second.after_ack), (44_006_000, 1.0));
        assert_eq!(second.waits, Some((44_000_000, 6_000)));
        assert!(second.is_held() && second.is_ack_delayed());
        assert_eq!((anatomy.to_reply, anatomy.total), (9_000, 44_015_000));
        let says: Vec<&str> = anatomy.typical.iter().map(|event| &event.says[..]).collect();
        assert_eq!(says, ["4 bytes", "ACK", "60 bytes", "64 bytes"]);
        assert_eq!(anatomy.typical[1].acknowledged, 4);
    }

    #[test]
    fn an_acknowledgement_that_comes_at_once_was_waited_for_all_the_same() {
        let anatomy = Anatomy::of(&tcp(&vec![stalled(7); 3]), SERVER, 4).unwrap();
        let second = anatomy.second.unwrap();
        assert!(second.is_held() && !second.is_ack_delayed());
    }

    #[test]
    fn a_second_piece_that_does_not_wait_is_told_from_one_that_does() {
        let free = vec![Client(10, 4), Client(3, 60), Ack(2, 64), Server(9, 64)];
        let anatomy = Anatomy::of(&tcp(&vec![free; 3]), SERVER, 4).unwrap();
        let second = anatomy.second.unwrap();
        assert_eq!((second.after_first, second.after_ack, second.waits), (3_000, 0.0, None));
        assert!(!second.is_held() && !second.is_ack_delayed());
        // What acknowledges the exchange before does not acknowledge this one.
        let stale = vec![Client(10, 4), Ack(1, 0), Client(3, 60), Server(9, 64)];
        let anatomy = Anatomy::of(&tcp(&vec![stale; 3]), SERVER, 4).unwrap();
        assert_eq!(anatomy.second.unwrap().after_ack, 0.0);
    }

    #[test]
    fn a_command_in_one_piece_has_no_second() {
        let whole = vec![Client(10, 64), Server(9, 64)];
        let anatomy = Anatomy::of(&tcp(&vec![whole; 2]), SERVER, 3).unwrap();
        assert_eq!((anatomy.second, anatomy.packets, anatomy.bare), (None, 2.0, 0.0));
    }

    #[test]
    fn calls_of_apus_are_told_apart_by_their_numbers() {
        let anatomy = Anatomy::of(&apus(5), SERVER, 5).unwrap();
        assert_eq!((anatomy.exchanges, anatomy.command, anatomy.reply), (4, 1.0, 1.0));
        assert_eq!((anatomy.bare, anatomy.total, anatomy.second), (0.25, 6_000, None));
        assert_eq!(anatomy.typical[0].says, "DATA, 64 bytes");
    }

    #[test]
    fn what_was_not_seen_as_a_whole_is_not_explained() {
        let mut seen = tcp(&vec![stalled(7); 3]);
        // Three open the connection, four are the first exchange; then comes the first piece of the second.
        let again = seen.packets[8];
        assert!(matches!(again.content, Content::Tcp { bytes: 0, .. }), "an ACK");
        let again = seen.packets[7];
        seen.packets.insert(9, again);
        let anatomy = Anatomy::of(&seen, SERVER, 4).unwrap();
        assert_eq!((anatomy.exchanges, anatomy.irregular), (2, 1), "one came twice");
        seen.packets.drain(12..14);
        let missing = Err(Unclear::Missing { expected: 4, whole: 1 });
        assert_eq!(Anatomy::of(&seen, SERVER, 4).map(drop), missing);
        assert_eq!(Anatomy::of(&seen, SERVER + 1, 4).map(drop), Err(Unclear::NoBeginning));
        let few = tcp(&[]);
        let error = Anatomy::of(&few, SERVER, 4).unwrap_err();
        assert_eq!(error.to_string(), "of 4 exchanges only 0 were seen as a whole");
    }
}
