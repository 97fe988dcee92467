//! The host on the path: modifies packets in flight and injects its own.

use apus_seal::PacketCipher;
use apus_seal::stub::{StubCipher, StubKeys};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::collections::BTreeMap;

/// Draws numbers from a seed: SplitMix64.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }
}

/// A packet in flight to an end.
pub(crate) type Flying = (usize, Vec<u8>);

/// The host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Packets seen so far, up to a bound.
    recorded: Vec<Flying>,
    /// The random numbers of client and server in each handshake seen so far.
    numbers: BTreeMap<u64, [Option<u64>; 2]>,
}

impl Host {
    /// Reads the random number in a HELLO, which is in cleartext.
    fn read_hello(&mut self, packet: &[u8]) {
        let Some(header) = SealedHeader::parse(packet) else { return };
        let cookie = if packet.get(HEADER_LEN) == Some(&1) { 32 } else { 0 };
        let number = packet.get(HEADER_LEN + 3 + cookie..).and_then(|rest| rest.first_chunk());
        if let (Some(SealKind::Hello), Some(number)) = (header.kind, number) {
            // A client pads its HELLO.
            let role = usize::from(packet.len() < 1_000);
            let known = self.numbers.entry(header.id).or_default();
            known[role].get_or_insert(u64::from_le_bytes(*number));
        }
    }

    /// Returns the first keys, in both directions, of all handshakes except those of the sessions
    /// `present`.
    pub(crate) fn learn(&self, present: &[u64]) -> Vec<u64> {
        let mut keys = Vec::new();
        for numbers in self.numbers.values() {
            let [Some(client), Some(server)] = *numbers else { continue };
            if !present.contains(&StubKeys::session_of_handshake(client, server)) {
                let key =
                    |is_client| StubKeys::of_handshake(client, server, is_client, 1).local_key();
                keys.extend([key(true), key(false)]);
            }
        }
        keys
    }

    /// Returns the packets that arrive instead of `packet`.
    pub(crate) fn bend(&mut self, dice: &mut Dice, (to, packet): Flying) -> Vec<Flying> {
        self.read_hello(&packet);
        if self.recorded.len() < 4_000 {
            self.recorded.push((to, packet.clone()));
        }
        match dice.roll(12) {
            0 => Vec::new(),
            1 => vec![(to, packet.clone()), (to, packet)],
            2 => {
                let mut changed = packet.clone();
                let at = dice.roll(changed.len() as u64) as usize;
                changed[at] ^= 1 << dice.roll(8);
                vec![(to, changed), (to, packet)]
            }
            3 => {
                let mut cut = packet.clone();
                cut.truncate(dice.roll(packet.len() as u64) as usize);
                vec![(to, cut), (to, packet)]
            }
            // A copy goes back to its sender.
            4 => vec![(1 - to, packet.clone()), (to, packet)],
            _ => vec![(to, packet)],
        }
    }

    /// Returns a packet that no end has just sent: an old packet, possibly with another number,
    /// phase or type, or a packet forged with a leaked key.
    pub(crate) fn inject(&self, dice: &mut Dice, learnt: &[u64]) -> Option<Flying> {
        let at = dice.roll(self.recorded.len() as u64) as usize;
        let (to, mut packet) = self.recorded.get(at)?.clone();
        if packet.len() < HEADER_LEN {
            return None;
        }
        match dice.roll(6) {
            0 => packet[13] ^= 1,
            1 => packet[19] = packet[19].wrapping_add(dice.roll(64) as u8),
            2 => packet[11] = 0x10 + dice.roll(24) as u8,
            3 => {
                let kinds = [SealKind::NoKey, SealKind::Failed, SealKind::Retry];
                let kind = kinds[dice.roll(3) as usize];
                let header = SealedHeader::parse(&packet)?;
                SealedHeader::emit(kind, (1, 2), dice.roll(20) as u32, header.id, &mut packet);
                SealedHeader::seal(&mut packet, header.number, false);
            }
            4 if !learnt.is_empty() => {
                let key = learnt[dice.roll(learnt.len() as u64) as usize];
                let number = SealedHeader::parse(&packet)?.number + dice.roll(100);
                packet.truncate(HEADER_LEN);
                packet[11] = 0x10;
                SealedHeader::seal(&mut packet, number, dice.roll(2) == 1);
                // A serial number that no end seals.
                let mut content = u64::MAX.to_le_bytes();
                let tag = StubCipher::new(key, 1).seal(number, &packet, &mut content)?;
                packet.extend(content);
                packet.extend(tag);
            }
            _ => {}
        }
        Some((to, packet))
    }
}
