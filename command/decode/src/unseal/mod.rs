//! Sealed packets of a capture, opened with the secrets of a key log.
//!
//! ```text
//!   key_log     secrets, keyed by the random number of a ClientHello
//!   direction   keys of one direction, and their generations
//! ```
//!
//! A HELLO identifies the two addresses of a handshake and contains its random number. If there are
//! several handshakes between two addresses, the tag of a packet shows which one it belongs to.

mod direction;
mod key_log;

pub use key_log::{KeyLog, KeyLogError};

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use apus_wire::{HEADER_LEN, SealKind, SealedHeader};

use direction::{Direction, session};
use key_log::{ClientRandom, RANDOM_LEN};

/// Number of handshakes between two addresses tried for a packet.
const MOST_HANDSHAKES: usize = 8;

/// Bytes of a HELLO's cookie. Source: SEAL-14.
const COOKIE_LEN: usize = 32;

/// Opens the packets of a capture.
#[derive(Default)]
pub(crate) struct Unsealer {
    log: KeyLog,
    /// Handshakes by pair of addresses, lower address first; latest handshake first.
    associations: HashMap<(SocketAddr, SocketAddr), VecDeque<Association>>,
}

/// A handshake: its session, and the packet keys of both directions.
struct Association {
    random: ClientRandom,
    client: SocketAddr,
    session: u64,
    from_client: Option<Direction>,
    from_server: Option<Direction>,
}

impl Unsealer {
    pub(crate) fn new(log: KeyLog) -> Self {
        Self { log, ..Self::default() }
    }

    /// Returns the version 1 packets in a sealed packet, if its key is available. Records
    /// handshakes.
    pub(crate) fn open(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        packet: &[u8],
    ) -> Option<Vec<u8>> {
        if self.log.handshakes() == 0 {
            return None;
        }
        let header = SealedHeader::parse(packet)?;
        match header.kind {
            None => {}
            Some(SealKind::Hello) => {
                self.note_hello(from, to, packet);
                return None;
            }
            Some(_) => return None,
        }
        let associations = self.associations.get_mut(&(from.min(to), from.max(to)))?;
        for association in associations {
            let is_client = association.client == from;
            let direction =
                if is_client { &mut association.from_client } else { &mut association.from_server };
            let opened = direction
                .as_mut()
                .and_then(|direction| direction.open(packet, header.number, header.phase));
            if let Some(opened) = opened {
                let mut clear = packet[..HEADER_LEN].to_vec();
                SealedHeader::open(&mut clear, association.session);
                clear.extend(opened);
                return Some(clear);
            }
        }
        None
    }

    /// Records the handshake that a client's HELLO starts.
    fn note_hello(&mut self, from: SocketAddr, to: SocketAddr, packet: &[u8]) -> Option<()> {
        let random = client_random(packet)?;
        let secrets = self.log.secrets(&random)?;
        let known = self.associations.entry((from.min(to), from.max(to))).or_default();
        if known.iter().any(|association| association.random == random) {
            return None;
        }
        known.push_front(Association {
            random,
            client: from,
            session: secrets.exporter.as_deref().and_then(session).unwrap_or_default(),
            from_client: secrets.client.as_deref().map(Direction::new),
            from_server: secrets.server.as_deref().map(Direction::new),
        });
        known.truncate(MOST_HANDSHAKES);
        Some(())
    }
}

/// Returns the random number in a HELLO that starts with a ClientHello.
fn client_random(packet: &[u8]) -> Option<ClientRandom> {
    // Number of bytes before the random number: type and length of the message, and the version.
    const BEFORE_RANDOM: usize = 6;
    const CLIENT_HELLO: u8 = 1;
    let is_first = SealedHeader::parse(packet)?.sequence == 0;
    // A flag, the length of the piece, and the cookie, which is present if the flag is set
    // (SEAL-8).
    let (fixed, rest) = packet[HEADER_LEN..].split_at_checked(3)?;
    let piece = if fixed[0] == 1 { rest.get(COOKIE_LEN..)? } else { rest };
    if !is_first || piece.first() != Some(&CLIENT_HELLO) {
        return None;
    }
    piece.get(BEFORE_RANDOM..BEFORE_RANDOM + RANDOM_LEN)?.try_into().ok()
}
