//! Two ends with handshakes and an association, which exchange arbitrary packets.
//!
//! An input is a list of steps: a byte for the action, a byte with a length, and that number of
//! bytes as its argument.

use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_seal::{Handshakes, Limits, Opener, SealEvent, Sealer};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits {
    in_progress: 8,
    cookies_from: 4,
    peers: 4,
    proven_per_second: 50,
    unproven_per_second: 50,
};

struct End {
    handshakes: Handshakes,
    keys: Option<(Sealer, Opener)>,
    /// Serial numbers opened so far.
    opened: BTreeSet<u64>,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 7))
}

impl End {
    fn new(seed: u64) -> Self {
        let policy = StubPolicy { name: seed, trust: 1, limit: 64 };
        let negotiator = Arc::new(StubNegotiator::new(policy, seed));
        let handshakes = Handshakes::new(negotiator, 7, LIMITS, Duration::ZERO);
        Self { handshakes, keys: None, opened: BTreeSet::new() }
    }

    /// Handles a packet. Returns the packets sent in response.
    fn receive(&mut self, now: Duration, from: SocketAddr, packet: &[u8]) -> Vec<Vec<u8>> {
        let Some(header) = SealedHeader::parse(packet) else { return Vec::new() };
        let mut bytes = packet.to_vec();
        if !matches!(header.kind, None | Some(SealKind::Ready)) {
            self.handshakes.handle(now, from, None, &mut bytes);
        } else {
            let keys = self.keys.as_mut().filter(|_| from != address(9));
            match keys.map(|(_, opener)| opener.open(&mut bytes)) {
                Some(Ok(len)) if header.kind.is_some() => {
                    self.handshakes.handle_ready(from, header.id, &bytes[HEADER_LEN..len]);
                }
                Some(Ok(len)) => {
                    let serial = bytes[HEADER_LEN..len].try_into().expect("only these are sealed");
                    assert!(self.opened.insert(u64::from_le_bytes(serial)), "opened twice");
                }
                _ => self.handshakes.without_key(now, from, None, packet),
            }
        }
        assert!(self.handshakes.peers() <= LIMITS.peers);
        assert!(self.handshakes.in_progress() <= 2 * LIMITS.in_progress);
        self.sort_out()
    }

    fn sort_out(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some(event) = self.handshakes.poll_event() {
            match event {
                SealEvent::Established(new) => self.keys = Some((new.sealer, new.opener)),
                SealEvent::Removed { session, .. } => {
                    self.keys = self.keys.take().filter(|(sealer, _)| sealer.session() != session);
                }
                SealEvent::Known { mut ready, session } => {
                    if let Some((sealer, _)) = &mut self.keys
                        && sealer.session() == session
                        && let Ok(tag) = sealer.seal(&mut ready.packet, &mut [])
                    {
                        ready.packet.extend(tag);
                        packets.push(ready.packet);
                    }
                }
            }
        }
        let handshakes = std::iter::from_fn(|| self.handshakes.poll_transmit());
        packets.extend(handshakes.map(|it| it.packet));
        packets
    }

    fn seal(&mut self, serial: u64) -> Option<Vec<u8>> {
        let (sealer, _) = self.keys.as_mut()?;
        let mut packet = vec![0; HEADER_LEN];
        (packet[11], packet[13]) = (0x10, 0x11);
        packet.extend(serial.to_le_bytes());
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let tag = sealer.seal(head, body).ok()?;
        packet.extend(tag);
        Some(packet)
    }
}

/// Runs the steps in `input`.
///
/// # Panics
///
/// If an invariant is violated.
pub(crate) fn run(mut input: &[u8]) {
    // Healing takes longer than the steps, so only some inputs do it.
    let heals = input.len().is_multiple_of(32);
    let mut ends = [End::new(1), End::new(2)];
    let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
    let (mut now, mut serial) = (Duration::ZERO, 0);
    while let [what, len, rest @ ..] = input {
        let (bytes, behind) = rest.split_at(rest.len().min(usize::from(*len)));
        input = behind;
        let to = usize::from(what >> 7);
        match what & 7 {
            0 => {
                let _ = ends[to].handshakes.want(now, address(1 - to), None);
            }
            1 => {
                serial += 1;
                flying.extend(ends[to].seal(serial).map(|packet| (1 - to, packet)));
            }
            2 if !flying.is_empty() => {
                let at = usize::from(*len) % flying.len();
                let (to, packet) = flying.swap_remove(at);
                let sent = ends[to].receive(now, address(1 - to), &packet);
                flying.extend(sent.into_iter().map(|packet| (1 - to, packet)));
            }
            // A copy, modified by the bytes.
            3 if !flying.is_empty() => {
                let (to, mut packet) = flying[usize::from(*len) % flying.len()].clone();
                for pair in bytes.chunks_exact(2) {
                    let at = usize::from(pair[0]) % packet.len();
                    packet[at] ^= pair[1];
                }
                let sent = ends[to].receive(now, address(1 - to), &packet);
                flying.extend(sent.into_iter().map(|packet| (1 - to, packet)));
            }
            // Arbitrary bytes from an unproved address: the reply has at most three times their
            // length.
            4 => {
                let mut packet = bytes.to_vec();
                if packet.len() > 13 {
                    packet[13] = 0x20 | packet[13] & 0x0f;
                }
                let sent = ends[to].receive(now, address(9), &packet);
                let bytes_sent: usize = sent.iter().map(Vec::len).sum();
                assert!(bytes_sent <= 3 * packet.len(), "{bytes_sent} for {}", packet.len());
            }
            5 => now += Duration::from_millis(u64::from(*len)),
            6 => drop(flying.pop()),
            _ => {}
        }
        for end in [0, 1] {
            ends[end].handshakes.handle_timeout(now);
            let sent = ends[end].sort_out();
            flying.extend(sent.into_iter().map(|packet| (1 - end, packet)));
        }
        flying.truncate(64);
    }
    if heals {
        heal(ends, now);
    }
}

/// Lets both ends communicate without interference; they must agree on keys.
fn heal(mut ends: [End; 2], mut now: Duration) {
    let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut serial = 1 << 32;
    for _ in 0..60 {
        now += Duration::from_millis(250);
        for end in [0, 1] {
            serial += 1;
            match ends[end].seal(serial) {
                Some(packet) => flying.push((1 - end, packet)),
                None if ends[end].keys.is_some() => ends[end].handshakes.forget(address(1 - end)),
                None => {
                    let _ = ends[end].handshakes.want(now, address(1 - end), None);
                }
            }
            ends[end].handshakes.handle_timeout(now);
            let sent = ends[end].sort_out();
            flying.extend(sent.into_iter().map(|packet| (1 - end, packet)));
        }
        while !flying.is_empty() {
            let (to, packet) = flying.remove(0);
            let sent = ends[to].receive(now, address(1 - to), &packet);
            flying.extend(sent.into_iter().map(|packet| (1 - to, packet)));
        }
    }
    let sessions = ends.map(|end| end.keys.map(|(sealer, _)| sealer.session()));
    assert!(sessions[0].is_some() && sessions[0] == sessions[1], "{sessions:?}");
}
