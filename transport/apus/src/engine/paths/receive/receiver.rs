//! The leader's source of packets and messages.

use super::local::LocalReceiver;
use crate::engine::clock::Clock;
use crate::engine::waiting::{Descriptors, Signal, WakeConditions, WakeReasons};
use apus_driver::{BulkDelay, NetworkReport, ReceiveHalf};
use apus_local::{Arrivals, Local};
use apus_proto::{Instant, UnreadBounds};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Source of packets and messages. Locked by the leader alone.
pub(crate) struct Receiver {
    /// The driver's receive half.
    network: Box<dyn ReceiveHalf>,
    local: Option<LocalReceiver>,
    /// How long packets have waited in the driver.
    reading: UnreadBounds,
    /// Datagrams that the system has dropped for lack of room, as far as it was reported.
    overflowed: u64,
    /// Packets of the last receive from the network; at most 1 if packets that may wait follow.
    last_packets: usize,
    /// For how long they do not wake the leader.
    bulk_delay: BulkDelay,
    /// Whether local peers have been notified that this side sleeps.
    is_prepared: bool,
}

impl Receiver {
    /// Receives from `network`, which holds up to `capacity` bytes, and from the pairs of `local`
    /// if there is shared memory.
    pub(crate) fn new(
        network: Box<dyn ReceiveHalf>,
        capacity: usize,
        local: Option<Arc<Local>>,
    ) -> Self {
        // Each of two sockets holds as much.
        let sockets = 1 + usize::from(network.bulk().is_some());
        Self {
            network,
            local: local.map(LocalReceiver::new),
            reading: UnreadBounds::new(sockets * capacity),
            overflowed: 0,
            last_packets: 0,
            bulk_delay: BulkDelay::default(),
            is_prepared: false,
        }
    }

    /// Returns the state of unread packets.
    pub(in crate::engine) const fn reading(&mut self) -> &mut UnreadBounds {
        &mut self.reading
    }

    /// Returns whether to poll the network in this pass; then it counts as polled.
    pub(in crate::engine) fn is_network_due(&mut self) -> bool {
        self.local.as_mut().is_none_or(LocalReceiver::is_network_due)
    }

    /// Receives up to `quota` packets, or a few more, from the network. Returns their number.
    ///
    /// # Errors
    ///
    /// The driver's: it is broken.
    pub(in crate::engine) fn receive_network(&mut self, quota: usize) -> io::Result<usize> {
        let packets = self.network.receive(quota)?;
        let is_drained = self.bulk_delay.note_receive(self.network.bulk());
        self.last_packets = if is_drained { packets.min(1) } else { packets };
        if packets > 0 && self.network.may_have_more() {
            self.expect_network();
        }
        Ok(packets)
    }

    /// Returns whether the system has dropped packets for lack of room since the last call.
    pub(in crate::engine) fn take_overflow(&mut self) -> bool {
        let before = std::mem::replace(&mut self.overflowed, self.network.overflowed());
        self.overflowed != before
    }

    /// Returns the driver's receive half, which has the packets of the last receive.
    pub(in crate::engine) fn network(&mut self) -> &mut dyn ReceiveHalf {
        &mut *self.network
    }

    /// Passes the network's reports about earlier packets to `sink`.
    pub(in crate::engine) fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.network.reports(sink);
    }

    /// Returns a sentence for the user about something that the system refuses the driver, once.
    pub(in crate::engine) fn take_warning(&mut self) -> Option<String> {
        self.network.take_warning()
    }

    /// Returns whether the last receive may have left packets in the socket.
    pub(in crate::engine) fn may_have_more(&self) -> bool {
        self.network.may_have_more()
    }

    /// Returns the number of packets of the last receive from the network; at most 1 if packets
    /// that may wait follow.
    pub(in crate::engine) const fn last_packets(&self) -> usize {
        self.last_packets
    }

    /// Has the network polled in the next pass (RECEIVE-1, RECEIVE-2).
    pub(in crate::engine) fn expect_network(&mut self) {
        if let Some(local) = &mut self.local {
            local.expect_network();
        }
    }

    /// Receives from shared memory. Returns the number of events to be handled.
    pub(in crate::engine) fn receive_local(&mut self) -> usize {
        self.local.as_mut().map_or(0, LocalReceiver::receive)
    }

    /// Returns the arrivals from shared memory, if there were any.
    pub(in crate::engine) fn local_arrivals(&mut self) -> Option<&mut Arrivals> {
        self.local.as_mut().map(LocalReceiver::arrivals).filter(|arrivals| !arrivals.is_empty())
    }

    /// Sets whether as much waits for the application as may be received: then shared memory is
    /// left alone.
    pub(in crate::engine) fn set_full(&mut self, full: bool) {
        if let Some(local) = &mut self.local {
            local.set_full(full);
        }
    }

    /// Returns whether to spin a little instead of sleeping, for the rest of a long message in
    /// shared memory.
    pub(in crate::engine) fn lingers(&mut self) -> bool {
        self.local.as_mut().is_some_and(LocalReceiver::lingers)
    }

    /// Announces to local peers that this side is about to sleep. Returns `false` if a message has
    /// arrived: then it must not sleep. If it returns `true`, [`Receiver::finish_sleep`] must
    /// follow.
    pub(in crate::engine) fn prepare_to_sleep(&mut self) -> bool {
        self.is_prepared = self.local.as_mut().is_none_or(LocalReceiver::prepare_to_sleep);
        self.is_prepared
    }

    /// Ends a sleep that the background poller has prepared, if it did: another thread has taken
    /// the poll role.
    pub(in crate::engine) fn take_over(&mut self, clock: Clock) {
        if self.is_prepared {
            self.finish_sleep(WakeReasons::UNKNOWN, clock.now());
        }
    }

    /// Ends a sleep at `now`, for these reasons.
    pub(in crate::engine) fn finish_sleep(&mut self, reasons: WakeReasons, now: Instant) {
        self.is_prepared = false;
        self.reading.note_clock(now);
        if reasons.driver {
            self.expect_network();
        }
        if let Some(local) = &mut self.local {
            local.finish_sleep(reasons.doorbell);
        }
    }

    /// Sleeps from `now` until one of the conditions holds, a local peer rings, the signal is
    /// raised, or `nanos` have passed. Deferrable packets do not wake the thread before others of
    /// them have had the time to follow.
    ///
    /// # Errors
    ///
    /// The system's, except for interruptions.
    pub(in crate::engine) fn sleep(
        &mut self,
        now: Instant,
        signal: &Signal,
        conditions: WakeConditions<'_>,
        mut nanos: Option<u64>,
    ) -> io::Result<WakeReasons> {
        let left = self.bulk_delay.of_sleep(self.network.bulk(), now.as_nanos());
        if left > 0 {
            nanos = Some(nanos.map_or(left, |nanos| nanos.min(left)));
        }
        let Self { network, local, .. } = self;
        let slept =
            local.as_mut().and_then(|local| local.sleep(&**network, signal, conditions, nanos));
        if let Some(reasons) = slept {
            if reasons.signal {
                signal.lower();
            }
            return Ok(reasons);
        }
        let mut sources = self.descriptors();
        sources.bulk = sources.bulk.filter(|_| left == 0);
        signal.sleep(sources, conditions, nanos)
    }

    /// Returns the descriptors to sleep on.
    pub(in crate::engine) fn descriptors(&mut self) -> Descriptors<'_> {
        let doorbell = self.local.as_mut().and_then(LocalReceiver::doorbell);
        let bulk = self.network.bulk().map(|bulk| bulk.descriptor);
        Descriptors { driver: self.network.as_fd(), bulk, doorbell }
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use crate::EndpointBuilder;
    use apus_driver::Driver;
    use apus_socket::{Udp, UdpConfig};
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Returns a DATA packet of 100 bytes at `offset` in a message of 300.
    fn data(offset: u32) -> Vec<u8> {
        let mut packet = vec![0; 56 + 100];
        packet[11] = apus_wire::Kind::Data as u8;
        packet[28..32].copy_from_slice(&300_u32.to_be_bytes());
        packet[52..56].copy_from_slice(&offset.to_be_bytes());
        packet
    }

    fn bulk_delay(receiver: &mut Receiver, now: Instant) -> u64 {
        receiver.bulk_delay.of_sleep(receiver.network.bulk(), now.as_nanos())
    }

    #[test]
    fn after_packets_that_may_wait_others_have_their_time_to_follow() {
        let delay = Duration::from_micros(700);
        let bind = "127.0.0.1:0".parse().unwrap();
        let coalescing = UdpConfig { receive_coalescing_usecs: 700, ..UdpConfig::bound_to(bind) };
        let udp = Box::new(Udp::open(&coalescing).unwrap());
        let local = udp.local_addr();
        let mut receiver = Receiver::new(udp.split().1, 1 << 20, None);
        let sender = UdpSocket::bind(bind).unwrap();
        let now = Instant::ZERO + Duration::from_millis(1);
        assert_eq!(bulk_delay(&mut receiver, now), 0, "the first one wakes");

        sender.send_to(&data(0), local).unwrap();
        assert_eq!(receiver.receive_network(64).unwrap(), 1);
        assert_eq!(bulk_delay(&mut receiver, now), 0, "the beginning of a message was urgent");

        for _ in 0..3 {
            sender.send_to(&data(100), local).unwrap();
        }
        assert_eq!(receiver.receive_network(64).unwrap(), 3);
        assert_eq!(receiver.last_packets(), 1, "those that follow are not due");
        assert_eq!(bulk_delay(&mut receiver, now), 700_000);
        assert_eq!(bulk_delay(&mut receiver, now + delay / 7), 600_000, "from the first sleep on");
        assert_eq!(bulk_delay(&mut receiver, now + delay), 0, "nothing came: the next one wakes");
        assert!(receiver.descriptors().bulk.is_some());
    }

    #[test]
    fn without_coalescing_every_packet_wakes() {
        let udp =
            Box::new(Udp::open(&UdpConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap());
        let local = udp.local_addr();
        let mut receiver = Receiver::new(udp.split().1, 1 << 20, None);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&data(100), local).unwrap();
        assert_eq!(receiver.receive_network(64).unwrap(), 1);
        assert_eq!(bulk_delay(&mut receiver, Instant::ZERO), 0);
        assert!(receiver.descriptors().bulk.is_none());
    }

    /// RECEIVE-2: an explicit poll, as of a server under pressure, polls the network even if
    /// messages arrive through shared memory.
    #[test]
    fn an_explicit_poll_takes_what_the_network_has() {
        let server = EndpointBuilder::default().bind("127.0.0.1:0").unwrap();
        let shard = server.shard();
        // With the poll role no other thread takes the packet, nor changes the due time.
        while !shard.lock().polling().take_role() {
            std::thread::yield_now();
        }
        shard.receiver().take_over(shard.clock());
        shard.receiver().local.as_mut().unwrap().note_records(1);
        let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
        remote.send_to(b"what it is does not matter", server.local_addr()).unwrap();
        let before = shard.metrics().engine.packets_arrived;
        drop(shard.poll_once());
        assert_eq!(shard.metrics().engine.packets_arrived, before + 1);
    }
}
