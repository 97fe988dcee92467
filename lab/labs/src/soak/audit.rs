//! The audit: checks the results of calls at clients against the records of servers.

use std::collections::BTreeMap;
use std::io;

use apus::Execution;

use super::campaign::{CampaignRecord, FaultRecord};
use super::ledger::{Ending, Ledger, REPEATED, WRONG_REQUEST};

/// Most examples of broken promises that are listed.
const EXAMPLES: usize = 10;

/// Counts over all calls of a transport.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Audit {
    /// Calls that ended.
    pub(super) ended: u64,
    pub(super) answered: u64,
    /// Failed calls by kind of failure.
    pub(super) failed: BTreeMap<&'static str, u64>,
    /// Replies and requests with wrong contents.
    pub(super) wrong_bytes: u64,
    /// Calls executed more than once by one life of a server.
    pub(super) executed_twice: u64,
    /// Calls executed by several lives of a server.
    pub(super) executed_in_two_lives: u64,
    /// False statements about execution.
    pub(super) untrue: u64,
    /// Examples of broken promises, in words.
    pub(super) examples: Vec<String>,
}

/// The executions of one call by the lives of a server.
#[derive(Clone, Copy, Debug, Default)]
struct Executed {
    /// Number of lives that executed it, at most 255.
    lives: u8,
    /// Whether one of them did so more than once.
    is_repeated: bool,
    /// Whether one of them received a wrong request.
    is_wrong: bool,
}

impl Executed {
    /// Adds the record of one life.
    fn add(&mut self, what: u8) {
        self.lives = self.lives.saturating_add(1);
        self.is_repeated |= what == REPEATED;
        self.is_wrong |= what == WRONG_REQUEST;
    }
}

impl Audit {
    /// Audits the calls of all clients to all servers.
    pub(super) fn of(record: &CampaignRecord) -> io::Result<Self> {
        let mut audit = Self::default();
        for (index, lives) in record.server_lives.iter().enumerate() {
            for client in &record.client_lives {
                audit.pair(&record.ledger, *client, index, lives)?;
            }
            for life in lives {
                let malformed = record.ledger.malformed(*life)? as u64;
                if malformed > 0 {
                    audit.wrong_bytes += malformed;
                    audit.example(|| {
                        format!("server life {life}: {malformed} requests name no call")
                    });
                }
            }
        }
        Ok(audit)
    }

    /// Audits the calls of one life of a client to one server with these `lives`.
    fn pair(
        &mut self,
        ledger: &Ledger,
        client: u32,
        index: usize,
        lives: &[u32],
    ) -> io::Result<()> {
        let ended = ledger.ended(client, index)?;
        let mut executed = vec![Executed::default(); ended.len()];
        // One life at a time: an hour has hundreds of lives, each with a byte per call of the
        // client.
        for life in lives {
            let by_life = ledger.executed(*life, client)?;
            executed.resize(executed.len().max(by_life.len()), Executed::default());
            for (call, what) in executed.iter_mut().zip(by_life).filter(|(_, what)| *what != 0) {
                call.add(what);
            }
        }
        for (number, executed) in executed.into_iter().enumerate() {
            let ending = ended.get(number).copied().and_then(Ending::of_byte);
            let words = || format!("call {number} of client life {client} to server {}", index + 1);
            self.call(ending, executed, words);
        }
        Ok(())
    }

    /// Audits one call.
    fn call(&mut self, ending: Option<Ending>, executed: Executed, words: impl Fn() -> String) {
        let lives = executed.lives;
        if executed.is_repeated {
            self.executed_twice += 1;
            self.example(|| format!("{} was executed twice in one life", words()));
        }
        if executed.is_wrong {
            self.wrong_bytes += 1;
            self.example(|| format!("{} arrived with wrong bytes", words()));
        }
        self.executed_in_two_lives += u64::from(lives > 1);
        let Some(ending) = ending else { return };
        self.ended += 1;
        match ending {
            Ending::Answered => {
                self.answered += 1;
                if lives == 0 {
                    self.untrue += 1;
                    self.example(|| format!("{} was answered and not executed", words()));
                }
            }
            Ending::WrongReply => {
                self.wrong_bytes += 1;
                self.example(|| format!("{} has a wrong reply", words()));
            }
            Ending::Failed { kind, execution } => {
                let name = Ending::kinds().nth(kind).unwrap_or("unknown");
                *self.failed.entry(name).or_default() += 1;
                let untrue = match execution {
                    Execution::NotExecuted => lives > 0,
                    Execution::Executed => lives == 0,
                    Execution::Unknown => false,
                };
                if untrue {
                    self.untrue += 1;
                    let said = format!("failed ({name}), {execution}");
                    self.example(|| format!("{} {said}: executed in {lives} lives", words()));
                }
            }
        }
    }

    fn example(&mut self, words: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(words());
        }
    }
}

/// The time from the end of a fault until calls were answered again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recovery {
    /// Milliseconds until plain UDP passed, after a fault of the network; otherwise 0.
    pub(super) network_ms: f64,
    /// Milliseconds from then on until each affected pair had an answer; `None` if one had none.
    pub(super) ms: Option<f64>,
}

impl Recovery {
    /// Reads the recovery from a fault from the ledger.
    pub(super) fn of(ledger: &Ledger, incident: &FaultRecord) -> io::Result<Self> {
        let ended = incident.ended;
        let of_network = incident.fault.is_of_network();
        let passed = if of_network { ledger.first_pass(ended)? } else { None };
        let passed = passed.unwrap_or(ended);
        let mut last = Some(passed);
        for (client, server) in &incident.pairs {
            let answer = ledger.first_answer(*client, *server, ended)?;
            last = last.zip(answer).map(|(last, answer)| last.max(answer));
        }
        let ms = |time: u64, since: u64| (time - since) as f64 / 1e6;
        Ok(Self { network_ms: ms(passed, ended), ms: last.map(|last| ms(last, passed)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::fault::Fault;
    use crate::soak::ledger::EXECUTED;

    fn audited(ending: Option<Ending>, executed: &[u8]) -> Audit {
        let mut audit = Audit::default();
        let mut all = Executed::default();
        executed.iter().for_each(|what| all.add(*what));
        audit.call(ending, all, || "call 1".to_owned());
        audit
    }

    fn failed(execution: Execution) -> Option<Ending> {
        Some(Ending::Failed { kind: 0, execution })
    }

    #[test]
    fn true_statements_pass() {
        for (ending, executed) in [
            (Some(Ending::Answered), &[EXECUTED][..]),
            (failed(Execution::NotExecuted), &[]),
            (failed(Execution::Executed), &[EXECUTED]),
            (failed(Execution::Unknown), &[]),
            (failed(Execution::Unknown), &[EXECUTED]),
            (None, &[EXECUTED]),
        ] {
            let audit = audited(ending, executed);
            assert_eq!(audit.examples, Vec::<String>::new(), "{ending:?} {executed:?}");
            assert_eq!((audit.untrue, audit.executed_twice, audit.wrong_bytes), (0, 0, 0));
        }
    }

    #[test]
    fn each_broken_promise_is_found() {
        let untrue = [
            (Some(Ending::Answered), &[][..]),
            (failed(Execution::NotExecuted), &[EXECUTED]),
            (failed(Execution::Executed), &[]),
        ];
        for (ending, executed) in untrue {
            assert_eq!(audited(ending, executed).untrue, 1, "{ending:?} {executed:?}");
        }
        // This includes calls whose client was killed.
        assert_eq!(audited(None, &[REPEATED]).executed_twice, 1);
        assert_eq!(audited(Some(Ending::Answered), &[WRONG_REQUEST]).wrong_bytes, 1);
        assert_eq!(audited(Some(Ending::WrongReply), &[EXECUTED]).wrong_bytes, 1);
        let lives = audited(failed(Execution::Unknown), &[EXECUTED, EXECUTED]);
        assert_eq!((lives.executed_in_two_lives, lives.executed_twice), (1, 0));
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let audit = audited(failed(Execution::Unknown), &[]);
        assert_eq!(audit.failed.get("peer_silent"), Some(&1));
        assert_eq!((audit.ended, audit.answered), (1, 0));
    }

    #[test]
    fn a_network_recovers_from_when_plain_udp_passes() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(folder.path());
        let mut witness = ledger.witness().unwrap();
        [900_000_000, 2_000_000_000].into_iter().for_each(|time| witness.add(time).unwrap());
        let mut client = ledger.client(1, 0).unwrap();
        let mut other = ledger.client(1, 1).unwrap();
        client.end(0, Ending::Answered, 1_500_000_000).unwrap();
        other.end(1, Ending::Answered, 2_250_000_000).unwrap();
        let after = |fault, ended, pairs: &[(u32, usize)]| {
            let pairs = pairs.to_vec();
            let incident = FaultRecord { fault, victim: String::new(), began: 0.0, ended, pairs };
            let Recovery { network_ms, ms } = Recovery::of(&ledger, &incident).unwrap();
            (network_ms, ms)
        };
        let ended = 1_000_000_000;
        assert_eq!(after(Fault::LinkDown, ended, &[(1, 0), (1, 1)]), (1_000.0, Some(250.0)));
        assert_eq!(after(Fault::LinkDown, ended, &[(1, 0)]), (1_000.0, Some(0.0)));
        assert_eq!(after(Fault::LinkDown, ended, &[(1, 0), (2, 0)]), (1_000.0, None));
        assert_eq!(after(Fault::KillServer, ended, &[(1, 0), (1, 1)]), (0.0, Some(1_250.0)));
        assert_eq!(after(Fault::Address, 2_100_000_000, &[(1, 1)]), (0.0, Some(150.0)));
    }
}
