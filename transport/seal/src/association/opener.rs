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
    /// A packet with its number was opened before, or is too old to tell.
    #[error("the packet's number was used before")]
    Replayed,
    /// It was not sealed by the peer, or was changed.
    #[error("the packet's tag is wrong")]
    Forged,
    /// Too many forged packets: the association must be replaced.
    #[error("the key has refused as many packets as it may")]
    Exhausted,
}

/// Opens the packets that one peer sends.
#[derive(Debug)]
pub struct Opener {
    session: u64,
    window: ReplayWindow,
    current: Generation,
    next: Box<dyn PacketCipher>,
    previous: Option<Box<dyn PacketCipher>>,
    generation: u32,
    /// Forged packets that may still come.
    forgeries_left: u64,
    /// Packets after which the peer's key should be replaced.
    worn_after: u64,
    phases: Arc<Phases>,
}

#[derive(Debug)]
struct Generation {
    cipher: Box<dyn PacketCipher>,
    /// The number of the packet that began it.
    first: u64,
    /// Packets that it has opened.
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

    /// Returns whether it has opened as many packets as the window has: what an earlier association's opener would still open is too
    /// old by then.
    #[must_use]
    pub const fn has_replaced(&self) -> bool {
        self.window.highest() >= WINDOW
    }

    /// Returns whether it has opened a packet: the peer uses the association.
    #[must_use]
    pub const fn has_opened(&self) -> bool {
        self.current.opened > 0 || self.generation > 0
    }

    /// Opens `packet` in place. Returns the length of the plaintext with its header, which is that of version 1 in the
    /// session again.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; then `packet` has no meaning any more, unless it is [`OpenError::Replayed`] or
    /// [`OpenError::Malformed`].
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

    /// The peer has begun the next generation with the packet `first`.
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
