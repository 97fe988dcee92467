//! Errors that end the decoding of a capture before its end.

use std::io;

use thiserror::Error;

/// Reason that decoding ended before the end of the capture. Packets returned before the error are
/// valid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no bytes.
    #[error("the file is empty, and a capture begins with a header")]
    Empty,
    /// The file does not start with a pcap or pcapng header.
    #[error("not a capture: the file begins with neither a pcap nor a pcapng header")]
    NotACapture,
    /// The file ends within a record: the capturing program was killed, or the disk was full.
    #[error("the capture is cut off in the record at byte {at}, after {records} complete records")]
    CutOff {
        /// Offset in the file of the incomplete record.
        at: u64,
        /// Number of complete records before it.
        records: u64,
    },
    /// A field of the file is invalid or contradicts another field.
    #[error("the capture is damaged at byte {at}, after {records} records: {problem}")]
    Damaged {
        /// Offset in the file of the damaged block.
        at: u64,
        /// Number of complete records before it.
        records: u64,
        /// Description of the damage.
        problem: String,
    },
    /// Reading the file failed.
    #[error("reading the capture at byte {at}: {error}")]
    Io {
        /// Offset in the file of the block that could not be read.
        at: u64,
        /// The operating system's error.
        error: io::Error,
    },
}
