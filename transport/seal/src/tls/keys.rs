//! Packet keys of rustls as ciphers of this crate.

use crate::cipher::{KeyPair, KeySchedule, PacketCipher, TAG_LEN};
use rustls::quic::{Keys, PacketKey, PacketKeySet, Secrets};

/// A packet key of rustls. The library overwrites it when it is dropped (aws-lc does; ring keeps no
/// such promise).
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

/// Returns the packet keys of a level. The keys for header protection are dropped: a datacenter's
/// switches see more of a packet than its number anyway, and each costs a block of AES per packet.
pub(super) fn pair(keys: Keys) -> KeyPair {
    KeyPair {
        local: Box::new(TlsCipher(keys.local.packet)),
        remote: Box::new(TlsCipher(keys.remote.packet)),
    }
}

/// The secrets of an association that later keys are derived from (RFC 9001 section 6.1).
pub(super) struct TlsSchedule(pub(super) Secrets);

impl KeySchedule for TlsSchedule {
    fn next_keys(&mut self) -> KeyPair {
        let PacketKeySet { local, remote } = self.0.next_packet_keys();
        KeyPair { local: Box::new(TlsCipher(local)), remote: Box::new(TlsCipher(remote)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::provider::provider;
    use apus_wire::{HEADER_LEN, SealedHeader};
    use rustls::quic::Version;
    use rustls::{CipherSuite, Side, SupportedCipherSuite};

    /// Packet number, phase, the packet of version 1, and the sealed packet: the vectors of
    /// docs/spec/sealing.md, computed with another implementation of AES-GCM.
    const VECTORS: [(u64, bool, &str, &str); 2] = [
        (
            1,
            false,
            "80001004000000000000001453110badcafe12340000000000001234",
            "8000100400000000000000145320000000000001000000000000123450600ddd30a36b6c58861fe0cf0859d0",
        ),
        (
            0x0102_0304_0506,
            true,
            "800010040000000000000010e3110badcafe12340000000000001234\
             00000005000000050000000000000000000000010000000000000000\
             68656c6c6f",
            "800010040000000000000010e3210102030405060000000000001234\
             eeae28b89bf69e0aa3179d196a324d0bfea9291ab3bcac3401565da7\
             be44e326b113cb140caabd31aeda8d3835dac20597",
        ),
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
        let digit = |at: usize| digits[at].to_digit(16).unwrap() as u8;
        (0..digits.len()).step_by(2).map(|at| digit(at) << 4 | digit(at + 1)).collect()
    }

    /// Initial keys of RFC 9001, appendix A.1.
    fn keys(side: Side) -> KeyPair {
        let provider = provider();
        let mut suites = provider.cipher_suites.iter().filter_map(SupportedCipherSuite::tls13);
        let aes = suites
            .find(|suite| suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256)
            .unwrap();
        pair(aes.quic_suite().unwrap().keys(&bytes("8394c8f03e515708"), side, Version::V1))
    }

    /// SEAL-1 to SEAL-3.
    #[test]
    fn packets_are_sealed_as_the_vectors_say() {
        for (number, phase, clear, sealed) in VECTORS {
            let (clear, sealed) = (bytes(clear), bytes(sealed));
            let mut packet = clear.clone();
            let (header, payload) = packet.split_at_mut(HEADER_LEN);
            SealedHeader::seal(header, number, phase);
            let tag = keys(Side::Client).local.seal(number, header, payload).unwrap();
            packet.extend(tag);
            assert_eq!(packet, sealed);

            let (header, payload) = packet.split_at_mut(HEADER_LEN);
            let len = keys(Side::Server).remote.open(number, header, payload).unwrap();
            SealedHeader::open(header, 0x1234_0bad_cafe);
            assert_eq!(packet[..HEADER_LEN + len], clear);
        }
    }
}
