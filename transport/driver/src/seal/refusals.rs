//! Log lines about refused handshakes: one when a reason is new, and one per minute while it
//! persists.

use apus_seal::{HandshakeError, Refusals};

/// Calls of [`RefusalLog::lines`] between two lines about one reason: a minute, with a call every
/// two seconds. Chosen by us, so that forged handshakes cannot fill a disk.
const CALLS_PER_LINE: u32 = 30;

/// The reasons logged recently.
#[derive(Debug, Default)]
pub(super) struct RefusalLog(Vec<LoggedReason>);

#[derive(Debug)]
struct LoggedReason {
    error: HandshakeError,
    /// Refusals since the last line.
    since: Option<Refusals>,
    /// Calls until the next line is allowed.
    rest: u32,
}

impl RefusalLog {
    /// Adds the refusals since the last call. Returns the lines that are due.
    pub(super) fn lines(&mut self, new: Vec<Refusals>) -> Vec<String> {
        self.0.retain_mut(|entry| {
            entry.rest = entry.rest.saturating_sub(1);
            entry.rest > 0 || entry.since.is_some()
        });
        for refusals in new {
            match self.0.iter_mut().find(|entry| entry.error == refusals.error) {
                Some(LoggedReason { since: Some(known), .. }) => {
                    *known = Refusals { count: known.count + refusals.count, ..refusals };
                }
                Some(entry) => entry.since = Some(refusals),
                None => {
                    let (error, since) = (refusals.error, Some(refusals));
                    self.0.push(LoggedReason { error, since, rest: 0 });
                }
            }
        }
        let due = self.0.iter_mut().filter(|entry| entry.rest == 0);
        due.filter_map(|entry| {
            let line = line(&entry.since.take()?);
            entry.rest = CALLS_PER_LINE;
            Some(line)
        })
        .collect()
    }
}

fn line(refusals: &Refusals) -> String {
    let Refusals { error, count, last } = refusals;
    match count {
        1 => format!("a handshake with {last} has failed: {error}"),
        _ => format!("{count} handshakes have failed, the last with {last}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_seal::{Failure, FoundBy};

    fn refusals(cause: Failure, count: u64, port: u16) -> Refusals {
        let error = HandshakeError { cause, found_by: FoundBy::Us };
        Refusals { error, count, last: ([10, 0, 0, 7], port).into() }
    }

    #[test]
    fn a_reason_is_said_at_once_and_then_once_in_a_minute() {
        let mut log = RefusalLog::default();
        let first = log.lines(vec![refusals(Failure::Expired, 1, 4000)]);
        assert_eq!(first.len(), 1);
        assert!(first[0].starts_with("a handshake with 10.0.0.7:4000 has failed: "), "{first:?}");
        for port in 0..CALLS_PER_LINE as u16 - 1 {
            assert_eq!(log.lines(vec![refusals(Failure::Expired, 100, port)]), [""; 0]);
        }
        let other = log.lines(vec![refusals(Failure::UnknownCa, 1, 5)]);
        assert_eq!(other.len(), 2, "another reason does not wait, and the first may come again");
        assert!(other[0].starts_with("2900 handshakes have failed, the last with 10.0.0.7:28: "));
        for _ in 0..CALLS_PER_LINE {
            assert_eq!(log.lines(Vec::new()), [""; 0]);
        }
        assert!(log.0.is_empty(), "what does not go on is forgotten");
    }
}
