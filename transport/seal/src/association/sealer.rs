//! The sending half of an association.

use super::phases::{NOTED, Phases};
use crate::cipher::{PacketCipher, TAG_LEN};
use crate::number::PacketNumbers;
use apus_wire::SealedHeader;
use std::sync::Arc;
use std::time::Duration;

/// Packets after which a sender starts the next generation, provided that the peer has followed
/// into the present one. Half of the limit of RFC 9001 section 6.6 for AES-GCM, so that a peer may
/// follow late.
pub const REKEY_AFTER_PACKETS: u64 = 1 << 22;

/// Time after which a sender starts the next generation. Chosen by us, in the order of magnitude of
/// s2n-quic-dc: a stolen key opens at most an hour of packets.
pub const REKEY_AFTER: Duration = Duration::from_secs(3_600);

/// No more packets can be sealed: the key's limit is reached and the peer has not followed into a
/// newer generation, or all numbers are used. The association must be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has sealed as many packets as it may")]
pub struct Exhausted;

/// Seals packets to one peer.
#[derive(Debug)]
pub struct Sealer {
    session: u64,
    numbers: PacketNumbers,
    cipher: Box<dyn PacketCipher>,
    generation: u32,
    /// Packets that the present key may still seal.
    left: u64,
    /// Packets that the present key seals before the next one is due.
    until_rekey: u64,
    /// When the present key was first used.
    since: Duration,
    rekeys: u64,
    phases: Arc<Phases>,
}

impl Sealer {
    pub(super) fn new(
        session: u64,
        cipher: Box<dyn PacketCipher>,
        phases: Arc<Phases>,
        now: Duration,
    ) -> Self {
        let mut sealer = Self {
            session,
            numbers: PacketNumbers::new(),
            cipher,
            generation: 0,
            left: 0,
            until_rekey: 0,
            since: now,
            rekeys: 0,
            phases,
        };
        sealer.begin_generation();
        sealer
    }

    /// Returns the session of the association.
    #[must_use]
    #[inline]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the number of key replacements.
    #[must_use]
    pub const fn rekeys(&self) -> u64 {
        self.rekeys
    }

    /// Returns the state shared with the opener.
    #[must_use]
    pub const fn phases(&self) -> &Arc<Phases> {
        &self.phases
    }

    /// Seals a packet in place: changes `header` to version 2 (SEAL-1) and encrypts `payload`, the
    /// rest of the packet. Returns the tag, to be appended.
    ///
    /// # Errors
    ///
    /// [`Exhausted`]; the packet is unchanged.
    #[inline]
    pub fn seal(
        &mut self,
        header: &mut [u8],
        payload: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Exhausted> {
        if self.phases.opened() > self.generation {
            self.advance();
        } else if self.until_rekey == 0 || self.phases.take_worn() {
            self.try_rekey();
        }
        if self.left == 0 {
            return Err(Exhausted);
        }
        let number = self.numbers.take().ok_or(Exhausted)?;
        if number <= NOTED || number % NOTED == 1 {
            self.phases.note_sealed(number);
        }
        self.left -= 1;
        self.until_rekey = self.until_rekey.saturating_sub(1);
        SealedHeader::seal(header, number, self.generation & 1 == 1);
        self.cipher.seal(number, header, payload).ok_or(Exhausted)
    }

    /// Starts the next generation if the present key is an hour old at `now`.
    pub fn rekey_if_old(&mut self, now: Duration) {
        if now.saturating_sub(self.since) >= REKEY_AFTER {
            self.since = now;
            self.try_rekey();
        }
    }

    /// Starts the next generation, if this end may and the peer has followed into the present one
    /// (PHASE-1).
    #[cold]
    fn try_rekey(&mut self) {
        if self.phases.begins() && self.phases.opened() >= self.generation {
            self.advance();
        }
    }

    #[cold]
    fn advance(&mut self) {
        if let Some(cipher) = self.phases.take_local() {
            self.cipher = cipher;
            self.generation += 1;
            self.rekeys += 1;
            self.begin_generation();
        }
    }

    fn begin_generation(&mut self) {
        self.left = self.cipher.confidentiality_limit();
        self.until_rekey = REKEY_AFTER_PACKETS.min(self.left / 2).max(1);
    }
}
