//! The ledger: files with the records of clients and servers about every call. They outlive the
//! processes.
//!
//! | file | content |
//! |---|---|
//! | `executed-S-C` | byte `n`: what the server's life `S` did with call `n` of the client's life `C` |
//! | `malformed-S` | a byte for each request to the server's life `S` that names no call |
//! | `ended-C-I` | byte `n`: how call `n` of the client's life `C` ended, if it was one to server `I` |
//! | `answers-C-I` | times of answers from server `I`, by the common monotonic clock: the first of each millisecond |
//! | `passed` | times at which plain UDP carried a datagram between the hosts: the first of each millisecond |
//! | `heap-L` | heap sizes of the process in its life `L` |
//!
//! A server records an execution before it replies. A record may be missing if the server was
//! killed before writing it; that can hide a broken promise but not invent one.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use apus::{CallError, Execution, FailureKind, RpcError};

use super::heap_file::{self, HeapWriter};
use super::times::{Times, TimesWriter};

/// The file of the witness.
const PASSED: &str = "passed";

/// Record of a call that was executed.
pub(super) const EXECUTED: u8 = 1;
/// Record of a call that was executed more than once.
pub(super) const REPEATED: u8 = 2;
/// Record of a request with wrong contents.
pub(super) const WRONG_REQUEST: u8 = 3;

/// Number of clients whose pages a server keeps open: two running ones, and two whose packets may
/// be late. A page for every killed client would itself be the growth that the lab looks for.
const OPEN: usize = 4;

/// Kinds of failures of unsent calls, after [`FailureKind::NAMES`].
const UNSENT: [&str; 2] = ["rejected", "closed"];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Answered,
    /// The reply had wrong contents.
    WrongReply,
    Failed {
        /// Index of the kind, in [`Ending::kinds`].
        kind: usize,
        execution: Execution,
    },
}

const EXECUTIONS: [Execution; 3] =
    [Execution::NotExecuted, Execution::Executed, Execution::Unknown];

impl Ending {
    /// Returns the names of the kinds of failures.
    pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
        FailureKind::NAMES.into_iter().chain(UNSENT)
    }

    pub(super) fn of_call(error: &RpcError) -> Self {
        Self::Failed { kind: error.kind.index(), execution: error.execution }
    }

    /// Returns the ending of an unsent call.
    pub(super) fn unsent(error: &CallError) -> Self {
        match error {
            CallError::Failed(error) => Self::of_call(error),
            CallError::Closed(_) | CallError::Interrupted { .. } => {
                Self::Failed { kind: FailureKind::NAMES.len() + 1, execution: error.execution() }
            }
            // `CallError` may get more variants; an unsent call counts as rejected.
            _ => Self::Failed { kind: FailureKind::NAMES.len(), execution: error.execution() },
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Answered => 1,
            Self::WrongReply => 2,
            Self::Failed { kind, execution } => {
                let execution = EXECUTIONS.iter().position(|each| *each == execution);
                let code = 4 + kind * EXECUTIONS.len() + execution.expect("all are listed");
                u8::try_from(code).expect("fewer than 80 kinds")
            }
        }
    }

    /// Returns the ending for a byte of the file; `None` for 0, which is another server's call, or
    /// a call without an end.
    pub(super) fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            0 | 3 => None,
            1 => Some(Self::Answered),
            2 => Some(Self::WrongReply),
            code => {
                let code = usize::from(code - 4);
                let execution = EXECUTIONS[code % EXECUTIONS.len()];
                Some(Self::Failed { kind: code / EXECUTIONS.len(), execution })
            }
        }
    }
}

/// The folder of the ledger.
#[derive(Clone, Debug)]
pub(super) struct Ledger(PathBuf);

/// The files that a server writes.
pub(super) struct ServerPages {
    ledger: Ledger,
    life: u32,
    /// Open files by the life of the client; at most [`OPEN`].
    executed: HashMap<u32, File>,
    malformed: File,
}

/// The files that a client writes about one server.
pub(super) struct ClientPages {
    ended: File,
    answers: TimesWriter,
}

impl Ledger {
    pub(super) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))
    }

    /// Creates the files of a server in its life `life`.
    pub(super) fn server(&self, life: u32) -> io::Result<ServerPages> {
        let malformed = self.create(&format!("malformed-{life}"))?;
        Ok(ServerPages { ledger: self.clone(), life, executed: HashMap::new(), malformed })
    }

    /// Creates the files of a client in its life `life` about the server `index`.
    pub(super) fn client(&self, life: u32, index: usize) -> io::Result<ClientPages> {
        Ok(ClientPages {
            ended: self.create(&format!("ended-{life}-{index}"))?,
            answers: TimesWriter::new(self.create(&format!("answers-{life}-{index}"))?),
        })
    }

    /// Returns a byte for each call of a client's life; 0 if this life of the server did not
    /// execute it.
    pub(super) fn executed(&self, server: u32, client: u32) -> io::Result<Vec<u8>> {
        self.read(&format!("executed-{server}-{client}"))
    }

    /// Returns a byte for each call of a client's life ([`Ending::of_byte`]).
    pub(super) fn ended(&self, client: u32, index: usize) -> io::Result<Vec<u8>> {
        self.read(&format!("ended-{client}-{index}"))
    }

    /// Returns the number of requests that named no call.
    pub(super) fn malformed(&self, server: u32) -> io::Result<usize> {
        Ok(self.read(&format!("malformed-{server}"))?.len())
    }

    /// Returns the time of the first answer of a server at or after `time`.
    pub(super) fn first_answer(
        &self,
        client: u32,
        index: usize,
        time: u64,
    ) -> io::Result<Option<u64>> {
        self.first_since(&format!("answers-{client}-{index}"), time)
    }

    /// Returns the time of the last answer of a server; 0 if there is none.
    pub(super) fn last_answer(&self, client: u32, index: usize) -> io::Result<u64> {
        let times = self.times(&format!("answers-{client}-{index}"))?;
        Ok(times.map(|times| times.last()).transpose()?.flatten().unwrap_or(0))
    }

    /// Creates the file of heap sizes of a process in its life `life`.
    pub(super) fn heap_writer(&self, life: u32) -> io::Result<HeapWriter> {
        self.create(&format!("heap-{life}")).map(HeapWriter::new)
    }

    /// Returns times in seconds and the allocated kB of a process.
    pub(super) fn heap(&self, life: u32) -> io::Result<Vec<(f64, f64)>> {
        Ok(heap_file::read(&self.read(&format!("heap-{life}"))?))
    }

    /// Creates the file of the witness.
    pub(super) fn witness(&self) -> io::Result<TimesWriter> {
        self.create(PASSED).map(TimesWriter::new)
    }

    /// Returns the first time at or after `time` at which plain UDP carried a datagram; `None` if
    /// there is no witness, or it ended before.
    pub(super) fn first_pass(&self, time: u64) -> io::Result<Option<u64>> {
        self.first_since(PASSED, time)
    }

    fn first_since(&self, name: &str, time: u64) -> io::Result<Option<u64>> {
        let times = self.times(name)?;
        Ok(times.map(|times| times.first_since(time)).transpose()?.flatten())
    }

    /// Opens a file of times; `None` if its process was killed before creating it.
    fn times(&self, name: &str) -> io::Result<Option<Times>> {
        match File::open(self.0.join(name)) {
            Ok(file) => Times::new(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file; it is empty if its process was killed before creating it.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match fs::read(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
}

impl ServerPages {
    /// Records the execution of a call; `good` is whether its request was right.
    pub(super) fn execute(&mut self, client: u32, number: u64, good: bool) -> io::Result<()> {
        if self.executed.len() >= OPEN && !self.executed.contains_key(&client) {
            let oldest = self.executed.keys().min().copied();
            oldest.and_then(|oldest| self.executed.remove(&oldest));
        }
        let file = match self.executed.entry(client) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let name = format!("executed-{}-{client}", self.life);
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).truncate(false);
                entry.insert(options.open(self.ledger.0.join(name))?)
            }
        };
        let mut before = [0];
        // Beyond the end of the file no byte is read: the call is new.
        file.read_at(&mut before, number)?;
        let what = match before {
            [0] if good => EXECUTED,
            [0] => WRONG_REQUEST,
            _ => REPEATED,
        };
        file.write_all_at(&[what], number)
    }

    /// Records a request that names no call.
    pub(super) fn malformed(&mut self) -> io::Result<()> {
        self.malformed.write_all(&[1])
    }
}

impl ClientPages {
    /// Records the end of a call at `now`.
    pub(super) fn end(&mut self, number: u64, ending: Ending, now: u64) -> io::Result<()> {
        self.ended.write_all_at(&[ending.byte()], number)?;
        if ending == Ending::Answered { self.answers.add(now) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_survives_the_file() {
        let kinds = 0..Ending::kinds().count();
        let failed =
            kinds.flat_map(|kind| EXECUTIONS.map(|execution| Ending::Failed { kind, execution }));
        for ending in [Ending::Answered, Ending::WrongReply].into_iter().chain(failed) {
            assert_eq!(Ending::of_byte(ending.byte()), Some(ending));
        }
        assert_eq!(Ending::of_byte(0), None);
    }

    #[test]
    fn a_second_execution_of_a_call_is_recorded_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(folder.path());
        let mut server = ledger.server(1).unwrap();
        for (number, good) in [(0, true), (2, true), (3, false), (2, true)] {
            server.execute(7, number, good).unwrap();
        }
        server.malformed().unwrap();
        let expected = [EXECUTED, 0, REPEATED, WRONG_REQUEST];
        assert_eq!(ledger.executed(1, 7).unwrap(), expected);
        assert_eq!(ledger.malformed(1).unwrap(), 1);
        assert!(ledger.executed(1, 8).unwrap().is_empty(), "no call of this client");
    }

    #[test]
    fn the_answers_of_each_server_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(folder.path());
        let mut client = ledger.client(4, 1).unwrap();
        assert_eq!(ledger.last_answer(4, 1).unwrap(), 0);
        for (number, now) in [5_000_000, 6_000_001].into_iter().enumerate() {
            client.end(number as u64, Ending::Answered, now).unwrap();
        }
        client.end(2, Ending::WrongReply, 8_000_000).unwrap();
        assert_eq!(ledger.first_answer(4, 1, 5_000_001).unwrap(), Some(6_000_001));
        assert_eq!(ledger.first_answer(9, 9, 0).unwrap(), None);
        assert_eq!(ledger.last_answer(4, 1).unwrap(), 6_000_001);
        assert_eq!(ledger.ended(4, 1).unwrap(), [1, 1, 2]);
    }
}
