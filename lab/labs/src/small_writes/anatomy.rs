//! The anatomy of an exchange: its packets, and the waits of its sides.
//!
//! The order and the distances of the packets show whether a second piece left before or after the
//! first one was acknowledged, and how long that took.
//!
//! The first exchange is left out. A new connection acknowledges immediately (up to 16 segments,
//! until its first reply: `TCP_MAX_QUICKACKS`), so it is not representative.

use super::counters::Counters;
use super::cut::{CapturedEvent, cut, is_whole};
use super::tally::STALL;
use super::watch::Captured;

/// The common properties of the exchanges of a variant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Anatomy {
    /// Exchanges that were examined.
    pub(super) exchanges: usize,
    /// Exchanges that were left out in addition to the first: a packet was missing or duplicated.
    pub(super) irregular: usize,
    /// Packets of an exchange: all, with a piece of the command, with a piece of the reply, and
    /// with neither.
    pub(super) packets: f64,
    pub(super) command: f64,
    pub(super) reply: f64,
    pub(super) bare: f64,
    /// The sending of the second piece of the command, if there is one.
    pub(super) second: Option<Second>,
    /// Nanoseconds from the last piece of the command to the first of the reply.
    pub(super) to_reply: u64,
    /// Nanoseconds from the first packet to the last piece of the reply.
    pub(super) total: u64,
    /// Counters of the kernel over all exchanges including the first; `None` if it has none.
    pub(super) counted: Option<Counters>,
    /// An exchange of median duration.
    pub(super) typical: Vec<CapturedEvent>,
}

/// The sending of the second piece of a command. Times are medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Second {
    /// Nanoseconds after the first piece.
    pub(super) after_first: u64,
    /// Share of the exchanges whose first piece was acknowledged before.
    pub(super) after_ack: f64,
    /// Nanoseconds from the first piece to its ACK, and from the ACK to the second piece.
    pub(super) waits: Option<(u64, u64)>,
}

impl Second {
    /// Returns whether Nagle's algorithm held it until the first piece was acknowledged.
    pub(super) fn is_held(&self) -> bool {
        self.after_ack > 0.5
    }

    /// Returns whether the ACK itself waited for a timer.
    pub(super) fn is_ack_delayed(&self) -> bool {
        self.is_held() && self.waits.is_some_and(|(ack, _)| ack > STALL)
    }
}

/// Why packets have no anatomy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// The start of the connection is missing.
    NoBeginning,
    /// Only `whole` of `expected` exchanges, without the first, are complete.
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
    /// Returns the anatomy of the packets to and from the server at port `server`, which should be
    /// `expected` exchanges.
    pub(super) fn of(seen: &Captured, server: u16, expected: usize) -> Result<Self, Unclear> {
        let ours =
            seen.packets.iter().filter(|packet| packet.to == server || packet.from == server);
        let exchanges = cut(ours, server).ok_or(Unclear::NoBeginning)?;
        let later = exchanges.into_iter().skip(1);
        let whole: Vec<Vec<CapturedEvent>> = later.filter(|each| is_whole(each)).collect();
        let irregular = expected.saturating_sub(1 + whole.len());
        if whole.is_empty() || irregular > whole.len() {
            return Err(Unclear::Missing { expected, whole: whole.len() });
        }
        Ok(Self { irregular, ..Self::common(&whole, seen.counted) })
    }

    /// Returns the number of exchanges that the kernel's counters cover.
    pub(super) const fn all(&self) -> usize {
        1 + self.exchanges + self.irregular
    }

    fn common(exchanges: &[Vec<CapturedEvent>], counted: Option<Counters>) -> Self {
        let mean = |of: fn(&CapturedEvent) -> bool| {
            let all: usize =
                exchanges.iter().map(|each| each.iter().filter(|it| of(it)).count()).sum();
            all as f64 / exchanges.len() as f64
        };
        let times: Vec<ExchangeTimes> =
            exchanges.iter().map(|each| ExchangeTimes::of(each)).collect();
        let total = median(times.iter().map(|each| each.total)).unwrap_or_default();
        let typical = exchanges.iter().zip(&times).min_by_key(|(_, it)| it.total.abs_diff(total));
        Self {
            exchanges: exchanges.len(),
            irregular: 0,
            packets: mean(|_| true),
            command: mean(|it| it.from_client && it.bytes > 0),
            reply: mean(|it| !it.from_client && it.bytes > 0),
            bare: mean(|it| it.bytes == 0),
            second: second(&times),
            to_reply: median(times.iter().map(|each| each.to_reply)).unwrap_or_default(),
            total,
            counted,
            typical: typical.map(|(events, _)| events.clone()).unwrap_or_default(),
        }
    }
}

/// Times in one exchange.
struct ExchangeTimes {
    /// From the first piece of the command to the second, if there is one.
    second: Option<u64>,
    /// From the first piece to its ACK, and from the ACK to the second piece, if the ACK arrived
    /// between them.
    waits: Option<(u64, u64)>,
    to_reply: u64,
    total: u64,
}

impl ExchangeTimes {
    fn of(events: &[CapturedEvent]) -> Self {
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

fn second(times: &[ExchangeTimes]) -> Option<Second> {
    let after_first = median(times.iter().filter_map(|each| each.second))?;
    let seconds = times.iter().filter(|each| each.second.is_some()).count();
    let waits: Vec<(u64, u64)> = times.iter().filter_map(|each| each.waits).collect();
    let to_ack = median(waits.iter().map(|(to_ack, _)| *to_ack));
    let from_ack = median(waits.iter().map(|(_, from_ack)| *from_ack));
    let after_ack = waits.len() as f64 / seconds as f64;
    Some(Second { after_first, after_ack, waits: to_ack.zip(from_ack) })
}

/// Returns the median; the upper one of two.
fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::packet::Content;
    use super::super::sample_packets::Made::{Ack, Client, Server};
    use super::super::sample_packets::{SERVER, apus, stalled, tcp};
    use super::*;

    #[test]
    fn a_wait_for_an_acknowledgement_is_recognised() {
        let seen = tcp(&vec![stalled(44_000); 3]);
        let anatomy = Anatomy::of(&seen, SERVER, 4).unwrap();
        assert_eq!(
            (anatomy.exchanges, anatomy.packets),
            (3, 4.0),
            "the first exchange does not count"
        );
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
    fn a_prompt_acknowledgement_was_waited_for_as_well() {
        let anatomy = Anatomy::of(&tcp(&vec![stalled(7); 3]), SERVER, 4).unwrap();
        let second = anatomy.second.unwrap();
        assert!(second.is_held() && !second.is_ack_delayed());
    }

    #[test]
    fn a_second_piece_that_does_not_wait_is_recognised() {
        let free = vec![Client(10, 4), Client(3, 60), Ack(2, 64), Server(9, 64)];
        let anatomy = Anatomy::of(&tcp(&vec![free; 3]), SERVER, 4).unwrap();
        let second = anatomy.second.unwrap();
        assert_eq!((second.after_first, second.after_ack, second.waits), (3_000, 0.0, None));
        assert!(!second.is_held() && !second.is_ack_delayed());
        // An ACK of the previous exchange does not acknowledge this one.
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
    fn calls_of_apus_are_distinguished_by_their_numbers() {
        let anatomy = Anatomy::of(&apus(5), SERVER, 5).unwrap();
        assert_eq!((anatomy.exchanges, anatomy.command, anatomy.reply), (4, 1.0, 1.0));
        assert_eq!((anatomy.bare, anatomy.total, anatomy.second), (0.25, 6_000, None));
        assert_eq!(anatomy.typical[0].says, "DATA, 64 bytes");
    }

    #[test]
    fn incomplete_exchanges_are_not_explained() {
        let mut seen = tcp(&vec![stalled(7); 3]);
        // Three packets open the connection, four are the first exchange; the next is the first
        // piece of the second.
        let again = seen.packets[8];
        assert!(matches!(again.content, Content::Tcp { bytes: 0, .. }), "an ACK");
        let again = seen.packets[7];
        seen.packets.insert(9, again);
        let anatomy = Anatomy::of(&seen, SERVER, 4).unwrap();
        assert_eq!((anatomy.exchanges, anatomy.irregular), (2, 1), "a duplicate");
        seen.packets.drain(12..14);
        let missing = Err(Unclear::Missing { expected: 4, whole: 1 });
        assert_eq!(Anatomy::of(&seen, SERVER, 4).map(drop), missing);
        assert_eq!(Anatomy::of(&seen, SERVER + 1, 4).map(drop), Err(Unclear::NoBeginning));
        let few = tcp(&[]);
        let error = Anatomy::of(&few, SERVER, 4).unwrap_err();
        assert_eq!(error.to_string(), "of 4 exchanges only 0 were seen as a whole");
    }
}
