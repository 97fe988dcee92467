//! Messages: their contents are a function of the call and of their length, so that a byte of
//! another call, or of another offset, is detected.

use std::sync::LazyLock;

use apus::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Bytes of the header of a request: magic number, client, number of the call, length of the reply.
pub(super) const HEADER: usize = 20;

const MAGIC: u32 = 0x5350_4130;

/// Bytes that are copied together.
const BLOCK: usize = 4_096;

/// Random bytes. Each block of a message is copied from a different offset; copies are cheap and
/// leave the processor to the transport.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut noise = vec![0; 64 * BLOCK];
    SmallRng::seed_from_u64(MAGIC.into()).fill_bytes(&mut noise);
    noise
});

/// A message of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Request,
    Reply,
}

/// A call, as both sides derive it from a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The life of the client: a restarted client has another one.
    pub(super) client: u32,
    /// Counts the calls of this life.
    pub(super) number: u64,
    /// Bytes of the reply.
    pub(super) reply: u32,
}

impl Call {
    /// Returns the request of `length` bytes, at least [`HEADER`].
    pub(super) fn request(&self, length: usize) -> Bytes {
        let mut bytes = vec![0; length.max(HEADER)];
        let (header, rest) = bytes.split_at_mut(HEADER);
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&self.client.to_le_bytes());
        header[8..16].copy_from_slice(&self.number.to_le_bytes());
        header[16..].copy_from_slice(&self.reply.to_le_bytes());
        self.fill(rest, MessageKind::Request);
        bytes.into()
    }

    /// Returns the reply.
    pub(super) fn reply(&self) -> Bytes {
        let mut bytes = vec![0; self.reply as usize];
        self.fill(&mut bytes, MessageKind::Reply);
        bytes.into()
    }

    /// Parses the header of a request; `None` if it is malformed.
    pub(super) fn of(request: &[u8]) -> Option<Self> {
        let header = request.first_chunk::<HEADER>()?;
        let word = |at: usize| header[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        let number = header[8..16].try_into().map(u64::from_le_bytes).ok()?;
        (word(0)? == MAGIC).then_some(Self { client: word(4)?, number, reply: word(16)? })
    }

    /// Returns whether `request` has the contents that a request of its length has.
    pub(super) fn is_request(&self, request: &[u8]) -> bool {
        request == self.request(request.len())
    }

    /// Returns whether `reply` has the length and the contents of this call's reply.
    pub(super) fn is_reply(&self, reply: &[u8]) -> bool {
        reply == self.reply()
    }

    /// Fills `bytes` with the content of this call's message.
    fn fill(&self, bytes: &mut [u8], kind: MessageKind) {
        let key =
            u64::from(self.client) << 40 ^ self.number << 1 ^ u64::from(kind == MessageKind::Reply);
        let seed = mixed(key ^ (bytes.len() as u64) << 20);
        for (index, block) in bytes.chunks_mut(BLOCK).enumerate() {
            let at = mixed(seed ^ index as u64) as usize % (NOISE.len() - BLOCK);
            block.copy_from_slice(&NOISE[at..at + block.len()]);
        }
    }
}

/// Returns the lengths of request and reply of a call: most are short, some take several packets,
/// few need grants. `least` is the shortest reply that the transport carries.
pub(super) fn lengths(seed: u64, client: u32, number: u64, least: u32) -> (usize, u32) {
    let drawn = mixed(seed ^ mixed(u64::from(client) << 40 ^ number));
    let length = |drawn: u64, least: u64| {
        let longest = match drawn % 100 {
            0..70 => 1_400,
            70..96 => 20_000,
            _ => 300_000,
        };
        least + (drawn >> 8) % (longest - least)
    };
    let request = length(drawn >> 32, HEADER as u64);
    let reply = length(drawn & 0xffff_ffff, u64::from(least));
    (request as usize, reply as u32)
}

/// Mixes the bits of `x` (the finaliser of SplitMix64).
fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_reads_the_call_in_its_request() {
        let call = Call { client: 3, number: 77, reply: 5 };
        let request = call.request(100);
        assert_eq!((request.len(), Call::of(&request)), (100, Some(call)));
        assert!(call.is_request(&request) && call.is_reply(&call.reply()));
        assert_eq!(call.reply().len(), 5);
        assert_eq!(Call::of(&request[..HEADER - 1]), None);
    }

    #[test]
    fn a_wrong_byte_another_call_and_another_length_are_detected() {
        let call = Call { client: 3, number: 77, reply: 3_000 };
        let reply = call.reply().to_vec();
        for at in [0, 1_499, 2_999] {
            let mut wrong = reply.clone();
            wrong[at] ^= 1;
            assert!(!call.is_reply(&wrong), "byte {at}");
        }
        assert!(!call.is_reply(&reply[..2_999]));
        for other in [Call { client: 4, ..call }, Call { number: 78, ..call }] {
            assert!(!other.is_reply(&reply));
        }
        let mut request = call.request(500).to_vec();
        request[499] ^= 0x80;
        assert!(!call.is_request(&request));
    }

    #[test]
    fn lengths_are_a_function_of_the_seed_within_the_limits() {
        let draw = |seed| (0..2_000).map(|number| lengths(seed, 1, number, 1)).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let all = draw(1);
        assert!(all.iter().all(|(request, reply)| *request >= HEADER && *reply >= 1));
        assert!(all.iter().any(|(request, _)| *request > 60_000), "some need grants");
        assert!(all.iter().any(|(_, reply)| *reply > 60_000));
    }
}
