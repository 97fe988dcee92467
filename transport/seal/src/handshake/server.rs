//! The server's end of a handshake: answers packets and never sends unprompted.

use super::flight::Flight;
use std::net::IpAddr;
use std::time::Duration;

/// Lifetime of a server's handshake: covers the client's attempts and a lost READY.
const LIFETIME: Duration = Duration::from_secs(5);

/// A server's handshake.
#[derive(Debug)]
pub(super) struct ServerHandshake {
    pub(super) flight: Flight,
    pub(super) from: Option<IpAddr>,
    /// Bytes that may still be sent to a client with an unproved address (HANDSHAKE-1).
    allowance: usize,
    /// Packets of the flight sent so far.
    sent: usize,
    is_validated: bool,
    /// When the client's HELLO arrived.
    pub(super) began: Duration,
    /// When it is dropped.
    pub(super) ends: Duration,
}

impl ServerHandshake {
    pub(super) fn new(
        flight: Flight,
        from: Option<IpAddr>,
        is_validated: bool,
        now: Duration,
    ) -> Self {
        let (began, ends) = (now, now + LIFETIME);
        Self { flight, from, allowance: 0, sent: 0, is_validated, began, ends }
    }

    /// Adds to the allowance for `bytes` received from the client.
    pub(super) const fn receive(&mut self, bytes: usize) {
        self.allowance += 3 * bytes;
    }

    /// Charges `bytes` sent to the client in addition to the flight.
    pub(super) const fn spend(&mut self, bytes: usize) {
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Lifts the allowance: the client has proved that it receives at its address.
    pub(super) const fn validate(&mut self) {
        self.is_validated = true;
    }

    /// Returns the packets of the flight after those of the last answer, within the allowance;
    /// starts again at the first packet once all were sent.
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
