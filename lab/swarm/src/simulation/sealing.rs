//! Sealing of an observed host: the checker observes sealed, sent and opened packets, and a host is
//! on the path.

use std::cell::RefCell;
use std::rc::Rc;

use apus_driver::Session;
use apus_sim::message::HostId;
use apus_workload::time::Nanos;
use bytes::Bytes;

use super::sealed_end::SealedEnd;
use super::stack::OutgoingPacket;
use crate::observer::Observer;

/// The sealing during one life of a host.
pub(super) struct Sealing {
    id: HostId,
    observer: Rc<RefCell<Observer>>,
    end: SealedEnd,
}

impl Sealing {
    /// Returns the sealing of a host that starts now, if packets are sealed.
    pub(super) fn new(
        id: HostId,
        incarnation: u64,
        observer: &Rc<RefCell<Observer>>,
        now: Nanos,
    ) -> Option<Self> {
        let scenario = &observer.borrow().directory.scenario;
        scenario.sealed?;
        let life = incarnation << 32 | u64::from(id);
        let seed = scenario.seed.wrapping_mul(0xa24b_aed4_963e_e407) ^ life;
        let end = SealedEnd::new(id, seed, &scenario.config, now);
        Some(Self { id, observer: Rc::clone(observer), end })
    }

    /// Seals a burst; the result leaves with [`Sealing::flush`].
    pub(super) fn seal(&mut self, now: Nanos, burst: &[OutgoingPacket]) {
        if self.end.send(now, burst) {
            let mut observer = self.observer.borrow_mut();
            for packet in burst {
                observer.sealing.sealed((self.id, packet.to), &packet.bytes);
            }
        }
    }

    /// Returns the outgoing packets: sealed packets and handshakes.
    pub(super) fn flush(&mut self, now: Nanos) -> impl Iterator<Item = OutgoingPacket> {
        let datagrams = self.end.flush(now);
        let mut observer = self.observer.borrow_mut();
        for datagram in &datagrams {
            let left = observer.sealing.left((self.id, datagram.to), &datagram.bytes);
            observer.record(left);
        }
        datagrams.into_iter()
    }

    /// Returns the datagrams that arrive in place of this datagram after the host on the path, with
    /// their stated senders.
    pub(super) fn arrivals(&self, from: HostId, datagram: &Bytes) -> Vec<(HostId, Bytes)> {
        match &mut self.observer.borrow_mut().on_path {
            Some(host) => host.pass(from, self.id, datagram),
            None => vec![(from, datagram.clone())],
        }
    }

    /// Returns the contents of a datagram, if it can be opened.
    pub(super) fn open(&mut self, now: Nanos, from: HostId, datagram: Bytes) -> Option<Bytes> {
        let opened = self.end.open(now, from, datagram)?;
        let mut observer = self.observer.borrow_mut();
        let checked = observer.sealing.opened((from, self.id), &opened);
        observer.record(checked);
        Some(opened)
    }

    /// Returns a session that has not been passed to the protocol yet, with its peer.
    pub(super) fn poll_session(&mut self) -> Option<(HostId, Session)> {
        let (peer, session) = self.end.poll_session()?;
        let mut observer = self.observer.borrow_mut();
        let life = observer.directory.incarnation(self.id);
        observer.sealing.agreed((self.id, peer), session.number, life);
        Some((peer, session))
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.end.next_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.end.handle_timeout(now);
    }
}
