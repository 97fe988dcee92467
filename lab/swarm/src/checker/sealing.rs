//! Sealing checker: limits on the power of a host on the path.
//!
//! - SEAL-7: an opened packet was sealed for this host by the host whose address it has.
//! - SEAL-5: a packet is opened at most once.
//! - SEAL-3: no packet number is used twice with the keys of an association. Numbers of an end
//!   increase; they restart when it has agreed upon other keys with the peer.
//! - SEAL-15, SEAL-17: when two hosts with keys agree upon other keys, no call fails as if its
//!   server had been restarted. This holds only if the host on the path does not interfere and no
//!   packet is damaged: by dropping packets it can force a change of keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use apus_proto::{FailureKind, RpcError};
use apus_sim::message::HostId;
use apus_wire::{Packet, Profile, SealedHeader, announced_len};
use foldhash::fast::FixedState;

use super::contract::Checker;
use crate::call::PlannedCall;
use crate::directory::Directory;
use crate::observation::{HostEvent, Observation};
use crate::violation::{Violation, ViolationKind};

/// The ends of a packet: its sender, and its receiver.
type Ends = (HostId, HostId);

/// Packets that were sealed, and their numbers.
#[derive(Debug, Default)]
pub(crate) struct Sealing {
    /// Number of times a packet with this content was sealed minus the times it was opened.
    unopened: HashMap<(Ends, u64), u32, FixedState>,
    numbers: HashMap<Ends, Numbers, FixedState>,
    /// The life of a host that has agreed upon a session.
    lives: HashMap<(HostId, u64), u32, FixedState>,
}

/// Numbers of the packets that one end has sealed for the other.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last: u64,
    /// The current and the previous session; 0 for none.
    sessions: [u64; 2],
    /// Number of times that the numbers may still restart.
    beginnings: u32,
}

impl Sealing {
    /// An end, in its `life`-th life, has agreed upon keys with a peer.
    pub(crate) fn agreed(&mut self, ends: Ends, session: u64, life: u32) {
        self.lives.insert((ends.0, session), life);
        let numbers = self.numbers.entry(ends).or_default();
        if numbers.sessions[0] != session {
            numbers.sessions = [session, numbers.sessions[0]];
            numbers.beginnings += 1;
        }
    }

    /// Returns whether the peer had the keys of the current and of the previous session in the same
    /// life. Packets from before a crash may arrive after it, so the time of the end's agreement is
    /// not conclusive.
    fn had_both(&self, ends: Ends) -> bool {
        let Some(numbers) = self.numbers.get(&ends) else { return false };
        let life = |session| self.lives.get(&(ends.1, session));
        let [last, before] = numbers.sessions.map(life);
        last.is_some() && last == before
    }

    /// A packet of the protocol was sealed.
    pub(crate) fn sealed(&mut self, ends: Ends, packet: &[u8]) {
        *self.unopened.entry((ends, hash(packet))).or_default() += 1;
    }

    /// A datagram leaves.
    pub(crate) fn left(&mut self, ends: Ends, datagram: &[u8]) -> Result<(), Violation> {
        let Some(header) = SealedHeader::parse(datagram) else {
            return violated(
                || format!("host {} seals what it sends to host {}", ends.0, ends.1),
                || "a packet in the clear".to_owned(),
            );
        };
        if header.kind.is_some() {
            return Ok(());
        }
        let numbers = self.numbers.entry(ends).or_default();
        if header.number <= numbers.last {
            let last = numbers.last;
            let Some(rest) = numbers.beginnings.checked_sub(1) else {
                return violated(
                    || format!("host {} uses each number once towards host {}", ends.0, ends.1),
                    || format!("{} after {last}", header.number),
                );
            };
            numbers.beginnings = rest;
        }
        numbers.last = header.number;
        Ok(())
    }

    /// An end has opened a datagram of a peer.
    pub(crate) fn opened(&mut self, ends: Ends, datagram: &[u8]) -> Result<(), Violation> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let len = announced_len(rest).unwrap_or(rest.len()).clamp(1, rest.len());
            let (packet, behind) = rest.split_at(len);
            rest = behind;
            let Some(unopened) = self.unopened.get_mut(&(ends, hash(packet))) else {
                let kind = Packet::parse(Profile::Udp, packet).map(|packet| packet.header);
                return violated(
                    || {
                        format!(
                            "what host {} opens was sealed by host {}, and once",
                            ends.1, ends.0
                        )
                    },
                    || format!("{kind:?}"),
                );
            };
            *unopened -= 1;
            if *unopened == 0 {
                self.unopened.remove(&(ends, hash(packet)));
            }
        }
        Ok(())
    }
}

fn hash(packet: &[u8]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(packet);
    hasher.finish()
}

fn violated(
    expected: impl FnOnce() -> String,
    observed: impl FnOnce() -> String,
) -> Result<(), Violation> {
    Violation::unless(false, ViolationKind::Sealing, None, || (expected(), observed()))
}

impl Checker for Sealing {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        let HostEvent::Failed(call, RpcError { kind: FailureKind::PeerRestarted, .. }) =
            observation.event
        else {
            return Ok(());
        };
        let PlannedCall { from, to, .. } = *directory.call(call);
        let holds = !self.had_both((from, to)) || !directory.scenario.keeps_keys();
        Violation::unless(holds, ViolationKind::Sealing, call, || {
            (
                format!("hosts {from} and {to} keep the keys that both have"),
                format!("they agree upon others, which ends call {call}"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: u64) -> Vec<u8> {
        let mut bytes = vec![0; apus_wire::HEADER_LEN];
        (bytes[11], bytes[13]) = (0x14, 0x11);
        SealedHeader::seal(&mut bytes, number, false);
        bytes
    }

    #[test]
    fn a_packet_is_opened_once_by_the_host_that_it_was_sealed_for() {
        let mut sealing = Sealing::default();
        sealing.sealed((1, 2), b"packet");
        assert!(sealing.opened((2, 1), b"packet").is_err());
        assert!(sealing.opened((3, 2), b"packet").is_err());
        assert!(sealing.opened((1, 2), b"another").is_err());
        assert_eq!(sealing.opened((1, 2), b"packet"), Ok(()));
        assert!(sealing.opened((1, 2), b"packet").is_err());
    }

    #[test]
    fn a_peer_had_the_keys_of_two_sessions_in_one_life_or_was_restarted() {
        let mut sealing = Sealing::default();
        assert!(!sealing.had_both((1, 2)));
        sealing.agreed((2, 1), 7, 0);
        sealing.agreed((1, 2), 7, 0);
        assert!(!sealing.had_both((1, 2)), "one session");
        // Host 2 crashes.
        sealing.agreed((2, 1), 8, 1);
        sealing.agreed((1, 2), 8, 0);
        assert!(!sealing.had_both((1, 2)));
        // It agrees upon other keys, without a restart.
        sealing.agreed((1, 2), 9, 0);
        assert!(!sealing.had_both((1, 2)), "host 2 does not have them");
        sealing.agreed((2, 1), 9, 1);
        assert!(sealing.had_both((1, 2)));
    }

    #[test]
    fn numbers_restart_with_other_keys_only() {
        let mut sealing = Sealing::default();
        sealing.agreed((1, 2), 7, 0);
        for number in [2, 3, 9] {
            assert_eq!(sealing.left((1, 2), &datagram(number)), Ok(()));
        }
        // The initial numbers did not count as a restart.
        assert_eq!(sealing.left((1, 2), &datagram(1)), Ok(()));
        assert!(sealing.left((1, 2), &datagram(1)).is_err());
        sealing.agreed((1, 2), 7, 0);
        assert!(sealing.left((1, 2), &datagram(1)).is_err());
        sealing.agreed((1, 2), 8, 0);
        assert_eq!(sealing.left((1, 2), &datagram(1)), Ok(()));
        assert!(sealing.left((1, 2), &[0x11; 40]).is_err());
    }
}
