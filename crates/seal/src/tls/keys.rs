//! Packet keys of rustls as ciphers of this crate.

use crate::cipher::{KeyPair, KeySchedule, PacketCipher, TAG_LEN};
use rustls::quic::{Keys, PacketKey, PacketKeySet, Secrets};

/// A packet key of rustls. The library overwrites it when it is dropped (aws-lc does; ring keeps no such promise).
pub(super) struct TlsCipher(Box<dyn PacketKey>);

impl PacketCipher for TlsCipher {
    #[inline]
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let tag = self.0.encrypt_in_place(number, header, payload).ok()?;
        tag.as_ref().try_into().ok()
    }

    #[inline]
    fn open(&self, number: u64, header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        self.0.decrypt_in_place(number, header, sealed).ok().map(<[u8]>::len)
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// Returns the packet keys of a level. Those for header protection are dropped: a datacenter's switches see more of a packet
/// than its number anyway, and each costs a block of AES per packet.
pub(super) fn pair(keys: Keys) -> KeyPair {
    KeyPair {
        local: Box::new(TlsCipher(keys.local.packet)),
        remote: Box::new(TlsCipher(keys.remote.packet)),
    }
}

/// The secrets of an association, from which later keys follow (RFC 9001 section 6.1).
pub(super) struct TlsSchedule(pub(super) Secrets);

impl KeySchedule for TlsSchedule {
    fn next_keys(&mut self) -> KeyPair {
        let PacketKeySet { local, remote } = self.0.next_packet_keys();
        KeyPair { local: Box::new(TlsCipher(local)), remote: Box::new(TlsCipher(remote)) }
    }
}
