//! Encoding of replies.

use std::io::IoSlice;
use std::time::Duration;

use rustix::io::Errno;

use super::attributes::{Attributes, Entry, FileLock, Statfs, Timestamp};
use super::error::EncodeError;
use super::flags::{InitFlags, OpenFlags};
use super::layout::output;
use super::message::Message;
use super::opcode::Opcode;

/// An open file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Number that later requests about it carry.
    pub handle: u64,
    /// Treatment by the kernel.
    pub flags: OpenFlags,
}

impl Opened {
    fn to_wire(self) -> output::Open {
        output::Open { fh: self.handle, open_flags: self.flags.bits(), padding: 0 }
    }
}

/// The reply to INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitReply {
    /// Major version of the protocol.
    pub major: u32,
    /// Minor version of the protocol.
    pub minor: u32,
    /// Longest read-ahead in bytes.
    pub max_readahead: u32,
    /// Accepted features of the kernel's offer.
    pub flags: InitFlags,
    /// Most requests that no thread waits for, such as read-ahead.
    pub max_background: u16,
    /// Number of background requests at which the kernel considers the file system slow.
    pub congestion_threshold: u16,
    /// Longest write in bytes.
    pub max_write: u32,
    /// Resolution of times in nanoseconds: a power of ten.
    pub time_granularity: u32,
    /// Pages of the longest request.
    pub max_pages: u16,
}

/// Reply of a file system. Data is borrowed, and copied once, into the kernel.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// Success without further content.
    Empty,
    /// The operation failed.
    Error(Errno),
    /// The node under a name.
    Entry(&'a Entry),
    /// Attributes, and how long they are valid. [`Duration::MAX`] is forever.
    Attributes(&'a Attributes, Duration),
    /// Attributes of statx(2) with the time of creation, and how long they are valid.
    Statx {
        /// The attributes.
        attributes: &'a Attributes,
        /// Time of creation, if available.
        created: Option<Timestamp>,
        /// Validity period. [`Duration::MAX`] is forever.
        timeout: Duration,
    },
    /// A file or directory was opened.
    Opened(Opened),
    /// A file was created and opened.
    Created(&'a Entry, Opened),
    /// Data: of a file, link, extended attribute, or directory.
    Data(&'a [u8]),
    /// Data in pieces that follow one another.
    Pieces(&'a [IoSlice<'a>]),
    /// Number of bytes written.
    Written(u32),
    /// Number of bytes copied.
    Copied(u64),
    /// Length in bytes of an extended attribute, or of the list of their names.
    XattrSize(u32),
    /// Totals of the file system.
    Statfs(&'a Statfs),
    /// The conflicting lock, or a lock of kind `F_UNLCK`.
    Lock(FileLock),
    /// Start of data or a hole.
    Offset(u64),
    /// Events of poll(2).
    Events(u32),
    /// Starts the connection.
    Init(&'a InitReply),
}

impl<'a> Reply<'a> {
    /// Encodes the reply to request `unique`, whose operation has the number `opcode`.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Length`].
    #[inline]
    pub fn encode(&self, unique: u64, opcode: u32) -> Result<Message<'a>, EncodeError> {
        let error = match self {
            Self::Error(error) => -error.raw_os_error(),
            _ => 0,
        };
        let mut message = Message::new(unique, error);
        match *self {
            Self::Empty | Self::Error(_) => {}
            Self::Entry(entry) => message.push(&entry.to_wire()),
            Self::Attributes(attributes, timeout) => message.push(&output::AttrOut {
                attr_valid: timeout.as_secs(),
                attr_valid_nsec: timeout.subsec_nanos(),
                dummy: 0,
                attr: attributes.to_wire(),
            }),
            Self::Statx { attributes, created, timeout } => message.push(&output::Statx {
                attr_valid: timeout.as_secs(),
                attr_valid_nsec: timeout.subsec_nanos(),
                stat: attributes.to_statx(created),
                ..output::Statx::default()
            }),
            Self::Opened(opened) => message.push(&opened.to_wire()),
            Self::Created(entry, opened) => {
                message.push(&entry.to_wire());
                message.push(&opened.to_wire());
            }
            Self::Data(data) => message.borrow(data),
            Self::Pieces(pieces) => pieces.iter().for_each(|piece| message.borrow(piece)),
            Self::Written(size) => message.push(&output::Write { size, padding: 0 }),
            Self::Copied(bytes_copied) if opcode == Opcode::CopyFileRange64.number() => {
                message.push(&output::CopyFileRange { bytes_copied });
            }
            Self::Copied(length) => {
                let size = u32::try_from(length).unwrap_or(u32::MAX);
                message.push(&output::Write { size, padding: 0 });
            }
            Self::XattrSize(size) => message.push(&output::Getxattr { size, padding: 0 }),
            Self::Statfs(statfs) => message.push(&statfs.to_wire()),
            Self::Lock(lock) => message.push(&lock.to_wire()),
            Self::Offset(offset) => message.push(&output::Lseek { offset }),
            Self::Events(revents) => message.push(&output::Poll { revents, padding: 0 }),
            Self::Init(init) => message.push(&init.to_wire()),
        }
        message.finish()
    }
}

impl InitReply {
    fn to_wire(self) -> output::Init {
        let bits = self.flags.bits();
        output::Init {
            major: self.major,
            minor: self.minor,
            max_readahead: self.max_readahead,
            flags: bits as u32, // The lower half; the upper half follows.
            max_background: self.max_background,
            congestion_threshold: self.congestion_threshold,
            max_write: self.max_write,
            time_gran: self.time_granularity,
            max_pages: self.max_pages,
            flags2: (bits >> 32) as u32,
            ..output::Init::default()
        }
    }
}
