//! Two endpoints that communicate, and may restart, over a network that the host disturbs.

use crate::checker::Checker;
use crate::host::{Dice, Flying, Host};
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_seal::{Handshakes, Limits, Opener, REKEY_AFTER, SealEvent, Sealer};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const MILLIS: Duration = Duration::from_millis(1);

/// An endpoint.
struct End {
    handshakes: Handshakes,
    sealer: Option<Sealer>,
    /// The keys of the present association, and of the one before.
    openers: Vec<Opener>,
}

/// Totals of one run.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) handshakes: u64,
    pub(crate) rekeys: u64,
    pub(crate) refused: u64,
}

pub(crate) struct World {
    seed: u64,
    dice: Dice,
    now: Duration,
    ends: [End; 2],
    host: Host,
    flying: Vec<Flying>,
    checker: Checker,
    serial: u64,
    totals: Totals,
    restarts: u64,
    is_healing: bool,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 7))
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            dice: Dice(seed),
            now: Duration::ZERO,
            ends: [0, 1].map(|end| new_end(seed, end, 0)),
            host: Host::default(),
            flying: Vec::new(),
            checker: Checker::default(),
            serial: 0,
            totals: Totals::default(),
            restarts: 0,
            is_healing: false,
        }
    }

    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.dice.roll(40) {
            0..20 => {
                let end = self.dice.roll(2) as usize;
                self.send(end);
            }
            20..34 if !self.flying.is_empty() => {
                // Any packet in flight: the network reorders.
                let at = self.dice.roll(self.flying.len().min(8) as u64) as usize;
                let flying = self.flying.remove(at);
                for (to, packet) in self.host.bend(&mut self.dice, flying) {
                    self.arrive(to, &packet);
                }
            }
            34 | 35 => {
                let learnt = self.host.learn(&self.sessions_in_use());
                if let Some((to, packet)) = self.host.inject(&mut self.dice, &learnt) {
                    self.arrive(to, &packet);
                }
            }
            36 if self.dice.roll(10) == 0 => {
                let end = self.dice.roll(2) as usize;
                self.restarts += 1;
                self.ends[end] = new_end(self.seed, end, self.restarts);
            }
            37 => {
                let end = self.dice.roll(2) as usize;
                if let Some(sealer) = &mut self.ends[end].sealer {
                    let before = sealer.rekeys();
                    let hours = 1 + self.totals.packets as u32;
                    sealer.rekey_if_old(self.now + REKEY_AFTER * hours);
                    self.totals.rekeys += sealer.rekeys() - before;
                }
            }
            _ => {
                self.now += self.dice.roll(30) as u32 * MILLIS;
                self.tick();
            }
        }
    }

    /// Sessions whose first keys still open packets: both associations of each end, until the peer
    /// is two generations ahead.
    fn sessions_in_use(&self) -> Vec<u64> {
        let openers = self.ends.iter().flat_map(|end| &end.openers);
        let young = openers.filter(|opener| opener.rekeys() < 2);
        young.map(Opener::session).collect()
    }

    fn tick(&mut self) {
        for end in 0..2 {
            self.ends[end].handshakes.handle_timeout(self.now);
            self.sort_out(end);
        }
    }

    /// End `end` sends a packet of the protocol, or starts a handshake if it has no keys.
    fn send(&mut self, end: usize) {
        let peer = address(1 - end);
        let Some(sealer) = &mut self.ends[end].sealer else {
            let _ = self.ends[end].handshakes.want(self.now, peer, None);
            return self.sort_out(end);
        };
        self.serial += 1;
        let mut packet = vec![0; HEADER_LEN];
        (packet[11], packet[13]) = (0x10, 0x11);
        packet.extend(self.serial.to_le_bytes());
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let session = sealer.session();
        let Ok(tag) = sealer.seal(head, body) else {
            self.ends[end].handshakes.forget(peer);
            return self.sort_out(end);
        };
        packet.extend(tag);
        let number = SealedHeader::parse(&packet).unwrap().number;
        self.checker.sealed(self.seed, end, session, number, self.serial);
        self.totals.packets += 1;
        self.flying.push((1 - end, packet));
    }

    /// Delivers a packet to end `to`, with the other end's address as its source.
    fn arrive(&mut self, to: usize, packet: &[u8]) {
        let from = address(1 - to);
        let Some(header) = SealedHeader::parse(packet) else { return };
        let end = &mut self.ends[to];
        if !matches!(header.kind, None | Some(SealKind::Ready)) {
            end.handshakes.handle(self.now, from, None, &mut packet.to_vec());
            return self.sort_out(to);
        }
        for opener in &mut end.openers {
            let mut bytes = packet.to_vec();
            if let Ok(len) = opener.open(&mut bytes) {
                let present = end.sealer.as_ref().map(Sealer::session);
                let is_of_other_session = present != Some(opener.session());
                if header.kind.is_some() {
                    if is_of_other_session {
                        return;
                    }
                    end.handshakes.handle_ready(from, header.id, &bytes[HEADER_LEN..len]);
                } else {
                    let serial = bytes[HEADER_LEN..len].try_into().expect("a serial number");
                    self.checker.opened(self.seed, to, u64::from_le_bytes(serial));
                }
                if self.is_healing && is_of_other_session && header.kind.is_none() {
                    // Two handshakes crossed, and each end sends in another association. The
                    // protocol rejects the session and drops the keys (SEAL-11).
                    end.handshakes.forget(from);
                    self.sort_out(to);
                }
                return;
            }
        }
        self.totals.refused += 1;
        end.handshakes.without_key(self.now, from, None, packet);
        self.sort_out(to);
    }

    fn sort_out(&mut self, end: usize) {
        let World { ends, flying, totals, .. } = self;
        let it = &mut ends[end];
        while let Some(event) = it.handshakes.poll_event() {
            match event {
                SealEvent::Established(new) => {
                    totals.handshakes += 1;
                    it.sealer = Some(new.sealer);
                    it.openers.insert(0, new.opener);
                    it.openers.truncate(2);
                }
                SealEvent::Removed { session, .. } => {
                    if it.sealer.as_ref().is_some_and(|sealer| sealer.session() == session) {
                        it.sealer = None;
                        it.openers.clear();
                    }
                }
                SealEvent::Known { mut ready, session } => {
                    if let Some(sealer) = &mut it.sealer
                        && sealer.session() == session
                        && let Ok(tag) = sealer.seal(&mut ready.packet, &mut [])
                    {
                        ready.packet.extend(tag);
                        flying.push((1 - end, ready.packet));
                    }
                }
            }
        }
        while let Some(datagram) = it.handshakes.poll_transmit() {
            flying.push((1 - end, datagram.packet));
        }
    }

    /// Lets all packets pass; both ends must communicate again.
    pub(crate) fn heal(mut self) -> Totals {
        self.flying.clear();
        self.is_healing = true;
        for _ in 0..400 {
            self.now += 20 * MILLIS;
            self.tick();
            self.send(0);
            self.send(1);
            while !self.flying.is_empty() {
                let (to, packet) = self.flying.remove(0);
                self.arrive(to, &packet);
            }
        }
        let refused = self.totals.refused;
        for _ in 0..20 {
            self.send(0);
            self.send(1);
            while !self.flying.is_empty() {
                let (to, packet) = self.flying.remove(0);
                self.arrive(to, &packet);
            }
        }
        assert_eq!(
            self.totals.refused, refused,
            "seed {}: they do not understand each other",
            self.seed
        );
        let sessions = self.ends.each_ref().map(|end| end.sealer.as_ref().map(Sealer::session));
        assert!(
            sessions[0].is_some() && sessions[0] == sessions[1],
            "seed {}: {sessions:?}",
            self.seed
        );
        self.totals
    }
}

fn new_end(seed: u64, end: usize, life: u64) -> End {
    let policy = StubPolicy { name: end as u64, trust: 99, limit: 1 << 20 };
    let negotiator = StubNegotiator::new(policy, seed << 20 | life << 1 | end as u64);
    let limits = Limits::default();
    let handshakes =
        Handshakes::new(Arc::new(negotiator), address(end).port(), limits, Duration::ZERO);
    End { handshakes, sealer: None, openers: Vec::new() }
}
