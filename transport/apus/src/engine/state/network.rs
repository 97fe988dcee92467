//! The protocol over the driver's transmit half: the network, as far as the core lock guards it.
//!
//! The receive half belongs to the leader ([`Receiver`](crate::engine::paths::receive::Receiver)).

use super::observation::Observation;
use crate::engine::tracer::Tracer;
use apus_driver::{
    Arrival, Burst, Ecn, NetworkError, NetworkReport, Paths, PeerLife, ReceiveHalf, Session,
    TransmitHalf,
};
use apus_proto::{
    Address, CommandError, Datagram, Instant, Payload, Profile, Rejected, StatedLife, Transmit,
    Transport, Unreachable,
};
use apus_trace::clock::ticks;
use apus_trace::recorder;
use smallvec::SmallVec;
use std::io;

/// The protocol, the driver's transmit half, and the source addresses of packets.
pub(crate) struct Network {
    transport: Transport,
    transmit: Box<dyn TransmitHalf>,
    paths: Paths,
}

impl Network {
    pub(crate) fn new(transport: Transport, transmit: Box<dyn TransmitHalf>) -> Self {
        Self {
            paths: Paths::new(transport.config().profile() == Profile::Kernel),
            transport,
            transmit,
        }
    }

    /// Returns the protocol.
    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the protocol, for commands and events that involve neither the driver nor the paths.
    #[inline]
    pub(crate) const fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Runs a command that takes a payload. If the protocol rejects it, `payload` is back in its
    /// place.
    ///
    /// # Errors
    ///
    /// The reason of the rejection.
    #[inline]
    pub(crate) fn send_payload<T>(
        &mut self,
        payload: &mut Payload,
        command: impl FnOnce(&mut Transport, Payload) -> Result<T, Rejected>,
    ) -> Result<T, CommandError> {
        command(&mut self.transport, std::mem::take(payload)).map_err(|rejected| {
            *payload = rejected.payload;
            rejected.reason
        })
    }

    /// Hands the packets of the last receive to the protocol, which may accept `room` requests of
    /// `bound` that may wait.
    /// Returns their bytes.
    pub(crate) fn handle_packets(
        &mut self,
        receive: &mut dyn ReceiveHalf,
        now: Instant,
        (room, bound): (usize, usize),
        observation: &mut Observation,
    ) -> usize {
        let mut bytes = 0;
        self.take_sessions(now);
        let Self { transport, paths, .. } = self;
        let Observation { counters, tracer, .. } = observation;
        transport.share_request_room(room, bound);
        counters.receive_batches += 1;
        receive.drain(&mut |arrival: Arrival<'_>| {
            bytes += arrival.packet.len();
            let is_marked = arrival.ecn == Ecn::CongestionExperienced;
            counters.congestion_marks += u64::from(is_marked);
            if let Some(local) = arrival.to {
                paths.note(arrival.from, local);
            }
            let datagram = Datagram { from: arrival.from, bytes: arrival.packet, is_marked };
            let packets = transport.handle_datagram(now, datagram);
            counters.packets_arrived += packets as u64;
            tracer.fetch(transport);
        });
        bytes
    }

    /// Forwards an ICMP or socket error for an earlier packet to the protocol.
    pub(crate) fn handle_report(&mut self, report: &NetworkReport<'_>, now: Instant) {
        let trouble = match report.error {
            NetworkError::PortClosed => Unreachable::PortClosed,
            NetworkError::ProtocolUnreachable => Unreachable::Protocol,
            NetworkError::HostUnreachable => Unreachable::Host,
            NetworkError::NotPermitted => Unreachable::NotPermitted,
            NetworkError::Untrusted => Unreachable::Untrusted,
            NetworkError::TooBig => return self.renew_packet_limit(report.peer),
            // A later driver may report more.
            _ => return,
        };
        self.transport.handle_returned(now, report.peer, trouble, report.packet);
    }

    /// Handles due timers. Returns whether the protocol's quota has deferred work.
    #[must_use]
    pub(crate) fn handle_timers(&mut self, now: Instant, tracer: &mut Tracer) -> bool {
        if self.next_timeout() > now {
            return false;
        }
        self.transport.handle_timeout(now);
        tracer.fetch(&mut self.transport);
        self.next_timeout() <= now
    }

    /// Returns when the protocol's next timer is due.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.transport.next_timeout().map_or(Instant::NEVER, |(at, _)| at)
    }

    /// Sends packets that may leave, up to about `quota` bytes of payload. Returns whether the
    /// quota ended it.
    ///
    /// # Errors
    ///
    /// The driver's: it is broken.
    pub(crate) fn transmit(
        &mut self,
        mut quota: usize,
        now: Instant,
        tracer: &mut Tracer,
    ) -> io::Result<bool> {
        let (mut began, mut packets) = (0, 0);
        if !self.transmit.has_room() {
            self.transmit.flush()?;
        }
        let mut more = false;
        self.take_sessions(now);
        while self.transmit.has_room() {
            if quota == 0 {
                more = true;
                break;
            }
            // Borrowed, not moved out of the option: a move of this large value costs a copy per
            // packet.
            let next = self.transport.poll_transmit(now);
            let Some(transmit) = &next else {
                // A packet may have shown the driver that the protocol has dropped a session.
                if self.take_sessions(now) {
                    continue;
                }
                break;
            };
            // A packet without payload counts, too: there may be any number of empty messages.
            quota = quota.saturating_sub(transmit.payload_len().max(1));
            if packets == 0 {
                began = recorder::stamp();
            }
            packets += transmit.packets();
            send(&mut *self.transmit, &self.paths, transmit)?;
            tracer.fetch(&mut self.transport);
        }
        tracer.fetch(&mut self.transport);
        self.flush(began, packets, tracer)?;
        Ok(more)
    }

    /// Hands the sessions that the driver has established to the protocol. Returns whether there
    /// were any.
    fn take_sessions(&mut self, now: Instant) -> bool {
        let mut some = false;
        while let Some(Session { peer, number, life }) = self.transmit.poll_session() {
            let life = life.map(|PeerLife { age, stated_within, is_other }| StatedLife {
                age,
                stated_within,
                is_other,
            });
            self.transport.establish_session(now, peer, number, life);
            some = true;
        }
        some
    }

    /// Handles due timers of the driver.
    pub(crate) fn handle_driver_timeout(&mut self) {
        self.transmit.handle_timeout();
    }

    /// Returns when the driver's next timer is due.
    pub(crate) fn driver_timeout(&self) -> Option<std::time::Instant> {
        self.transmit.next_timeout()
    }

    /// Gives packets that the driver holds back to the kernel, and records it. `began` is when the
    /// driver got the first of `packets` packets, 0 if not recorded. Packets that the driver has
    /// sent earlier, for lack of room, are recorded as sent now.
    fn flush(&mut self, began: u64, packets: usize, tracer: &mut Tracer) -> io::Result<()> {
        if tracer.has_unsent_pieces() {
            tracer.pieces_sent(recorder::stamp());
        }
        if self.transmit.has_pending() {
            self.transmit.flush()?;
        }
        if packets > 0 && began > 0 {
            let now = ticks();
            let took = now.saturating_sub(began);
            recorder::record_at(now, apus_trace::Event::Send, packets as u32, took);
        }
        Ok(())
    }

    /// Returns whether the socket has room.
    pub(crate) fn has_room(&self) -> bool {
        self.transmit.has_room()
    }

    /// Asks the driver how long packets to `peer` may be.
    pub(crate) fn renew_packet_limit(&mut self, peer: Address) {
        let limit = self.transmit.packet_limit(peer);
        self.transport.set_packet_limit(peer, limit);
    }

    /// Has the protocol report the probe events that the tracer records now, if that has changed.
    pub(crate) fn renew_probe_filter(&mut self, tracer: &mut Tracer) {
        tracer.renew(&mut self.transport);
    }
}

/// Gives packets of the protocol to the driver.
#[inline(always)]
fn send(driver: &mut dyn TransmitHalf, paths: &Paths, transmit: &Transmit<'_>) -> io::Result<()> {
    let single = transmit.single_piece();
    let several: SmallVec<[&[u8]; 4]>;
    let payload = match &single {
        Some(piece) => std::slice::from_ref(piece),
        None => {
            several = transmit.payload().collect();
            &several
        }
    };
    driver.send(&Burst {
        to: transmit.to(),
        from: paths.local(transmit.to()),
        traffic_class: transmit.traffic_class(),
        headers: transmit.headers(),
        header_len: transmit.header_len(),
        payload,
        segment: transmit.segment(),
        coalesce: transmit.coalesce(),
    })
}
