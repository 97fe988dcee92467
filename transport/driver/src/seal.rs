//! Sealing: every packet encrypted and authenticated, around any driver.
//!
//! [`Sealed`] wraps a driver. Its transmitting half seals packets while it copies them, its
//! receiving half opens them without the engine's core lock. Handshakes ([`apus_seal::Handshakes`])
//! connect the two: the receiving half passes packets to them, the transmitting half sends their
//! packets.
//!
//! ```text
//!   engine ── send ──▶ SealedTransmit: Sealer by peer ──▶ inner driver
//!                          │ wants keys, timers      ▲ packets of handshakes, new keys
//!                          ▼                         │
//!                      SealHandle: Handshakes ───────┤ session for the protocol
//!                          ▲ packets of handshakes   ▼
//!   engine ◀── drain ── OpenedReceive: Opener by peer ◀── inner driver
//! ```
//!
//! # Invariants
//!
//! - **SEALED-1** A packet leaves sealed or not at all. A packet for a peer without keys is dropped
//!   and starts a handshake; the protocol then sends the message from its start in the new session
//!   (SEAL-11).
//! - **SEALED-2** The engine receives only opened packets (SEAL-7).
//! - **SEALED-3** The protocol receives a session before it receives a packet of it.

mod clock;
mod handle;
mod receive;
mod refusals;
mod transmit;
mod watch;

pub use clock::SealClock;
pub use handle::SealHandle;
pub use watch::{WATCH_INTERVAL, Watch};

use crate::{Capabilities, Driver, DriverCounters, ReceiveHalf, TransmitHalf};
use apus_seal::{Limits, Negotiator};
use receive::OpenedReceive;
use std::net::SocketAddr;
use std::sync::Arc;
use transmit::SealedTransmit;

/// A driver whose packets are sealed.
pub struct Sealed {
    inner: Box<dyn Driver>,
    handle: Arc<SealHandle>,
    traffic_class: u8,
}

impl Sealed {
    /// Seals the packets of `inner`, with the identity and trust of `negotiator`.
    #[must_use]
    pub fn new(inner: Box<dyn Driver>, negotiator: Arc<dyn Negotiator>, limits: Limits) -> Self {
        Self::with_clock(inner, negotiator, limits, SealClock::system())
    }

    /// As [`Sealed::new`], with another clock. With a simulated clock
    /// [`TransmitHalf::next_timeout`] returns `None`; use [`SealHandle::next_due`].
    #[must_use]
    pub fn with_clock(
        inner: Box<dyn Driver>,
        negotiator: Arc<dyn Negotiator>,
        limits: Limits,
        clock: SealClock,
    ) -> Self {
        let port = inner.local_addr().port();
        let handle = Arc::new(SealHandle::new(negotiator, port, limits, clock));
        Self { inner, handle, traffic_class: 0 }
    }

    /// Sends the packets of handshakes with this traffic class, by default 0.
    #[must_use]
    pub fn with_traffic_class(self, traffic_class: u8) -> Self {
        Self { traffic_class, ..self }
    }

    /// Returns a handle to the handshakes and peers, which stays valid after [`Driver::split`].
    #[must_use]
    pub fn handle(&self) -> Arc<SealHandle> {
        self.handle.clone()
    }
}

/// The counters of the inner driver and of sealing.
struct BothCounters {
    inner: Option<Arc<dyn DriverCounters>>,
    handle: Arc<SealHandle>,
}

impl DriverCounters for BothCounters {
    fn all(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.inner.as_ref().map_or_else(Vec::new, |inner| inner.all());
        all.extend(self.handle.counters().all());
        all
    }
}

impl Driver for Sealed {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn counters(&self) -> Option<Arc<dyn DriverCounters>> {
        let (inner, handle) = (self.inner.counters(), self.handle.clone());
        Some(Arc::new(BothCounters { inner, handle }))
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let Self { inner, handle, traffic_class } = *self;
        let (transmit, receive) = inner.split();
        (
            Box::new(SealedTransmit::new(transmit, handle.clone(), traffic_class)),
            Box::new(OpenedReceive::new(receive, handle)),
        )
    }
}
