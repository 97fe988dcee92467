//! How do packets leave?
//!
//! A small packet is copied into [`Staging`] and waits for `flush`; a large one leaves at once, straight
//! from the engine's slices, after everything that waited. What the system does not take now is kept
//! in staging too, and the next `flush` tries again.
//!
//! # Invariants
//!
//! - **T1** `blocked` is set if and only if the last attempt to send ended because the system was
//!   full; then staging is not empty.
//! - **T2** A group that the system refuses as a whole is sent packet by packet, and only what is
//!   then refused again is reported.

mod flush;
mod gather;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use apus_driver::{Burst, BurstPacket, NetworkError, TransmitHalf};
use rustix::io::Errno;

use crate::address;
use crate::class::{self, UsualClass};
use crate::group::Flow;
use crate::mtu::PacketLimit;
use crate::shared::{BEGINNING, Refusal, Shared};
use crate::staging::Staging;

/// Longest packet that is copied; longer ones are gathered from the engine's slices.
///
/// Source: docs/perf-log.md 2026-11-20. Copies win by a quarter with 1472-byte packets and gathering by
/// a twentieth with 8972-byte ones; at 4000 bytes they are equal.
const COPIED: usize = 4000;

/// What a driver is allowed to do, decided when it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// Packets of one send; 1 without segmentation offload.
    pub segments: usize,
    /// Whether packets carry their traffic class.
    pub priorities: bool,
    /// Whether the socket listens on all addresses, so that sends may name theirs.
    pub chooses_source: bool,
}

impl Abilities {
    /// Traffic class byte of the burst's packets, without the ECN bits.
    #[inline]
    fn class(self, burst: &Burst<'_>) -> u8 {
        if self.priorities { burst.traffic_class & !0b11 } else { 0 }
    }
}

/// The half that sends.
#[derive(Debug)]
pub(crate) struct SocketTransmit {
    shared: Arc<Shared>,
    staging: Staging,
    class: UsualClass,
    limit: PacketLimit,
    abilities: Abilities,
    /// The system takes nothing (invariant T1).
    blocked: bool,
}

impl SocketTransmit {
    /// The half that sends through the socket in `shared`.
    #[must_use]
    pub(crate) fn new(shared: Arc<Shared>, limit: PacketLimit, abilities: Abilities) -> Self {
        let staging = Staging::new(shared.family, shared.carrier);
        Self { shared, staging, class: UsualClass::new(), limit, abilities, blocked: false }
    }

    fn flow(&self, burst: &Burst<'_>) -> Flow {
        let from = if self.abilities.chooses_source { burst.from } else { None };
        Flow { to: burst.to, from, class: self.abilities.class(burst) }
    }

    /// The usual case, at the least cost: a burst of one small packet that goes where the last one
    /// went. `false`: it is another case, and nothing was done.
    #[inline(always)]
    fn stage_like_last(&mut self, burst: &Burst<'_>, len: usize) -> bool {
        if self.blocked || burst.headers.len() != burst.header_len {
            return false;
        }
        let abilities = self.abilities;
        // Compared in place: a flow made for this would be copied twice.
        let place = self.staging.place_like_last(len, |flow| {
            flow.to == burst.to
                && flow.class == abilities.class(burst)
                && (!abilities.chooses_source || flow.from == burst.from)
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

    /// Every other case. Not inlined: its large frame would burden the usual one.
    #[inline(never)]
    fn send_otherwise(&mut self, burst: &Burst<'_>, longest: usize) -> io::Result<()> {
        if self.blocked {
            self.shared.counters.transmit.packets_dropped.add(burst.packets() as u64);
            return Ok(());
        }
        let flow = self.flow(burst);
        if let Some(trouble) = self.hindrance(&flow, longest) {
            let beginning = burst.each().next().map(BurstPacket::to_vec).unwrap_or_default();
            refuse(&self.shared, burst.to, trouble, burst.packets(), &beginning);
            return Ok(());
        }
        if longest <= COPIED {
            self.stage(&flow, burst.each())
        } else {
            self.gather(&flow, burst.each())
        }
    }

    /// What keeps every packet of a burst from being sent, if anything does.
    #[inline]
    fn hindrance(&self, flow: &Flow, longest: usize) -> Option<NetworkError> {
        let to = address::canonical(flow.to);
        if longest > self.limit.most(to) {
            Some(NetworkError::TooBig)
        } else if self.shared.carrier.name(to, self.shared.family).is_none() {
            Some(NetworkError::HostUnreachable)
        } else {
            None
        }
    }

    /// Copies packets of one burst. Flushes if there is no room for one; if the system is full,
    /// makes room instead.
    #[inline]
    fn stage<'a>(
        &mut self,
        flow: &Flow,
        packets: impl Iterator<Item = BurstPacket<'a>>,
    ) -> io::Result<()> {
        let mut last = false;
        for packet in packets {
            let len = packet.len();
            loop {
                if let Some(place) = self.staging.place(flow, len, last) {
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
    fn reconsider_class(&mut self) {
        let Self { shared, class, .. } = self;
        if class
            .reconsider(|class| class::set(shared.as_fd(), shared.family, shared.carrier, class))
        {
            shared.counters.transmit.class_changes.add(1);
        }
    }

    #[inline]
    fn count_calls(&self, calls: u64, look_at_errors: bool) {
        self.shared.counters.transmit.send_calls.add(calls);
        if look_at_errors {
            self.shared.raise();
        }
    }
}

impl TransmitHalf for SocketTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let longest = burst.longest_packet();
        if self.stage_like_last(burst, longest) {
            return Ok(());
        }
        self.send_otherwise(burst, longest)
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

/// Tells the engine, by way of the other half, that packets to `peer` were not sent.
#[cold]
fn refuse(
    shared: &Shared,
    peer: SocketAddr,
    trouble: NetworkError,
    packets: usize,
    beginning: &[u8],
) {
    shared.counters.transmit.packets_refused.add(packets as u64);
    let beginning = beginning.iter().copied().take(BEGINNING).collect();
    shared.refuse(Refusal { peer: address::canonical(peer), trouble, beginning });
}

/// The socket itself does not work any more.
#[cold]
fn broken(error: Errno, to: SocketAddr) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("send to {to}: {error}"))
}
