//! The protocol over the driver's transmit half: the network, as far as the core lock guards it.
//!
//! The receive half belongs to the leader ([`Receiver`](crate::engine::receive::Receiver)).

use super::observation::Observation;
use crate::engine::tracer::Tracer;
use apus_driver::{
    Arrival, Burst, Ecn, NetworkError, NetworkReport, Paths, ReceiveHalf, TransmitHalf,
};
use apus_proto::{
    Address, Call, CommandError, Datagram, Event, Instant, Neighbours, Payload, Profile, Published,
    Rejected, RpcKey, Transmit, Transport, Unreachable,
};
use apus_trace::clock::ticks;
use apus_trace::recorder;
use smallvec::SmallVec;
use std::io;

/// The protocol, the driver's transmit half, and the addresses from which packets leave.
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

    /// Returns the protocol, to be read.
    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the protocol, for what it exchanges with others of the host.
    pub(crate) const fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Sends a request. If the call is traced, `on_traced` runs before anything is done for it.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        call: Call,
        on_traced: &mut dyn FnMut(),
    ) -> Result<RpcKey, Rejected> {
        self.transport.call_observed(now, call, on_traced)
    }

    /// Sets the deadline of a call. Does nothing if the call has ended.
    pub(crate) fn set_deadline(&mut self, rpc: RpcKey, deadline: Instant) {
        let _ = self.transport.set_deadline(rpc, deadline);
    }

    /// Replies to a request.
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the payload.
    pub(crate) fn reply(
        &mut self,
        now: Instant,
        rpc: RpcKey,
        payload: Payload,
    ) -> Result<(), Rejected> {
        self.transport.reply(now, rpc, payload)
    }

    /// Cancels a call.
    ///
    /// # Errors
    ///
    /// As for [`Transport::cancel`].
    pub(crate) fn cancel(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.transport.cancel(now, rpc)
    }

    /// Drops a request without a reply.
    ///
    /// # Errors
    ///
    /// As for [`Transport::abandon`].
    pub(crate) fn abandon(&mut self, now: Instant, rpc: RpcKey) -> Result<(), CommandError> {
        self.transport.abandon(now, rpc)
    }

    /// Reports that nothing waited unread in the socket at `since`.
    pub(crate) fn begin_reading(&mut self, since: Instant) {
        self.transport.begin_reading(since);
    }

    /// Reports that everything that had arrived by `read_up_to` has been handled.
    pub(crate) fn finish_reading(&mut self, read_up_to: Instant) {
        self.transport.finish_reading(read_up_to);
    }

    /// Reports that the system has dropped packets before `now`.
    pub(crate) fn handle_overflow(&mut self, now: Instant) {
        self.transport.handle_overflow(now);
    }

    /// Hands the packets of the last receive to the protocol, which may accept `room` requests. Returns their bytes.
    pub(crate) fn handle_packets(
        &mut self,
        receive: &mut dyn ReceiveHalf,
        now: Instant,
        room: usize,
        observation: &mut Observation,
    ) -> usize {
        let mut bytes = 0;
        self.take_sessions(now);
        let Self { transport, paths, .. } = self;
        let Observation { counters, tracer, .. } = observation;
        transport.set_request_room(room);
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

    /// Tells the protocol what the network reports about a packet that was sent earlier.
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

    /// Does what is due. Returns whether the protocol's quota has left something over.
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

    /// Sends what may leave, but not much more than `quota` bytes of payload. Returns whether the
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
                // The driver may have learnt from a packet that the protocol has forgotten a session.
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

    /// Hands the sessions that the driver has agreed upon to the protocol. Returns whether there were any.
    fn take_sessions(&mut self, now: Instant) -> bool {
        let mut some = false;
        while let Some((peer, session)) = self.transmit.poll_session() {
            self.transport.establish_session(now, peer, session);
            some = true;
        }
        some
    }

    /// Does what is due in the driver.
    pub(crate) fn handle_driver_timeout(&mut self) {
        self.transmit.handle_timeout();
    }

    /// Returns when the driver's next timer is due.
    pub(crate) fn driver_timeout(&self) -> Option<std::time::Instant> {
        self.transmit.next_timeout()
    }

    /// Gives to the kernel what the driver holds back, and records it. `began` is when the driver
    /// got the first of `packets` packets, 0 if nothing is recorded. Packets that the driver has
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

    /// Returns whether the protocol has an event.
    pub(crate) fn has_events(&self) -> bool {
        self.transport.has_events()
    }

    /// Returns the protocol's next event.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.transport.poll_event()
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

    /// Asks all peers with a session to freeze their traces. Returns their number.
    pub(crate) fn freeze_peers(&mut self, now: Instant) -> usize {
        self.transport.freeze_peers(now)
    }

    /// Reports what other transports of the host do.
    pub(crate) fn observe_neighbours(&mut self, neighbours: &Neighbours<'_>) {
        self.transport.observe_neighbours(neighbours);
    }

    /// Returns what other transports of the host must know.
    pub(crate) fn publish(&mut self) -> Published<'_> {
        self.transport.publish()
    }

    /// Charges `bytes` received through shared memory to the receive buffer.
    pub(crate) fn charge_external_payload(&mut self, bytes: usize) {
        self.transport.charge_external_payload(bytes);
    }

    /// Frees `bytes` of the receive buffer: the application has the message.
    pub(crate) fn payload_consumed(&mut self, bytes: usize) {
        self.transport.payload_consumed(bytes);
    }

    /// Ends all RPCs. Packets that say so may still be sent.
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.transport.shut_down(now);
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
