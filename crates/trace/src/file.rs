//! How does a trace lie in a file?
//!
//! ```text
//! 0   "apustt\r\n"    so that a transfer as text shows
//! 8   version         u32, little-endian
//! 12  length          u32, of the head
//! 16  head            JSON: `Head`, and the threads with the numbers of their records
//! ..  records         32 bytes each, little-endian, thread by thread, to the end of the file
//! ```
//!
//! The head is JSON since it is short, of many parts, and will change; the records are as they lie in the rings, since
//! they are many: 100 bytes of JSON each would make 10 MB of 8 threads' rings. A reader takes the numbers of events by
//! the names in the head, so that files of other versions of this crate can be read as long as the layout is the same;
//! events that it does not know keep their names.

use crate::event::Event;
use crate::record::{RECORD_LEN, Record};
use crate::trace::{Head, Thread, Trace};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"apustt\r\n";

/// Version of the layout.
pub const VERSION: u32 = 1;

/// Bytes before the head.
const PREFIX: usize = 16;

/// From here on are numbers of events that the reader does not know by name.
const UNKNOWN: u16 = 0x8000;

/// How a trace cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, if it has a name.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is something else.
    #[error("not a trace of apus: it begins with {begin:?} instead of \"apustt\"")]
    NotATrace {
        /// Its first bytes.
        begin: String,
    },
    /// A later apus has written it.
    #[error(
        "the trace has layout {found}, this apus reads up to {VERSION}: use the one that wrote it"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The head cannot be understood.
    #[error("the head of the trace, bytes {PREFIX} to {end}: {source}")]
    Head {
        /// Where it ends.
        end: u64,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file ends too early.
    #[error("the trace ends at byte {have}, and its {what} at byte {need}: it was cut off")]
    TooShort {
        /// What is not complete.
        what: &'static str,
        /// Where that would end.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// The file goes on.
    #[error("the last record of the trace ends at byte {need}, and the file at byte {have}")]
    TooLong {
        /// Where the records end.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// There are more events that nobody knows than numbers for them.
    #[error("the head of the trace names {count} unknown events")]
    TooManyEvents {
        /// How many.
        count: usize,
    },
}

/// The head as it lies in the file.
#[derive(Serialize, Deserialize)]
struct FileHead {
    head: Head,
    threads: Vec<FileThread>,
}

#[derive(Serialize, Deserialize)]
struct FileThread {
    name: String,
    tid: u32,
    cpu: u32,
    overwritten: u64,
    records: u64,
}

impl Trace {
    /// Writes the trace.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let thread = |thread: &Thread| FileThread {
            name: thread.name.clone(),
            tid: thread.tid,
            cpu: thread.cpu,
            overwritten: thread.overwritten,
            records: thread.records.len() as u64,
        };
        let threads = self.threads.iter().map(thread).collect();
        let head = serde_json::to_vec(&FileHead { head: self.head.clone(), threads })?;
        let length = u32::try_from(head.len()).map_err(io::Error::other)?;
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(&head)?;
        for (_, record) in self.records() {
            to.write_all(&record.to_bytes())?;
        }
        Ok(())
    }

    /// Reads a trace.
    ///
    /// # Errors
    ///
    /// A [`FileError`] that says where it is wrong. Whatever the bytes are, no more memory is taken than some times
    /// their number, and nothing panics.
    pub fn read(from: &mut impl Read) -> Result<Self, FileError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .map_err(|source| FileError::Io { path: PathBuf::from("(stream)"), source })?;
        Self::parse(&bytes)
    }

    /// Writes the trace into a file, which is there as a whole or not at all.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]: the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let written = std::fs::File::create(&part).and_then(|file| {
            let mut to = io::BufWriter::new(file);
            self.write(&mut to)?;
            to.flush()?;
            std::fs::rename(&part, path)
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written.map_err(io)
    }

    /// Reads the trace in a file.
    ///
    /// # Errors
    ///
    /// As for [`Trace::read`].
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        Self::parse(&std::fs::read(path).map_err(io)?)
    }

    fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let (head, mut records) = split(bytes)?;
        let end = (PREFIX + head.len()) as u64;
        let head: FileHead =
            serde_json::from_slice(head).map_err(|source| FileError::Head { end, source })?;
        let count = head.threads.iter().fold(0_u64, |sum, t| sum.saturating_add(t.records));
        let need = count.saturating_mul(RECORD_LEN as u64).saturating_add(end);
        let have = bytes.len() as u64;
        if have < need {
            return Err(FileError::TooShort { what: "records", need, have });
        }
        if have > need {
            return Err(FileError::TooLong { need, have });
        }
        let FileHead { mut head, threads } = head;
        let numbers = renumber(&mut head.events)?;
        let mut take = |thread: FileThread| {
            let (own, rest) = records.split_at(thread.records as usize);
            records = rest;
            let record = |bytes| {
                let mut record = Record::from_bytes(bytes);
                // A number without a name is as good as any.
                record.kind = numbers.get(&record.kind).copied().unwrap_or(u16::MAX);
                record
            };
            let records = own.iter().map(record).collect();
            let FileThread { name, tid, cpu, overwritten, .. } = thread;
            Thread { name, tid, cpu, overwritten, records }
        };
        let threads = threads.into_iter().map(&mut take).collect();
        Ok(Self { head, threads })
    }
}

/// The head's bytes, and the records.
fn split(bytes: &[u8]) -> Result<(&[u8], &[[u8; RECORD_LEN]]), FileError> {
    let have = bytes.len() as u64;
    let begin = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(begin) || begin.is_empty() {
        return Err(FileError::NotATrace { begin: begin.escape_ascii().to_string() });
    }
    let Some((prefix, rest)) = bytes.split_at_checked(PREFIX) else {
        return Err(FileError::TooShort { what: "first lines", need: PREFIX as u64, have });
    };
    let number = |at: usize| {
        u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
    };
    let version = number(8);
    if version != VERSION {
        return Err(FileError::Version { found: version });
    }
    let length = number(12);
    let Some((head, records)) = rest.split_at_checked(length as usize) else {
        let need = PREFIX as u64 + u64::from(length);
        return Err(FileError::TooShort { what: "head", need, have });
    };
    let (records, cut) = records.as_chunks();
    if !cut.is_empty() {
        let need = have + (RECORD_LEN - cut.len()) as u64;
        return Err(FileError::TooShort { what: "last record", need, have });
    }
    Ok((head, records))
}

/// Gives events our own numbers, and those that we do not know numbers that we do not use; says which number of the
/// file is which of ours.
fn renumber(events: &mut BTreeMap<u16, String>) -> Result<HashMap<u16, u16>, FileError> {
    let mut numbers = HashMap::new();
    let mut named = BTreeMap::new();
    let mut next = UNKNOWN;
    let count = events.len();
    for (theirs, name) in std::mem::take(events) {
        let ours = match Event::from_name(&name) {
            Some(event) => event as u16,
            None if next == u16::MAX => return Err(FileError::TooManyEvents { count }),
            None => {
                next += 1;
                next - 1
            }
        };
        numbers.insert(theirs, ours);
        named.insert(ours, name);
    }
    *events = named;
    Ok(numbers)
}
