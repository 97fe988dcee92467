//! The receiving half of an association.

use super::phases::Phases;
use super::sealer::REKEY_AFTER_PACKETS;
use crate::cipher::PacketCipher;
use crate::window::{ReplayWindow, Stale, WINDOW};
use apus_wire::{HEADER_LEN, SealedHeader};
use std::sync::Arc;

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is not a packet of version 2, or shorter than a header and a tag.
    #[error("the packet is malformed")]
    Malformed,
    /// A packet with its number was opened before, or the number is too old to tell.
    #[error("the packet's number was used before")]
    Replayed,
    /// It was not sealed by the peer, or was modified.
    #[error("the packet's tag is wrong")]
    Forged,
    /// Too many forged packets: the association must be replaced.
    #[error("the key has refused as many packets as it may")]
    Exhausted,
}

/// Opens the packets of one peer.
#[derive(Debug)]
pub struct Opener {
    session: u64,
    window: ReplayWindow,
    current: Generation,
    next: Box<dyn PacketCipher>,
    previous: Option<Box<dyn PacketCipher>>,
    generation: u32,
    /// Forged packets that the key may still refuse.
    forgeries_left: u64,
    /// Packets after which the peer's key should be replaced.
    worn_after: u64,
    phases: Arc<Phases>,
}

#[derive(Debug)]
struct Generation {
    cipher: Box<dyn PacketCipher>,
    /// Number of its first packet.
    first: u64,
    /// Packets opened with it.
    opened: u64,
}

impl Opener {
    pub(super) fn new(
        session: u64,
        cipher: Box<dyn PacketCipher>,
        next: Box<dyn PacketCipher>,
        phases: Arc<Phases>,
    ) -> Self {
        let forgeries_left = cipher.integrity_limit();
        let worn_after = REKEY_AFTER_PACKETS.min(cipher.confidentiality_limit() / 2).max(1);
        Self {
            session,
            window: ReplayWindow::default(),
            current: Generation { cipher, first: 0, opened: 0 },
            next,
            previous: None,
            generation: 0,
            forgeries_left,
            worn_after,
            phases,
        }
    }

    /// Returns the session of the association.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the number of times that the peer's key was replaced.
    #[must_use]
    pub const fn rekeys(&self) -> u32 {
        self.generation
    }

    /// Returns whether it has opened a full window of packets. Packets of an earlier association
    /// are too old by then.
    #[must_use]
    pub const fn has_replaced(&self) -> bool {
        self.window.highest() >= WINDOW
    }

    /// Returns whether it has opened a packet: the peer uses the association.
    #[must_use]
    pub const fn has_opened(&self) -> bool {
        self.current.opened > 0 || self.generation > 0
    }

    /// Opens `packet` in place. Returns the length of the plaintext with its header, which has
    /// version 1 and the session again.
    ///
    /// # Errors
    ///
    /// [`OpenError`]. The content of `packet` is undefined afterwards, except after
    /// [`OpenError::Replayed`] and [`OpenError::Malformed`].
    #[inline]
    pub fn open(&mut self, packet: &mut [u8]) -> Result<usize, OpenError> {
        let header = SealedHeader::parse(packet).ok_or(OpenError::Malformed)?;
        let number = header.number;
        self.window.check(number).map_err(|_: Stale| OpenError::Replayed)?;
        if self.forgeries_left == 0 {
            return Err(OpenError::Exhausted);
        }
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let in_phase = header.phase == (self.generation & 1 == 1);
        let opened = if in_phase {
            self.current.cipher.open(number, head, body)
        } else if number < self.current.first {
            self.previous.as_ref().and_then(|cipher| cipher.open(number, head, body))
        } else {
            self.next.open(number, head, body)
        };
        let Some(len) = opened else {
            self.forgeries_left -= 1;
            return Err(OpenError::Forged);
        };
        if in_phase {
            self.current.opened += 1;
            if self.current.opened == WINDOW {
                self.previous = None; // PHASE-3
            }
            if number >= self.current.first + self.worn_after {
                self.phases.note_worn();
            }
        } else if number >= self.current.first {
            self.begin_generation(number);
        }
        self.window.accept(number);
        self.phases.note_used();
        SealedHeader::open(head, self.session);
        Ok(HEADER_LEN + len)
    }

    /// Moves to the next generation, which the peer started with packet `first`.
    #[cold]
    fn begin_generation(&mut self, first: u64) {
        let later = self.phases.next_remote();
        let cipher = std::mem::replace(&mut self.next, later);
        let before = std::mem::replace(&mut self.current, Generation { cipher, first, opened: 1 });
        self.previous = Some(before.cipher);
        self.generation += 1;
        self.phases.note_opened(self.generation);
    }
}
