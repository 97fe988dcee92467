//! The interface between the packets of a handshake and TLS.

use crate::cipher::{KeyPair, KeySchedule};
use crate::failure::Failure;
use crate::identity::Identity;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The present life of an endpoint: the time since it opened its socket (SEAL-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// A random number that no other life has.
    pub id: u64,
    /// Its age when it was stated.
    pub age: Duration,
}

#[cfg(feature = "tls")]
impl Life {
    /// Bytes of a stated life.
    pub(crate) const LEN: usize = 16;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let micros = u64::try_from(self.age.as_micros()).unwrap_or(u64::MAX);
        let both = u128::from(self.id) << 64 | u128::from(micros);
        both.to_be_bytes()
    }

    /// Returns the life in the first bytes; `None` if there are too few of them.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let both = u128::from_be_bytes(*bytes.first_chunk()?);
        Some(Self { id: (both >> 64) as u64, age: Duration::from_micros(both as u64) })
    }
}

/// New keys, to be used for all later bytes.
#[derive(Debug)]
pub enum KeyChange {
    /// For the rest of the handshake.
    Handshake(KeyPair),
    /// For packets of the protocol.
    Application(KeyPair, Box<dyn KeySchedule>),
}

/// One end of one handshake: a byte stream in each direction, without IO.
pub trait Negotiation: Send {
    /// Takes the next bytes of the peer, in order.
    ///
    /// # Errors
    ///
    /// The cause of the failure.
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    /// Appends bytes for the peer to `out`. Returns new keys, if any; they apply to bytes written
    /// by later calls. The caller repeats the call until it neither writes nor returns anything.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// Returns whether the peer has proved its identity.
    fn is_complete(&self) -> bool;

    /// Returns whether the handshake resumes an earlier one with a ticket.
    fn is_resumed(&self) -> bool;

    /// Returns 48 bits that only the two ends can compute, different for each handshake (RFC 8446
    /// section 7.5).
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`] before the handshake is complete.
    fn session(&self) -> Result<u64, Failure>;

    /// Returns the life of the peer, as it has stated it in an authenticated message.
    fn peer_life(&self) -> Option<Life>;

    /// Returns the identity of the peer, if it is admitted.
    ///
    /// # Errors
    ///
    /// [`Failure::NotAllowed`], or another cause for which the peer is refused.
    fn identity(&self) -> Result<Identity, Failure>;
}

impl fmt::Debug for dyn Negotiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Negotiation(..)")
    }
}

/// Creates handshakes with the identity and the trust of this endpoint.
pub trait Negotiator: Send + Sync {
    /// Starts a handshake with the server at `peer`, and states `life` to it.
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`].
    fn connect(&self, peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure>;

    /// Starts a handshake with a client at `peer`, and states `life` to it.
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`].
    fn accept(&self, peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure>;

    /// Returns whether `piece`, the first bytes of a client, may start a handshake. Called before
    /// anything is spent on the client.
    fn is_hello(&self, _piece: &[u8]) -> bool {
        true
    }

    /// Fills `out` with bytes that no peer can guess.
    fn fill_random(&self, out: &mut [u8]);

    /// Returns the MAC of `message` under `key`.
    fn mac(&self, key: &[u8; 32], message: &[u8]) -> [u8; 32];

    /// Checks whether a peer admitted earlier is still admitted under the present trust, in the
    /// role and under the name that were verified.
    ///
    /// # Errors
    ///
    /// The cause for which it is refused.
    fn recheck(&self, identity: &Identity, peer: SocketAddr) -> Result<(), Failure>;
}

impl fmt::Debug for dyn Negotiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Negotiator(..)")
    }
}
