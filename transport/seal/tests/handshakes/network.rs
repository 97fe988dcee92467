//! Two endpoints, and a network that a test can disturb.

use apus_seal::{
    Datagram, Handshakes, Limits, Negotiator, OpenError, Opener, SealEvent, Sealer, ServerLife,
};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const MILLIS: Duration = Duration::from_millis(1);

/// The start of each test.
pub(crate) const START: Duration = Duration::ZERO;

/// An endpoint and the keys that it has.
pub(crate) struct End {
    pub(crate) address: SocketAddr,
    pub(crate) handshakes: Handshakes,
    pub(crate) keys: Option<(Sealer, Opener)>,
    /// READY packets that prove possession of the keys.
    known: VecDeque<Datagram>,
    /// Replaced and removed keys.
    pub(crate) earlier: Vec<(Sealer, Opener)>,
    /// What servers have stated about their lives, by handshake.
    pub(crate) lives: Vec<Option<ServerLife>>,
}

impl End {
    pub(crate) fn new(port: u16, negotiator: Arc<dyn Negotiator>) -> Self {
        Self::with_limits(port, negotiator, Limits::default())
    }

    pub(crate) fn with_limits(port: u16, negotiator: Arc<dyn Negotiator>, limits: Limits) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let handshakes = Handshakes::new(negotiator, port, limits, START);
        let (keys, known, earlier, lives) = Default::default();
        Self { address, handshakes, keys, known, earlier, lives }
    }

    pub(crate) fn session(&self) -> Option<u64> {
        self.keys.as_ref().map(|(sealer, _)| sealer.session())
    }

    /// Handles a datagram as a driver does.
    pub(crate) fn receive(&mut self, now: Duration, from: SocketAddr, mut packet: Vec<u8>) {
        let header = SealedHeader::parse(&packet).expect("a packet of version 2");
        if matches!(header.kind, None | Some(SealKind::Ready)) {
            let Some((_, opener)) = &mut self.keys else {
                return self.handshakes.without_key(now, from, None, &packet);
            };
            let original = packet.clone();
            match opener.open(&mut packet) {
                Ok(len) => {
                    self.handshakes.handle_ready(from, header.id, &packet[HEADER_LEN..len]);
                }
                Err(OpenError::Forged) => self.handshakes.without_key(now, from, None, &original),
                Err(_) => {}
            }
        } else {
            self.handshakes.handle(now, from, None, &mut packet);
        }
        self.take_events();
    }

    pub(crate) fn take_events(&mut self) {
        while let Some(event) = self.handshakes.poll_event() {
            let before = match event {
                SealEvent::Established(new) => {
                    self.lives.push(new.server_life);
                    self.keys.replace((new.sealer, new.opener))
                }
                SealEvent::Removed { session, .. } if Some(session) == self.session() => {
                    self.keys.take()
                }
                SealEvent::Removed { .. } => None,
                SealEvent::Known { mut ready, session } => {
                    if let Some((sealer, _)) = &mut self.keys
                        && sealer.session() == session
                    {
                        let tag = sealer.seal(&mut ready.packet, &mut []).expect("a number");
                        ready.packet.extend(tag);
                        self.known.push_back(ready);
                    }
                    None
                }
            };
            self.earlier.extend(before);
        }
    }

    /// Returns the next packet to be sent.
    pub(crate) fn poll_transmit(&mut self) -> Option<Datagram> {
        self.known.pop_front().or_else(|| self.handshakes.poll_transmit())
    }

    /// Seals a packet of the protocol.
    pub(crate) fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let (sealer, _) = self.keys.as_mut().expect("keys");
        let mut packet = vec![0; HEADER_LEN];
        packet[11] = 0x10;
        packet[13] = 0x11;
        packet.extend(payload);
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let tag = sealer.seal(head, body).expect("the key may seal more");
        packet.extend(tag);
        packet
    }

    /// Opens a packet of the protocol.
    pub(crate) fn open(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (_, opener) = self.keys.as_mut()?;
        let mut packet = packet.to_vec();
        let len = opener.open(&mut packet).ok()?;
        Some(packet[HEADER_LEN..len].to_vec())
    }
}

/// Exchanges packets between both ends from `now` until no timer is due before `until`. `bend` may
/// modify, drop or duplicate a datagram. Returns the time at the end.
pub(crate) fn run_bent(
    ends: &mut [End; 2],
    mut now: Duration,
    until: Duration,
    mut bend: impl FnMut(Duration, Datagram) -> Vec<Datagram>,
) -> Duration {
    loop {
        let mut queue = VecDeque::new();
        for end in ends.iter_mut() {
            end.handshakes.handle_timeout(now);
            end.take_events();
            while let Some(datagram) = end.poll_transmit() {
                queue.push_back((end.address, datagram));
            }
        }
        while let Some((from, datagram)) = queue.pop_front() {
            for datagram in bend(now, datagram) {
                let Some(end) = ends.iter_mut().find(|end| end.address == datagram.to) else {
                    continue;
                };
                end.receive(now, from, datagram.packet);
                let address = end.address;
                while let Some(datagram) = end.poll_transmit() {
                    queue.push_back((address, datagram));
                }
            }
        }
        let next = ends.iter().filter_map(|end| end.handshakes.next_timeout()).min();
        match next {
            Some(next) if next <= until => now = now.max(next),
            _ => return now,
        }
    }
}

/// Exchanges packets between both ends until `until`.
pub(crate) fn run(ends: &mut [End; 2], now: Duration, until: Duration) {
    run_bent(ends, now, until, |_, datagram| vec![datagram]);
}

/// Makes the first end start a handshake with the second, and runs both for 5 ms.
pub(crate) fn connect(ends: &mut [End; 2], now: Duration) {
    let peer = ends[1].address;
    ends[0].handshakes.want(now, peer, None).expect("no failure is known");
    run(ends, now, now + 5 * MILLIS);
}

/// Asserts that both ends have the same keys, in both directions.
pub(crate) fn assert_connected(ends: &mut [End; 2]) {
    assert!(ends[0].session().is_some(), "keys at the first end");
    assert_eq!(ends[0].session(), ends[1].session());
    for sender in [0, 1] {
        let packet = ends[sender].seal(b"content");
        assert_eq!(ends[1 - sender].open(&packet).as_deref(), Some(&b"content"[..]));
        assert_eq!(ends[1 - sender].open(&packet), None, "once");
    }
}
