//! The kernel's socket pair: a worker writes and reads through it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::exchange::Exchange;
use apus_testbed::error::{Doing, Error};

/// Both ends, as in will-it-scale's `unix1`: stream sockets that block.
pub(super) struct Unix {
    writer: UnixStream,
    reader: UnixStream,
}

impl Unix {
    /// Returns a new pair.
    pub(super) fn connect() -> Result<Self, Error> {
        let (writer, reader) = UnixStream::pair().doing(|| "make a socket pair".to_owned())?;
        Ok(Self { writer, reader })
    }
}

impl Exchange for Unix {
    #[inline]
    fn operate(&mut self) -> Result<(), Error> {
        let sent = self.writer.write_all(&[1]);
        sent.and_then(|()| self.reader.read_exact(&mut [0]))
            .doing(|| "write and read a byte".to_owned())
    }
}
