//! The keys of one direction of an association, from the secret in a key log.
//!
//! Key, IV and the next secret are derived from a traffic secret as in QUIC. Source: RFC 9001
//! sections 5.1, 5.3 and 6.1.

use apus_wire::HEADER_LEN;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey};
use ring::aead::{Nonce, UnboundKey};
use ring::hkdf::{self, HKDF_SHA256, HKDF_SHA384, Prk};

/// Number of generations tried beyond the current one: packets in between may be missing from the
/// capture.
const GENERATIONS_AHEAD: u32 = 2;

/// A cipher suite, with the hash of its key derivation.
type Suite = (&'static Algorithm, hkdf::Algorithm);

/// Returns the suites whose secrets have this length.
fn suites(secret: &[u8]) -> Vec<Suite> {
    match secret.len() {
        32 => vec![(&AES_128_GCM, HKDF_SHA256), (&CHACHA20_POLY1305, HKDF_SHA256)],
        48 => vec![(&AES_256_GCM, HKDF_SHA384)],
        _ => Vec::new(),
    }
}

/// Keys of one generation.
struct Keys {
    secret: Vec<u8>,
    suite: Suite,
    key: LessSafeKey,
    iv: [u8; 12],
}

/// The keys of one direction.
pub(super) struct Direction {
    /// Candidate keys, one per possible suite; only one remains once a packet has been opened.
    possible: Vec<Keys>,
    generation: u32,
    /// Keys of the previous generation, for late packets.
    before: Option<Keys>,
}

impl Direction {
    pub(super) fn new(secret: &[u8]) -> Self {
        let keys = |suite| Keys::new(secret.to_vec(), suite);
        let possible = suites(secret).into_iter().filter_map(keys).collect();
        Self { possible, generation: 0, before: None }
    }

    /// Decrypts a sealed packet and returns the bytes that follow its header.
    pub(super) fn open(&mut self, packet: &[u8], number: u64, phase: bool) -> Option<Vec<u8>> {
        if phase != (self.generation & 1 == 1)
            && let Some(opened) = self.before.as_ref().and_then(|keys| keys.open(packet, number))
        {
            return Some(opened);
        }
        for at in 0..self.possible.len() {
            let mut ahead = None;
            for step in 0..=GENERATIONS_AHEAD {
                let keys = ahead.as_ref().unwrap_or(&self.possible[at]);
                let is_phase = ((self.generation + step) & 1 == 1) == phase;
                if let Some(opened) = is_phase.then(|| keys.open(packet, number)).flatten() {
                    let known = self.possible.swap_remove(at);
                    self.possible.clear();
                    self.generation += step;
                    match ahead {
                        Some(keys) => {
                            self.before = Some(known);
                            self.possible.push(keys);
                        }
                        None => self.possible.push(known),
                    }
                    return Some(opened);
                }
                ahead = Some(keys.next()?);
            }
        }
        None
    }
}

impl Keys {
    fn new(secret: Vec<u8>, suite: Suite) -> Option<Self> {
        let (algorithm, hash) = suite;
        let mut key = vec![0; algorithm.key_len()];
        expand_label(hash, &secret, b"quic key", &[], &mut key)?;
        let mut iv = [0; 12];
        expand_label(hash, &secret, b"quic iv", &[], &mut iv)?;
        let key = LessSafeKey::new(UnboundKey::new(algorithm, &key).ok()?);
        Some(Self { secret, suite, key, iv })
    }

    /// Returns the keys of the next generation.
    fn next(&self) -> Option<Self> {
        let mut secret = vec![0; self.secret.len()];
        expand_label(self.suite.1, &self.secret, b"quic ku", &[], &mut secret)?;
        Self::new(secret, self.suite)
    }

    fn open(&self, packet: &[u8], number: u64) -> Option<Vec<u8>> {
        let (header, sealed) = packet.split_at_checked(HEADER_LEN)?;
        let mut nonce = self.iv;
        for (byte, of_number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let len = self.key.open_in_place(nonce, Aad::from(header), &mut opened).ok()?.len();
        opened.truncate(len);
        Some(opened)
    }
}

/// Derives the session from an exporter's secret (SEAL-11).
pub(super) fn session(exporter: &[u8]) -> Option<u64> {
    let (_, hash) = *suites(exporter).first()?;
    let digest = if exporter.len() == 48 { &ring::digest::SHA384 } else { &ring::digest::SHA256 };
    let nothing = ring::digest::digest(digest, &[]);
    let mut secret = vec![0; exporter.len()];
    expand_label(hash, exporter, b"EXPORTER-apus-session", nothing.as_ref(), &mut secret)?;
    let mut session = [0; 8];
    expand_label(hash, &secret, b"exporter", nothing.as_ref(), &mut session[2..])?;
    let session = u64::from_be_bytes(session);
    Some(if session >> 32 == 0 { session | 1 << 47 } else { session })
}

/// HKDF-Expand-Label. Source: RFC 8446 section 7.1.
fn expand_label(
    hash: hkdf::Algorithm,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    const PREFIX: &[u8] = b"tls13 ";
    let length = (out.len() as u16).to_be_bytes();
    let label_length = [(PREFIX.len() + label.len()) as u8];
    let context_length = [context.len() as u8];
    let info = [&length[..], &label_length, PREFIX, label, &context_length, context];
    Prk::new_less_safe(hash, secret).expand(&info, Length(out.len())).ok()?.fill(out).ok()
}

#[cfg(test)]
mod tests {
    use super::super::key_log::bytes;
    use super::*;

    /// The client's initial secret of RFC 9001 appendix A.1, and the first vector of
    /// docs/spec/sealing.md.
    #[test]
    fn a_vector_of_the_specification_is_opened() {
        let secret =
            bytes("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea").unwrap();
        let packet = bytes(
            "8000100400000000000000145320000000000001000000000000123450600ddd30a36b6c58861fe0cf0859d0",
        )
        .unwrap();
        let mut direction = Direction::new(&secret);
        assert_eq!(direction.open(&packet, 2, false), None);
        assert_eq!(direction.open(&packet, 1, false), Some(Vec::new()));
        assert_eq!(direction.open(&packet, 1, false), Some(Vec::new()));
        assert!(Direction::new(&secret[1..]).open(&packet, 1, false).is_none());
    }
}
