//! Transmitting half.
//!
//! A small packet is copied into [`Staging`] until `flush`. A large packet is sent at once from the
//! engine's slices, after all staged packets. Packets that the system does not accept now stay in
//! staging, and the next `flush` tries again.
//!
//! # Invariants
//!
//! - **TRANSMIT-1** `blocked` is set if and only if the last attempt to send ended because the
//!   system was full; then staging is not empty.
//! - **TRANSMIT-2** A group refused by the system as a whole is sent packet by packet; only packets
//!   that are refused again are reported.

mod connected;
mod flush;
mod gather;
mod spray;

pub(crate) use connected::ConnectOptions;
pub(crate) use spray::SprayPorts;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use apus_driver::{Burst, BurstPacket, NetworkError, TransmitHalf};
use rustix::io::Errno;

use crate::address;
use crate::class::{self, DefaultClass};
use crate::fallback::{Call, Fallback};
use crate::group::{Flow, Sharing};
use crate::mtu::PacketLimit;
use crate::shared::{BEGINNING, SendFailure, SharedSocket};
use crate::staging::Staging;
use crate::submit::Submitted;
use connected::ConnectedPeers;

/// Longest copied packet; longer packets are gathered from the engine's slices.
///
/// Source: lab/log 2026-11-20. Copying is a quarter faster with 1472-byte packets,
/// gathering a twentieth faster with 8972-byte packets; at 4000 bytes they are equal.
const MAX_COPIED: usize = 4000;

/// Options of the transmitting half, fixed when the driver is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransmitOptions {
    /// Packets of one send; 1 without segmentation offload.
    pub segments: usize,
    /// Whether packets carry their traffic class.
    pub priorities: bool,
    /// Whether the socket listens on all addresses, so that sends may choose the source address.
    pub chooses_source: bool,
}

impl TransmitOptions {
    /// Returns the traffic class byte of the burst's packets. Only switches mark packets, so the
    /// ECN bits are 0 or 0b10.
    #[inline]
    fn class(self, burst: &Burst<'_>) -> u8 {
        if self.priorities { burst.traffic_class & !0b01 } else { 0 }
    }
}

/// The transmitting half of a driver.
#[derive(Debug)]
pub(crate) struct SocketTransmit {
    shared: Arc<SharedSocket>,
    staging: Staging,
    class: DefaultClass,
    limit: PacketLimit,
    options: TransmitOptions,
    connected: ConnectedPeers,
    spray: SprayPorts,
    /// Whether the system refuses several datagrams at once, or several packets in one.
    many: Fallback,
    segmentation: Fallback,
    /// Whether the system accepts no packets (TRANSMIT-1).
    blocked: bool,
}

impl SocketTransmit {
    /// Returns the transmitting half of the socket in `shared`.
    #[must_use]
    pub(crate) fn new(
        shared: Arc<SharedSocket>,
        limit: PacketLimit,
        options: TransmitOptions,
    ) -> Self {
        let staging = Staging::new(shared.family, shared.carrier);
        let connected = ConnectedPeers::new(None);
        let class = DefaultClass::new();
        let spray = SprayPorts::default();
        let (many, segmentation) = Default::default();
        Self {
            shared,
            staging,
            class,
            limit,
            options,
            connected,
            spray,
            many,
            segmentation,
            blocked: false,
        }
    }

    /// Enables connected sockets for the peers of most sends, if there are options for them.
    #[must_use]
    pub(crate) fn connecting(self, options: Option<ConnectOptions>) -> Self {
        Self { connected: ConnectedPeers::new(options), ..self }
    }

    /// Sends marked bursts from these ports.
    #[must_use]
    pub(crate) fn spraying(self, spray: SprayPorts) -> Self {
        Self { spray, ..self }
    }

    fn flow(&mut self, burst: &Burst<'_>) -> Flow {
        let from = if self.options.chooses_source { burst.from } else { None };
        let port = self.spray.choose(burst);
        Flow { to: burst.to, from, class: self.options.class(burst), port }
    }

    /// Fast path of the usual case: a burst of one small packet of the same flow as the last
    /// packet. Returns `false` without any effect in other cases.
    #[inline(always)]
    fn stage_same_flow(&mut self, burst: &Burst<'_>, len: usize) -> bool {
        if self.blocked || burst.headers.len() != burst.header_len || self.spray.take(burst) {
            return false;
        }
        let options = self.options;
        // Compared in place: constructing a flow for the comparison would copy it twice.
        let sharing = Sharing::of(burst.coalesce, false);
        let place = self.staging.place_in_recent(len, sharing, |flow| {
            flow.to == burst.to
                && flow.port == 0
                && flow.class == options.class(burst)
                && (!options.chooses_source || flow.from == burst.from)
        });
        let Some(place) = place else { return false };
        let (header, mut rest) = place.split_at_mut(burst.header_len);
        header.copy_from_slice(burst.headers);
        for slice in burst.payload {
            let (here, behind) = rest.split_at_mut(slice.len());
            here.copy_from_slice(slice);
            rest = behind;
        }
        true
    }

    /// Sends a burst in all other cases. Not inlined, because its large frame would slow down the
    /// usual case.
    #[inline(never)]
    fn send_general(&mut self, burst: &Burst<'_>, longest: usize) -> io::Result<()> {
        if self.blocked {
            self.shared.counters.transmit.packets_dropped.add(burst.packets() as u64);
            return Ok(());
        }
        let flow = self.flow(burst);
        if let Some(error) = self.check_destination(&flow, longest) {
            let beginning = burst.each().next().map(BurstPacket::to_vec).unwrap_or_default();
            refuse(&self.shared, burst.to, error, burst.packets(), &beginning);
            return Ok(());
        }
        if longest <= MAX_COPIED {
            self.stage(&flow, burst.each(), burst.coalesce)
        } else {
            self.gather(&flow, burst.each())
        }
    }

    /// Returns the error that applies to every packet of a burst, if there is one.
    #[inline]
    fn check_destination(&self, flow: &Flow, longest: usize) -> Option<NetworkError> {
        let to = address::canonical(flow.to);
        if longest > self.limit.max(to) {
            Some(NetworkError::TooBig)
        } else if self.shared.carrier.name(to, self.shared.family).is_none() {
            Some(NetworkError::HostUnreachable)
        } else {
            None
        }
    }

    /// Copies the packets of one burst. Flushes if there is no room; if the system is full, adds
    /// room instead.
    #[inline]
    fn stage<'a>(
        &mut self,
        flow: &Flow,
        packets: impl Iterator<Item = BurstPacket<'a>>,
        coalesce: usize,
    ) -> io::Result<()> {
        let mut last = false;
        for packet in packets {
            let len = packet.len();
            loop {
                if let Some(place) = self.staging.place(flow, len, Sharing::of(coalesce, last)) {
                    packet.copy_to(place);
                    break;
                }
                self.make_room()?;
            }
            last = true;
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        if !self.blocked {
            self.flush()?;
        }
        if self.blocked {
            self.staging.grow();
        }
        Ok(())
    }

    #[inline]
    fn update_class(&mut self) {
        let Self { shared, class, .. } = self;
        if class.update(|class| class::set(shared.as_fd(), shared.family, shared.carrier, class)) {
            shared.counters.transmit.class_changes.add(1);
        }
    }

    #[inline]
    fn count_calls(&self, done: &Submitted) {
        self.shared.counters.transmit.send_calls.add(done.calls);
        if done.check_errors {
            self.shared.raise_error_signal();
        }
        if done.refused > 0 {
            self.count_refused(done);
        }
    }

    #[cold]
    fn count_refused(&self, done: &Submitted) {
        self.shared.counters.transmit.batches_refused.add(done.refused);
        if let Some(error) = done.refusal {
            self.shared.refused_calls.add(Call::SendMany, error);
        }
    }
}

impl TransmitHalf for SocketTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let longest = burst.longest_packet();
        if self.stage_same_flow(burst, longest) {
            return Ok(());
        }
        self.send_general(burst, longest)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blocked = false;
        while !self.staging.is_empty() && !self.blocked {
            self.send_waiting()?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.blocked
    }

    fn has_pending(&self) -> bool {
        !self.staging.is_empty()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.limit.on_path(to)
    }
}

/// Reports to the engine, through the receiving half, that packets to `peer` were not sent.
#[cold]
fn refuse(
    shared: &SharedSocket,
    peer: SocketAddr,
    error: NetworkError,
    packets: usize,
    beginning: &[u8],
) {
    shared.counters.transmit.packets_refused.add(packets as u64);
    let beginning = beginning.iter().copied().take(BEGINNING).collect();
    shared.add_failure(SendFailure { peer: address::canonical(peer), error, beginning });
}

/// Returns the error of a broken socket.
#[cold]
fn broken(error: Errno, to: SocketAddr) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("send to {to}: {error}"))
}
