//! The server's end of a handshake: answers, and never speaks first.

use super::flight::Flight;
use std::net::IpAddr;

/// Time for which the server keeps a handshake, in nanoseconds: for the client's attempts, and for a READY that is lost.
const LIFE: u64 = 5_000_000_000;

/// A server's handshake.
#[derive(Debug)]
pub(super) struct ServerHandshake {
    pub(super) flight: Flight,
    pub(super) from: Option<IpAddr>,
    /// Bytes that may still be sent to a client that has not shown its address (HANDSHAKE-1).
    allowance: usize,
    /// Packets of the flight that were sent.
    sent: usize,
    is_validated: bool,
    /// When its client's HELLO came.
    pub(super) began: u64,
    /// When it is forgotten.
    pub(super) ends: u64,
}

impl ServerHandshake {
    pub(super) fn new(flight: Flight, from: Option<IpAddr>, is_validated: bool, now: u64) -> Self {
        let (began, ends) = (now, now + LIFE);
        Self { flight, from, allowance: 0, sent: 0, is_validated, began, ends }
    }

    /// The client has sent `bytes`.
    pub(super) const fn receive(&mut self, bytes: usize) {
        self.allowance += 3 * bytes;
    }

    /// `bytes` were sent to the client beside the flight.
    pub(super) const fn spend(&mut self, bytes: usize) {
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// The client has shown that it receives at its address.
    pub(super) const fn validate(&mut self) {
        self.is_validated = true;
    }

    /// Returns the server's flight from where the last answer ended, as far as it may be sent; from its start if all has been
    /// sent.
    pub(super) fn answer(&mut self) -> Vec<Vec<u8>> {
        let mut packets = self.flight.hellos(0, None);
        packets.extend(self.flight.finishes());
        if self.is_validated {
            return packets;
        }
        if self.sent >= packets.len() {
            self.sent = 0;
        }
        let mut answer = packets.split_off(self.sent);
        let mut fits = |packet: &&Vec<u8>| {
            let left = self.allowance.checked_sub(packet.len());
            self.allowance = left.unwrap_or(self.allowance);
            left.is_some()
        };
        let count = answer.iter().take_while(|packet| fits(packet)).count();
        answer.truncate(count);
        self.sent += count;
        answer
    }
}
