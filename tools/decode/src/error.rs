//! Why can a capture not be read, or not to its end?

use std::io;

use thiserror::Error;

/// Why a capture ended before its end. What had been read before is good.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing in it.
    #[error("the file is empty, and a capture begins with a header")]
    Empty,
    /// It does not begin as captures do.
    #[error("not a capture: pcap and pcapng files begin in another way")]
    NotACapture,
    /// It ends in the middle of something: the capturing program was killed, or the disk was full.
    #[error("the capture ends in the middle of what begins at byte {at}, after {records} records")]
    CutOff {
        /// Bytes of the file before what is cut off.
        at: u64,
        /// Records that were read before.
        records: u64,
    },
    /// Something in it contradicts itself.
    #[error("the capture is damaged at byte {at}, after {records} records: {problem}")]
    Damaged {
        /// Bytes of the file before what is damaged.
        at: u64,
        /// Records that were read before.
        records: u64,
        /// What is wrong there.
        problem: String,
    },
    /// The file cannot be read.
    #[error("reading the capture at byte {at}: {error}")]
    Io {
        /// Bytes of the file that were used before.
        at: u64,
        /// What the system says.
        error: io::Error,
    },
}
