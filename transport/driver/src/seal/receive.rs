//! The receiving half: opens packets, and passes packets of handshakes to [`SealHandle`].

use super::handle::{Change, SealHandle, canonical};
use crate::{Arrival, BulkSource, Ecn, NetworkError, NetworkReport, ReceiveHalf};
use apus_seal::{OpenError, Opener, SealCounters};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The keys of a peer. The previous keys distinguish packets that were in flight during the
/// replacement from forged packets, and open packets of a peer that does not use the present keys
/// (SEAL-16).
struct Keys {
    current: Opener,
    before: Option<Opener>,
}

/// An opened packet.
struct Opened {
    from: SocketAddr,
    to: Option<IpAddr>,
    ecn: Ecn,
    place: Range<usize>,
}

/// The receiving half of a sealed driver.
pub(super) struct OpenedReceive {
    inner: Box<dyn ReceiveHalf>,
    opening: Opening,
}

/// The state other than the inner half.
struct Opening {
    handle: Arc<SealHandle>,
    counters: Arc<SealCounters>,
    keys: HashMap<SocketAddr, Keys>,
    /// The packets of the last receive.
    bytes: Vec<u8>,
    ready: Vec<Opened>,
}

impl OpenedReceive {
    pub(super) fn new(inner: Box<dyn ReceiveHalf>, handle: Arc<SealHandle>) -> Self {
        let counters = handle.counters().clone();
        let opening = Opening {
            handle,
            counters,
            keys: HashMap::new(),
            bytes: Vec::new(),
            ready: Vec::new(),
        };
        Self { inner, opening }
    }
}

impl Opening {
    /// Applies the results of handshakes.
    #[cold]
    fn take_changes(&mut self) {
        let changes = self.handle.change(|_, state| std::mem::take(&mut state.openers));
        for (peer, change) in changes {
            match change {
                Change::Set(current) => {
                    let before = self.keys.remove(&peer).map(|keys| keys.current);
                    self.keys.insert(peer, Keys { current, before });
                }
                Change::Remove(session) => {
                    let is_it = |keys: &Keys| keys.current.session() == session;
                    if self.keys.get(&peer).is_some_and(is_it) {
                        self.keys.remove(&peer);
                    }
                }
            }
        }
    }

    /// Handles a packet from the inner driver.
    fn take(&mut self, arrival: &Arrival<'_>) {
        let Some(header) = SealedHeader::parse(arrival.packet) else {
            self.counters.clear_packets.add(1);
            return;
        };
        if !matches!(header.kind, None | Some(SealKind::Ready)) {
            return self.take_handshake(arrival);
        }
        if self.handle.is_for_receive() {
            self.take_changes();
        }
        let from = canonical(arrival.from);
        let Some(keys) = self.keys.get_mut(&from) else {
            self.counters.without_key.add(1);
            return self.answer_without_key(arrival);
        };
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(arrival.packet);
        let mut opened = keys.current.open(&mut self.bytes[begin..]);
        let is_current = opened.is_ok();
        let mut is_late = false;
        if opened.is_err()
            && let Some(before) = &mut keys.before
        {
            self.bytes[begin..].copy_from_slice(arrival.packet);
            let late = before.open(&mut self.bytes[begin..]);
            is_late = late.is_ok()
                && keys.current.has_opened()
                && self.handle.change(|now, state| state.handshakes.is_new(now, from));
            opened = late.or(opened);
        } else if opened.is_ok() && keys.before.is_some() && keys.current.has_replaced() {
            keys.before = None;
        }
        match opened {
            // Its session has ended. The protocol would offer a new session, as if the present one
            // were lost (SEAL-11).
            Ok(_) if is_late => {
                self.bytes.truncate(begin);
                self.counters.late.add(1);
            }
            Ok(len) if header.kind.is_none() => {
                self.counters.packets_opened.add(1);
                let place = begin..begin + len;
                let Arrival { from, to, ecn, .. } = *arrival;
                self.ready.push(Opened { from, to, ecn, place });
            }
            Ok(len) => {
                let content = self.bytes[begin + HEADER_LEN..begin + len].to_vec();
                self.bytes.truncate(begin);
                if is_current {
                    self.handle.change(|_, state| {
                        state.handshakes.handle_ready(from, header.id, &content);
                    });
                }
            }
            Err(error) => {
                self.bytes.truncate(begin);
                self.refuse(error, arrival);
            }
        }
    }

    #[cold]
    fn refuse(&mut self, error: OpenError, arrival: &Arrival<'_>) {
        match error {
            OpenError::Replayed => self.counters.replays.add(1),
            OpenError::Malformed => self.counters.clear_packets.add(1),
            OpenError::Forged => {
                self.counters.forgeries.add(1);
                self.answer_without_key(arrival);
            }
            OpenError::Exhausted => {
                let from = canonical(arrival.from);
                self.handle.change(|_, state| state.handshakes.forget(from));
            }
        }
    }

    /// The peer may have keys that this end lost.
    #[cold]
    fn answer_without_key(&self, arrival: &Arrival<'_>) {
        let from = canonical(arrival.from);
        self.handle.change(|now, state| {
            state.handshakes.without_key(now, from, arrival.to, arrival.packet);
        });
    }

    #[cold]
    fn take_handshake(&self, arrival: &Arrival<'_>) {
        let from = canonical(arrival.from);
        let mut packet = arrival.packet.to_vec();
        self.handle.change(|now, state| {
            state.handshakes.handle(now, from, arrival.to, &mut packet);
        });
    }
}

impl ReceiveHalf for OpenedReceive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        let Self { inner, opening } = self;
        opening.bytes.clear();
        opening.ready.clear();
        let received = inner.receive(limit)?;
        if received > 0 {
            inner.drain(&mut |arrival| opening.take(&arrival));
        }
        // Return more than the number of opened packets, so that the caller sends the handshakes'
        // packets and polls again.
        Ok(received)
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn overflowed(&self) -> u64 {
        self.inner.overflowed()
    }

    fn bulk(&self) -> Option<BulkSource<'_>> {
        self.inner.bulk()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        let Opening { bytes, ready, .. } = &mut self.opening;
        for Opened { from, to, ecn, place } in ready.drain(..) {
            sink(Arrival { from, to, ecn, packet: &bytes[place] });
        }
    }

    fn take_warning(&mut self) -> Option<String> {
        self.inner.take_warning()
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.inner.reports(sink);
        if self.opening.handle.has_refused() {
            let refused = self.opening.handle.change(|_, state| std::mem::take(&mut state.refused));
            for (peer, packet) in refused {
                let error = NetworkError::Untrusted;
                sink(NetworkReport { peer, error, packet: &packet });
            }
        }
    }
}

impl AsFd for OpenedReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::SealClock;
    use super::super::handle::SealState;
    use super::*;
    use apus_seal::stub::{StubNegotiator, StubPolicy};
    use apus_seal::{Handshakes, Limits, SealEvent, Sealer};
    use std::net::UdpSocket;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    type Queue = Arc<Mutex<Vec<Vec<u8>>>>;

    const START: Duration = Duration::ZERO;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7);

    /// Receives the packets that a test puts into its queue.
    struct FromQueue(Queue, UdpSocket);

    impl ReceiveHalf for FromQueue {
        fn receive(&mut self, _limit: usize) -> io::Result<usize> {
            Ok(self.0.lock().unwrap().len())
        }

        fn may_have_more(&self) -> bool {
            false
        }

        fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
            for packet in self.0.lock().unwrap().drain(..) {
                sink(Arrival { from: PEER, to: None, ecn: Ecn::NotCapable, packet: &packet });
            }
        }

        fn reports(&mut self, _sink: &mut dyn FnMut(NetworkReport<'_>)) {}
    }

    impl AsFd for FromQueue {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.1.as_fd()
        }
    }

    fn stub(seed: u64) -> Arc<StubNegotiator> {
        Arc::new(StubNegotiator::new(StubPolicy { name: 1, trust: 2, limit: 1 << 30 }, seed))
    }

    /// A receiving half, and its peer.
    struct World {
        half: OpenedReceive,
        time: Arc<AtomicU64>,
        queue: Queue,
        peer: Handshakes,
    }

    impl World {
        fn new() -> Self {
            let time = Arc::new(AtomicU64::new(0));
            let clock = SealClock::Simulated(time.clone());
            let handle = Arc::new(SealHandle::new(stub(1), 9, Limits::default(), clock));
            let queue = Queue::default();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let inner = Box::new(FromQueue(queue.clone(), socket));
            let peer = Handshakes::new(stub(2), 7, Limits::default(), START);
            Self { half: OpenedReceive::new(inner, handle), time, queue, peer }
        }

        fn receive(&mut self, packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
            self.queue.lock().unwrap().extend(packets);
            self.half.receive(32).unwrap();
            let mut opened = Vec::new();
            self.half.drain(&mut |arrival| opened.push(arrival.packet.to_vec()));
            opened
        }

        /// Runs a handshake that the peer starts. Returns the peer's sealer.
        fn connect(&mut self) -> Sealer {
            let here = SocketAddr::from(([127, 0, 0, 1], 9));
            self.peer.want(START, here, None).unwrap();
            for _ in 0..4 {
                let packets = std::iter::from_fn(|| self.peer.poll_transmit());
                let packets = packets.map(|datagram| datagram.packet).collect();
                self.receive(packets);
                let take = |state: &mut SealState| std::mem::take(&mut state.outbox);
                let answers = self.half.opening.handle.change(|_, state| take(state));
                for mut datagram in answers {
                    if SealedHeader::parse(&datagram.packet).unwrap().kind == Some(SealKind::Ready)
                    {
                        let id = SealedHeader::parse(&datagram.packet).unwrap().id;
                        self.peer.handle_ready(here, id, &[]);
                    }
                    self.peer.handle(START, here, None, &mut datagram.packet);
                }
            }
            match self.peer.poll_event() {
                Some(SealEvent::Established(new)) => new.sealer,
                other => panic!("{other:?}"),
            }
        }
    }

    fn seal(sealer: &mut Sealer) -> Vec<u8> {
        let mut packet = vec![0; HEADER_LEN];
        (packet[11], packet[13]) = (0x14, 0x11);
        let tag = sealer.seal(&mut packet, &mut []).unwrap();
        packet.extend(tag);
        packet
    }

    /// SEAL-16. (Seed 2000559: a packet from before a restart ended calls of the new life. Seed
    /// 4100017: an end continued to send in the previous association; its packets were dropped as
    /// late forever.)
    #[test]
    fn packets_of_the_association_before_are_opened_until_the_peer_uses_the_new_one() {
        let mut world = World::new();
        let mut first = world.connect();
        let late: Vec<_> = (0..5).map(|_| seal(&mut first)).collect();
        let mut second = world.connect();
        assert_ne!(first.session(), second.session());
        let new = seal(&mut second);
        assert_eq!(world.receive(vec![late[0].clone(), new, late[0].clone()]).len(), 2);
        let dropped = |world: &World| {
            let counters = &world.half.opening.counters;
            [counters.replays.get(), counters.late.get(), counters.no_keys_sent.get()]
        };
        assert_eq!(dropped(&world), [1, 0, 0]);
        assert_eq!(world.receive(vec![late[2].clone()]).len(), 0);
        assert_eq!(dropped(&world), [1, 1, 0], "it is not forged: the keys are known");
        world.time.store(199_999_999, Ordering::Relaxed);
        assert_eq!(world.receive(vec![late[3].clone()]).len(), 0);
        assert_eq!(dropped(&world), [1, 2, 0]);
        world.time.store(200_000_000, Ordering::Relaxed);
        assert_eq!(world.receive(vec![late[4].clone()]).len(), 1, "the peer has gone on with it");
        for _ in 0..4_096 {
            let packet = seal(&mut second);
            assert_eq!(world.receive(vec![packet]).len(), 1);
        }
        assert_eq!(world.receive(vec![late[1].clone()]).len(), 0);
        assert_eq!(
            dropped(&world),
            [2, 2, 0],
            "its keys are gone, and the new ones have used its number"
        );
    }

    /// SEALED-2.
    #[test]
    fn nothing_passes_that_was_not_opened() {
        let mut world = World::new();
        let mut sealer = world.connect();
        let mut clear = seal(&mut sealer);
        clear[13] = 0x11;
        let mut forged = seal(&mut sealer);
        forged[20] ^= 1;
        let garbage = (0..64).map(|len| vec![0x22; len]).collect::<Vec<_>>();
        assert!(world.receive([vec![clear, forged], garbage].concat()).is_empty());
        let packet = seal(&mut sealer);
        assert_eq!(world.receive(vec![packet]).len(), 1);
    }
}
