//! The kernel's socket pair: a worker writes and reads through it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::exchange::Exchange;
use apus_testbed::error::{Doing, Error};

/// Both ends, as in will-it-scale's `unix1`: stream sockets that block.
pub(super) struct Unix {
    writes: UnixStream,
    reads: UnixStream,
}

impl Unix {
    /// Returns a new pair.
    pub(super) fn connect() -> Result<Self, Error> {
        let (writes, reads) = UnixStream::pair().doing(|| "make a socket pair".to_owned())?;
        Ok(Self { writes, reads })
    }
}

impl Exchange for Unix {
    #[inline]
    fn operate(&mut self) -> Result<(), Error> {
        let sent = self.writes.write_all(&[1]);
        sent.and_then(|()| self.reads.read_exact(&mut [0]))
            .doing(|| "write and read a byte".to_owned())
    }
}
