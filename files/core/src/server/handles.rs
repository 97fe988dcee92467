//! Proofs: keyed hashes that show that the server gave a client a handle, or a range of numbers.

use std::hash::Hasher;

use crate::wire::{Handle, Ino, InoRange};
use siphasher::sip::SipHasher24;

use crate::store::ClientId;

/// Makes and checks proofs.
#[derive(Debug)]
pub(super) struct Proofs {
    key: [u8; 16],
}

/// Subject of a hash, so that the proof of a range is never the proof of a handle.
const HANDLE: u8 = 1;
const RANGE: u8 = 2;

impl Proofs {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Returns the handle of a node.
    pub(super) fn handle(&self, ino: Ino) -> Handle {
        let mut hasher = self.hasher(HANDLE);
        hasher.write_u64(ino.0);
        Handle { ino, proof: proof(&hasher) }
    }

    /// Whether the server made this handle.
    pub(super) fn is_made(&self, handle: Handle) -> bool {
        handle.proof != 0 && self.handle(handle.ino) == handle
    }

    /// Returns a range of a client with its proof.
    pub(super) fn range(&self, client: ClientId, first: u64, count: u64) -> InoRange {
        let mut hasher = self.hasher(RANGE);
        hasher.write(&client.0);
        hasher.write_u64(first);
        hasher.write_u64(count);
        InoRange { first, count, proof: proof(&hasher) }
    }

    fn hasher(&self, subject: u8) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(subject);
        hasher
    }
}

/// 0 is the proof of nodes that a client has created, so no hash is 0.
fn proof(hasher: &SipHasher24) -> u64 {
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_belong_to_one_number_client_and_key() {
        let proofs = Proofs::new([7; 16]);
        let handle = proofs.handle(Ino(5));
        assert!(proofs.is_made(handle));
        assert!(!proofs.is_made(Handle { ino: Ino(6), ..handle }));
        assert!(!proofs.is_made(Handle::created(Ino(5))));
        assert!(!Proofs::new([8; 16]).is_made(handle));
        let range = proofs.range(ClientId([1; 16]), 5, 10);
        assert_ne!(range, proofs.range(ClientId([2; 16]), 5, 10));
        assert_ne!(range.proof, proofs.range(ClientId([1; 16]), 5, 11).proof);
    }
}
