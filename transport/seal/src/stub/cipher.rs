//! The cipher without protection.

use crate::cipher::{KeyPair, KeySchedule, PacketCipher, TAG_LEN};

/// A cipher whose tag is a checksum that depends on a key of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct StubCipher {
    key: u64,
    limit: u64,
}

impl StubCipher {
    /// Returns the cipher of `key`, which may seal `limit` packets.
    #[must_use]
    pub const fn new(key: u64, limit: u64) -> Self {
        Self { key, limit }
    }

    fn tag(self, number: u64, header: &[u8], payload: &[u8]) -> [u8; TAG_LEN] {
        let mut state = mix(self.key, number);
        for part in [header, payload] {
            state = mix(state, part.len() as u64);
            for chunk in part.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                state = mix(state, u64::from_le_bytes(word));
            }
        }
        let mut tag = [0; TAG_LEN];
        tag[..8].copy_from_slice(&state.to_le_bytes());
        tag[8..].copy_from_slice(&mix(state, self.key).to_le_bytes());
        tag
    }
}

/// Mixes two numbers into one, with the finaliser of SplitMix64.
pub(super) const fn mix(one: u64, other: u64) -> u64 {
    let mut z = one.rotate_left(23) ^ other.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl PacketCipher for StubCipher {
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        Some(self.tag(number, header, payload))
    }

    fn open(&self, number: u64, header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        let len = sealed.len().checked_sub(TAG_LEN)?;
        (self.tag(number, header, &sealed[..len]) == sealed[len..]).then_some(len)
    }

    fn confidentiality_limit(&self) -> u64 {
        self.limit
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// The keys of an association, one generation after the other.
#[derive(Clone, Copy, Debug)]
pub struct StubKeys {
    local: u64,
    remote: u64,
    limit: u64,
}

impl StubKeys {
    /// Returns the client's or the server's keys after a handshake that led to `secret`; each may
    /// seal `limit` packets.
    #[must_use]
    pub const fn new(secret: u64, is_client: bool, limit: u64) -> Self {
        let (one, other) = (mix(secret, 1), mix(secret, 2));
        if is_client {
            Self { local: one, remote: other, limit }
        } else {
            Self { local: other, remote: one, limit }
        }
    }

    /// Returns the keys of a handshake with the random numbers `client` and `server`. Both travel
    /// in cleartext, so an observer can compute the keys.
    #[must_use]
    pub const fn of_handshake(client: u64, server: u64, is_client: bool, limit: u64) -> Self {
        Self::new(mix(mix(client, server), 8), is_client, limit)
    }

    /// Returns the session of that handshake.
    #[must_use]
    pub const fn session_of_handshake(client: u64, server: u64) -> u64 {
        mix(mix(client, server), 9) >> 16 | 1 << 47
    }

    /// Returns the sealing key of this end.
    #[must_use]
    pub const fn local_key(&self) -> u64 {
        self.local
    }

    /// Returns the present generation.
    #[must_use]
    pub fn pair(&self) -> KeyPair {
        let cipher = |key| Box::new(StubCipher::new(key, self.limit));
        KeyPair { local: cipher(self.local), remote: cipher(self.remote) }
    }
}

impl KeySchedule for StubKeys {
    fn next_keys(&mut self) -> KeyPair {
        self.local = mix(self.local, 3);
        self.remote = mix(self.remote, 3);
        self.pair()
    }
}
