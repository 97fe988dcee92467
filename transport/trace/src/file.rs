//! File format of traces.
//!
//! ```text
//! 0   "apustt\r\n"    detects transfers in text mode
//! 8   version         u32, little-endian
//! 12  length          u32, of the head
//! 16  head            JSON: `Head`, and the threads with the numbers of their records
//! ..  records         32 bytes each, little-endian, thread by thread, to the end of the file
//! ```
//!
//! The head is JSON because it is short, has many parts, and will change. The records have the
//! layout of the rings because they are many: with 100 bytes of JSON each, the rings of 8 threads
//! would take 10 MB. A reader identifies events by the names in the head, so that it can read files
//! of other versions of this crate as long as the layout is the same. Unknown events keep their
//! names.

use crate::event::Event;
use crate::record::{RECORD_LEN, Record};
use crate::trace::{Head, Thread, Trace};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"apustt\r\n";

/// Version of the file format.
pub const VERSION: u32 = 1;

/// Bytes before the head.
const PREFIX: usize = 16;

/// First number for events whose names this version does not have.
const UNKNOWN: u16 = 0x8000;

/// Why a trace cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system reported an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, if it has a name.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a trace.
    #[error("not a trace of apus: it begins with {begin:?} instead of \"apustt\"")]
    NotATrace {
        /// The first bytes of the file.
        begin: String,
    },
    /// A later version of apus has written the file.
    #[error(
        "the trace has layout {found}, this apus reads up to {VERSION}: use the one that wrote it"
    )]
    Version {
        /// Version of the file.
        found: u32,
    },
    /// The head is malformed.
    #[error("the head of the trace, bytes {PREFIX} to {end}: {source}")]
    Head {
        /// Offset of the end of the head.
        end: u64,
        /// The syntax error.
        source: serde_json::Error,
    },
    /// The file is truncated.
    #[error("the trace ends at byte {have}, and its {what} at byte {need}: it was cut off")]
    TooShort {
        /// The part that is incomplete.
        what: &'static str,
        /// End offset of the part.
        need: u64,
        /// Length of the file.
        have: u64,
    },
    /// The file has bytes behind the last record.
    #[error("the last record of the trace ends at byte {need}, and the file at byte {have}")]
    TooLong {
        /// Offset of the end of the records.
        need: u64,
        /// Length of the file.
        have: u64,
    },
    /// The file has more unknown events than there are numbers for them.
    #[error("the head of the trace names {count} unknown events")]
    TooManyEvents {
        /// Number of unknown events.
        count: usize,
    },
}

/// The head of a file.
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
    /// Any error of the writer.
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
    /// [`FileError`] that names the position of the error. Whatever the bytes are, the memory used
    /// is bounded by a multiple of their number, and no panic occurs.
    pub fn read(from: &mut impl Read) -> Result<Self, FileError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .map_err(|source| FileError::Io { path: PathBuf::from("(stream)"), source })?;
        Self::parse(&bytes)
    }

    /// Writes the trace into a file, which is complete or absent at any time, and readable only by
    /// this user. An existing file of that name is replaced; a link is replaced, not followed.
    ///
    /// Other users may be able to write to the folder: the file is created under a random name that
    /// does not exist yet, and then renamed.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let save = || {
            // Mode 0600, O_EXCL. Removed unless it takes the name.
            let mut file = tempfile::Builder::new().prefix(".apus-").tempfile_in(folder)?;
            let mut to = io::BufWriter::new(&mut file);
            self.write(&mut to)?;
            to.flush()?;
            drop(to);
            file.persist(path)?;
            Ok(())
        };
        save().map_err(io)
    }

    /// Reads the trace in a file.
    ///
    /// # Errors
    ///
    /// [`FileError`], as for [`Trace::read`].
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
                // A number without a name is an unknown event.
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

/// Returns the head's bytes, and the records.
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

/// Maps the events of a file to the numbers of this version, and unknown ones to unused numbers.
/// Returns the map from the file's numbers.
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
