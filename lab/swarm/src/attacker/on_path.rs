//! A host on the path: every datagram between the hosts passes it, but it has no keys.
//!
//! It records, repeats, changes, shortens and replays datagrams, delivers them to other hosts or
//! with other source addresses, and forges packets from recorded ones and from the specification.
//! The network's faults lose, delay and reorder them in addition.

use apus_sim::message::HostId;
use apus_wire::{HEADER_LEN, Kind, SealKind, SealedHeader};
use bytes::Bytes;

use super::taps::Seen;
use crate::generator::random::SeededRng;
use crate::meddling::Meddling;

/// Maximum number of recorded datagrams.
const REMEMBERED: usize = 2_000;

/// The purpose of its random numbers.
const STREAM: u64 = 103;

/// The host.
#[derive(Debug)]
pub(crate) struct OnPath {
    meddling: Meddling,
    hosts: HostId,
    rng: SeededRng,
    remembered: Vec<Seen>,
    /// Datagrams that arrived and were not sent in this form.
    pub(crate) hostile: u64,
}

impl OnPath {
    pub(crate) fn new(meddling: Meddling, hosts: HostId, seed: u64) -> Self {
        let rng = SeededRng::new(seed, STREAM);
        Self { meddling, hosts, rng, remembered: Vec::new(), hostile: 0 }
    }

    /// Stops all activity.
    pub(crate) fn leave(&mut self) {
        self.meddling = Meddling::default();
    }

    /// Returns the datagrams that arrive at host `to` in place of this datagram, with their stated
    /// senders.
    pub(crate) fn pass(&mut self, from: HostId, to: HostId, bytes: &Bytes) -> Vec<(HostId, Bytes)> {
        if self.meddling == Meddling::default() {
            return vec![(from, bytes.clone())];
        }
        let at = self.rng.within(0..REMEMBERED);
        let seen = Seen { from, to, bytes: bytes.clone() };
        match self.remembered.get_mut(at) {
            Some(place) => *place = seen,
            None => self.remembered.push(seen),
        }
        let mut hostile = Vec::new();
        let mut arrives = true;
        if self.happens(self.meddling.repeated) {
            hostile.push((from, bytes.clone()));
        }
        if self.happens(self.meddling.changed) {
            hostile.push((from, self.change(bytes)));
            arrives &= self.rng.percent(50);
        }
        if self.happens(self.meddling.shortened) {
            hostile.push((from, bytes.slice(..self.rng.within(0..bytes.len()))));
            arrives &= self.rng.percent(50);
        }
        if self.happens(self.meddling.misattributed) {
            hostile.push((self.rng.within(0..self.hosts), bytes.clone()));
            arrives = false;
        }
        if self.happens(self.meddling.misdelivered) {
            // Another host's datagram arrives here instead.
            hostile.extend(self.remembered_one().map(|seen| (seen.from, seen.bytes)));
            arrives = false;
        }
        if self.happens(self.meddling.replayed) {
            let mine = self.remembered.iter().filter(|seen| seen.to == to);
            let count = mine.clone().count();
            let replayed = mine.clone().nth(self.rng.within(0..count.max(1)));
            hostile.extend(replayed.map(|seen| (seen.from, seen.bytes.clone())));
        }
        if self.happens(self.meddling.forged) {
            hostile.extend(self.forge(to));
        }
        self.hostile += hostile.len() as u64;
        // Either order is possible.
        let at = if self.rng.percent(50) { 0 } else { hostile.len() };
        if arrives {
            hostile.insert(at, (from, bytes.clone()));
        }
        hostile
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        self.rng.within(0..1_000) < per_mille
    }

    fn remembered_one(&mut self) -> Option<Seen> {
        let at = self.rng.within(0..self.remembered.len().max(1));
        self.remembered.get(at).cloned()
    }

    fn change(&mut self, bytes: &Bytes) -> Bytes {
        let mut changed = bytes.to_vec();
        let bit = self.rng.within(0..8 * changed.len());
        changed[bit / 8] ^= 1 << (bit % 8);
        changed.into()
    }

    /// Returns a packet for host `to`, forged from a recorded one.
    fn forge(&mut self, to: HostId) -> Option<(HostId, Bytes)> {
        let model = self.remembered_one()?;
        let from = if model.to == to { model.from } else { model.to };
        let header = SealedHeader::parse(&model.bytes)?;
        let mut packet = model.bytes.to_vec();
        match self.rng.within(0..5) {
            // Another number, or the other phase.
            0 => {
                let number = header.number.wrapping_add(self.rng.scale(1, 1 << 20));
                SealedHeader::seal(&mut packet, number & ((1 << 48) - 1), header.phase);
            }
            1 => SealedHeader::seal(&mut packet, header.number, !header.phase),
            // Another type.
            2 => packet[11] = self.rng.one_of(&Kind::ALL) as u8,
            // In the clear: with an invented session, or without a session.
            3 => {
                SealedHeader::open(&mut packet, self.rng.within(0..1 << 48));
                packet[11] = self.rng.one_of(&Kind::ALL) as u8;
                if self.rng.percent(50) {
                    packet[13] &= !1;
                }
            }
            // The unsealed part of a handshake.
            _ => {
                let kind = self.rng.one_of(&[SealKind::NoKey, SealKind::Failed, SealKind::Retry]);
                let sequence = self.rng.within(0..24);
                SealedHeader::emit(kind, (1, 2), sequence, header.id, &mut packet);
                SealedHeader::seal(&mut packet, header.number, false);
                packet.truncate(HEADER_LEN + self.rng.within(0..48));
            }
        }
        Some((from, packet.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_host_passes_every_datagram() {
        let mut host = OnPath::new(Meddling::default(), 3, 1);
        let bytes = Bytes::from_static(b"datagram");
        assert_eq!(host.pass(0, 1, &bytes), [(0, bytes.clone())]);
        assert_eq!(host.hostile, 0);
    }

    #[test]
    fn each_action_has_its_configured_frequency() {
        let often = 500;
        let acts: [fn(&mut Meddling) -> &mut u32; 5] = [
            |meddling| &mut meddling.repeated,
            |meddling| &mut meddling.changed,
            |meddling| &mut meddling.shortened,
            |meddling| &mut meddling.replayed,
            |meddling| &mut meddling.misattributed,
        ];
        for act in acts {
            let mut meddling = Meddling::default();
            *act(&mut meddling) = often;
            let mut host = OnPath::new(meddling, 3, 1);
            let bytes = Bytes::from(vec![7; 100]);
            for _ in 0..2_000 {
                host.pass(0, 1, &bytes);
            }
            assert!((900..1_100).contains(&host.hostile), "{meddling}: {}", host.hostile);
        }
    }
}
