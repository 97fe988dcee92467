//! Faults: a bad network on demand.
//!
//! [`Faulty`] wraps any driver and loses, duplicates, reorders and corrupts packets, on reception,
//! on transmission, or both. The same seed with the same packets and calls causes the same faults.
//!
//! ```
//! # #[cfg(feature = "loopback")]
//! # fn main() -> Result<(), apus_driver::fault::FaultError> {
//! use apus_driver::fault::{FaultConfig, Faults, Faulty, PER_MILLION};
//! use apus_driver::loopback::LoopbackNetwork;
//!
//! let receive = Faults { loss: PER_MILLION / 100, ..Faults::none() };
//! let config = FaultConfig { seed: 7, receive, ..FaultConfig::default() };
//! let driver = Faulty::new(LoopbackNetwork::new().host(), config)?;
//! let counters = driver.counters();
//! // … use `driver` as any other, then read what was done:
//! assert_eq!(counters.receive.lost(), 0);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "loopback"))]
//! # fn main() {}
//! ```
//!
//! # Invariants
//!
//! - **FAULT-1** A driver with [`Faults::none`] in both directions passes all packets unchanged.
//! - **FAULT-2** No packet is delayed forever: an incoming packet at most until a `receive` finds
//!   no packet behind it (DRIVER-6 guarantees that), an outgoing packet at most until `flush`.
//! - **FAULT-3** The number of packets that leave a lane is the number that entered, minus losses,
//!   plus duplicates.

mod config;
mod counters;
mod lane;

pub use config::{FaultConfig, FaultError, Faults, PER_MILLION};
pub use counters::{FaultCounters, LaneCounters};

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::{
    Arrival, BulkSource, Burst, Capabilities, Driver, Ecn, NetworkReport, ReceiveHalf, TransmitHalf,
};
use lane::{Frame, Lane};

/// A driver that applies faults to its packets.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    config: FaultConfig,
    counters: Arc<FaultCounters>,
}

impl<D: Driver> Faulty<D> {
    /// Wraps `inner`.
    ///
    /// # Errors
    ///
    /// [`FaultError`] if `config` is invalid; see [`FaultConfig::validate`].
    pub fn new(inner: D, config: FaultConfig) -> Result<Self, FaultError> {
        config.validate()?;
        Ok(Self { inner, config, counters: Arc::default() })
    }

    /// Returns the counters of applied faults, which stay valid after [`Driver::split`].
    #[must_use]
    pub fn counters(&self) -> Arc<FaultCounters> {
        self.counters.clone()
    }
}

impl<D: Driver> Driver for Faulty<D> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let Self { inner, config, counters } = *self;
        let (transmit, receive) = Box::new(inner).split();
        let outgoing = Lane::new(config.transmit, config.seed, lane::Direction::Transmit);
        let incoming = Lane::new(config.receive, config.seed, lane::Direction::Receive);
        (
            Box::new(FaultyTransmit {
                inner: transmit,
                lane: outgoing,
                counters: counters.clone(),
            }),
            Box::new(FaultyReceive {
                inner: receive,
                lane: incoming,
                counters,
                ready: Vec::new(),
                complete: false,
            }),
        )
    }
}

/// Metadata of an outgoing packet.
#[derive(Clone, Copy, Debug)]
struct OutgoingFrame {
    to: SocketAddr,
    from: Option<IpAddr>,
    traffic_class: u8,
}

struct FaultyTransmit {
    inner: Box<dyn TransmitHalf>,
    lane: Lane<OutgoingFrame>,
    counters: Arc<FaultCounters>,
}

impl FaultyTransmit {
    fn forward(inner: &mut dyn TransmitHalf, frame: &Frame<OutgoingFrame>) -> io::Result<()> {
        let OutgoingFrame { to, from, traffic_class } = frame.metadata;
        inner.send(&Burst { from, traffic_class, ..Burst::single(to, &frame.bytes) })
    }
}

impl TransmitHalf for FaultyTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        if self.lane.is_clean() {
            return self.inner.send(burst);
        }
        let metadata =
            OutgoingFrame { to: burst.to, from: burst.from, traffic_class: burst.traffic_class };
        for packet in burst.each() {
            let frame = Frame { metadata, bytes: packet.to_vec() };
            let mut result = Ok(());
            self.lane.pass(frame, &self.counters.transmit, &mut |frame| {
                if result.is_ok() {
                    result = Self::forward(&mut *self.inner, &frame);
                }
            });
            result?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for frame in self.lane.release() {
            Self::forward(&mut *self.inner, &frame)?;
        }
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn has_pending(&self) -> bool {
        self.lane.has_delayed() || self.inner.has_pending()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.inner.packet_limit(to)
    }
}

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    from: SocketAddr,
    to: Option<IpAddr>,
    ecn: Ecn,
}

struct FaultyReceive {
    inner: Box<dyn ReceiveHalf>,
    lane: Lane<Incoming>,
    counters: Arc<FaultCounters>,
    /// Packets for the next `drain`.
    ready: Vec<Frame<Incoming>>,
    /// Whether `ready` is complete: the inner driver has no more packets, and none is delayed.
    complete: bool,
}

impl ReceiveHalf for FaultyReceive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        if self.lane.is_clean() {
            return self.inner.receive(limit);
        }
        self.ready.clear();
        self.complete = false;
        while self.ready.is_empty() {
            if self.inner.receive(limit)? == 0 {
                self.ready.extend(self.lane.release());
                self.complete = true;
                break;
            }
            self.inner.drain(&mut |arrival| {
                let metadata = Incoming { from: arrival.from, to: arrival.to, ecn: arrival.ecn };
                let frame = Frame { metadata, bytes: arrival.packet.to_vec() };
                let ready = &mut self.ready;
                self.lane.pass(frame, &self.counters.receive, &mut |frame| ready.push(frame));
            });
        }
        Ok(self.ready.len())
    }

    fn overflowed(&self) -> u64 {
        self.inner.overflowed()
    }

    fn may_have_more(&self) -> bool {
        if self.lane.is_clean() { self.inner.may_have_more() } else { !self.complete }
    }

    fn bulk(&self) -> Option<BulkSource<'_>> {
        self.inner.bulk()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        if self.lane.is_clean() {
            return self.inner.drain(sink);
        }
        for Frame { metadata, bytes } in self.ready.drain(..) {
            let Incoming { from, to, ecn } = metadata;
            sink(Arrival { from, to, ecn, packet: &bytes });
        }
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.inner.reports(sink);
    }

    fn take_warning(&mut self) -> Option<String> {
        self.inner.take_warning()
    }
}

impl AsFd for FaultyReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

#[cfg(all(test, feature = "loopback"))]
mod tests {
    use super::*;
    use crate::loopback::LoopbackNetwork;

    const SENT: u32 = 2_000;

    /// Sends numbered packets in flushes of 20 through a lane with these faults; returns the
    /// received packets.
    fn arrivals(
        seed: u64,
        receive: Faults,
        transmit: Faults,
    ) -> (Vec<Vec<u8>>, Arc<FaultCounters>) {
        let network = LoopbackNetwork::new();
        let config = FaultConfig { seed, receive, transmit };
        let server = Faulty::new(network.host(), config).unwrap();
        let client = Faulty::new(network.host(), config).unwrap();
        let (to, counters) = (server.local_addr(), server.counters());
        let outgoing = client.counters();
        let (mut out, _in) = Box::new(client).split();
        let (_out, mut receive) = Box::new(server).split();
        let mut seen = Vec::new();
        for first in (0..SENT).step_by(20) {
            for number in first..first + 20 {
                out.send(&Burst::single(to, &number.to_be_bytes())).unwrap();
            }
            out.flush().unwrap();
            assert!(!out.has_pending(), "FAULT-2: flush releases delayed packets");
            while receive.receive(7).unwrap() > 0 {
                receive.drain(&mut |arrival| seen.push(arrival.packet.to_vec()));
            }
        }
        // The server's receive counters and the client's transmit counters, in one object.
        let transmit = outgoing.transmit.clone();
        let receive = counters.receive.clone();
        (seen, Arc::new(FaultCounters { receive, transmit }))
    }

    fn numbers() -> Vec<Vec<u8>> {
        (0..SENT).map(|number| number.to_be_bytes().to_vec()).collect()
    }

    #[test]
    fn without_faults_nothing_changes() {
        let (seen, counters) = arrivals(1, Faults::none(), Faults::none());
        assert_eq!(seen, numbers());
        assert_eq!(counters.receive.total() + counters.transmit.total(), 0);
    }

    #[test]
    fn the_seed_decides_everything() {
        let bad = Faults {
            loss: 50_000,
            duplication: 50_000,
            reordering: 50_000,
            hold: 3,
            corruption: 50_000,
            burst_loss: 5_000,
            burst_length: 4,
        };
        let (first, counters) = arrivals(7, bad, bad);
        let (again, _) = arrivals(7, bad, bad);
        let (other, _) = arrivals(8, bad, bad);
        assert_eq!(first, again);
        assert_ne!(first, other);
        for lane in [&counters.receive, &counters.transmit] {
            assert!(lane.lost() > 0 && lane.burst_lost() > 0 && lane.duplicated() > 0);
            assert!(lane.reordered() > 0 && lane.corrupted() > 0);
        }
        let lost = |lane: &LaneCounters| lane.lost() + lane.burst_lost();
        let sent = u64::from(SENT) - lost(&counters.transmit) + counters.transmit.duplicated();
        let expected = sent - lost(&counters.receive) + counters.receive.duplicated();
        assert_eq!(first.len() as u64, expected, "FAULT-3");
    }

    #[test]
    fn reordering_loses_nothing() {
        let shuffle = Faults { reordering: 300_000, hold: 5, ..Faults::none() };
        let (mut seen, counters) = arrivals(3, shuffle, shuffle);
        assert_ne!(seen, numbers());
        seen.sort_unstable();
        assert_eq!(seen, numbers());
        assert!(counters.receive.reordered() > 0);
    }

    #[test]
    fn a_packet_without_successors_is_not_delayed_forever() {
        let shuffle = Faults { reordering: PER_MILLION, hold: 100, ..Faults::none() };
        let network = LoopbackNetwork::new();
        let config = FaultConfig { receive: shuffle, ..FaultConfig::default() };
        let server = Faulty::new(network.host(), config).unwrap();
        let to = server.local_addr();
        let (mut out, _in) = Box::new(network.host()).split();
        let (_out, mut receive) = Box::new(server).split();
        out.send(&Burst::single(to, b"alone")).unwrap();
        out.flush().unwrap();
        assert_eq!(receive.receive(1).unwrap(), 1, "FAULT-2");
        assert_eq!(receive.receive(1).unwrap(), 0);
    }

    #[test]
    fn corruption_flips_one_bit() {
        let flip = Faults { corruption: PER_MILLION, ..Faults::none() };
        let (seen, _) = arrivals(5, flip, Faults::none());
        for (was, is) in numbers().iter().zip(&seen) {
            let flipped: u32 = was.iter().zip(is).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1);
        }
    }

    #[test]
    fn burst_loss_drops_consecutive_packets() {
        let bursts = Faults { burst_loss: 10_000, burst_length: 10, ..Faults::none() };
        let (seen, counters) = arrivals(9, bursts, Faults::none());
        let numbers: Vec<u32> =
            seen.iter().map(|b| u32::from_be_bytes(b[..].try_into().unwrap())).collect();
        let mut gaps = numbers.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|gap| *gap > 0);
        assert!(gaps.all(|gap| gap.is_multiple_of(10)), "a gap is one burst, or several in a row");
        assert!(counters.receive.burst_lost() >= 10);
    }
}
