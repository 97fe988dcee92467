//! Refused handshakes of a server, for who reads its log: by cause, with a bound.

use crate::failure::HandshakeError;
use std::net::SocketAddr;

/// Handshakes as server that have failed for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The reason, and which end has found it.
    pub error: HandshakeError,
    /// How many there were.
    pub count: u64,
    /// Address of the last one's client, as its packets state it.
    pub last: SocketAddr,
}

/// The refusals since they were taken. There is one entry for each reason, and reasons are few.
#[derive(Debug, Default)]
pub(super) struct RefusalList(Vec<Refusals>);

impl RefusalList {
    pub(super) fn add(&mut self, error: HandshakeError, last: SocketAddr) {
        match self.0.iter_mut().find(|refusals| refusals.error == error) {
            Some(refusals) => {
                refusals.count += 1;
                refusals.last = last;
            }
            None => self.0.push(Refusals { error, count: 1, last }),
        }
    }

    pub(super) fn take(&mut self) -> Vec<Refusals> {
        std::mem::take(&mut self.0)
    }
}
