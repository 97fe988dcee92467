//! Handshakes that a server refused, counted by cause for its log.

use crate::failure::HandshakeError;
use std::net::SocketAddr;

/// Handshakes that failed at the server for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The reason, and the end that found it.
    pub error: HandshakeError,
    /// Number of these handshakes.
    pub count: u64,
    /// Address of the last client, as its packets state it.
    pub last: SocketAddr,
}

/// The refusals since the last call of `take`, one entry per reason. Causes are an enumeration, so
/// the list is short.
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
