//! Packet drivers: the contract between the engine and the carrier of its packets.
//!
//! A [`Driver`] moves datagrams between this host and others. It is independent of the protocol: it
//! treats headers as bytes, and only the engine (`apus`) connects drivers and protocol.
//!
//! After opening, a driver reports its [`Capabilities`] and is then split into two halves that
//! different threads may own: [`TransmitHalf`] is used under the engine's core lock,
//! [`ReceiveHalf`] by the thread that has the poll role.
//!
//! ```text
//!   engine ── send(Burst) … flush() ──▶ TransmitHalf ──▶ network
//!   engine ◀── drain(Arrival) ── receive() ── ReceiveHalf ◀── network
//!              reports(NetworkReport): what ICMP and the system say about packets sent earlier
//! ```
//!
//! The crate also has tools for tests and diagnosis, each behind the cargo feature of its name: the
//! in-memory network `loopback`, the wrappers `fault` and `pcap` around any driver, and the suite
//! `conformance`, which every driver must pass. The feature `seal` adds the wrapper that encrypts
//! and authenticates every packet.
//!
//! # Invariants
//!
//! - **DRIVER-1** No call blocks. The engine waits on the file descriptor of [`ReceiveHalf`].
//! - **DRIVER-2** A packet arrives whole and unchanged, or not at all. Packets may be lost,
//!   duplicated and reordered.
//! - **DRIVER-3** A [`Burst`] is one or more packets of equal size; the last may be shorter. The
//!   driver chooses the number of system calls and segments.
//! - **DRIVER-4** Failure of one destination never stops packets to another one: it becomes a
//!   [`NetworkReport`]. Only failure of the driver itself is an `Err`.
//! - **DRIVER-5** Packets accepted by `send` are sent when `flush` returns, unless
//!   [`TransmitHalf::has_room`] returns `false`; then the driver keeps them and sends them in a
//!   later `flush`.
//! - **DRIVER-6** Before a thread waits on the descriptor of [`ReceiveHalf`], it flushes, takes the
//!   reports, and calls `receive` until it returns 0, in this order. A wrapper may delay packets
//!   until that 0, and longer if a thread waits without it, as the engine does after a single
//!   packet, and after packets of a [`BulkSource`]. A failure that `flush` detects is available in
//!   `reports` at once and does not make the descriptor readable; every later event does.

#![forbid(unsafe_code)]

mod arrival;
mod bulk;
mod burst;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "fault")]
pub mod fault;
#[cfg(feature = "loopback")]
pub mod loopback;
mod packet;
mod paths;
#[cfg(feature = "pcap")]
pub mod pcap;
mod report;
#[cfg(feature = "seal")]
pub mod seal;
mod session;

pub use arrival::{Arrival, Ecn};
pub use bulk::{BulkDelay, BulkSource};
pub use burst::Burst;
pub use capabilities::Capabilities;
pub use packet::{BurstPacket, BurstPackets, PacketPieces};
pub use paths::Paths;
pub use report::{NetworkError, NetworkReport};
pub use session::{PeerLife, Session};

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

/// A source and sink of packets, not yet split into its halves.
pub trait Driver: Send {
    /// Returns the properties detected when the driver was opened.
    fn capabilities(&self) -> Capabilities;

    /// Returns the address by which peers know this driver. The IP address is unspecified if the
    /// driver listens on all addresses of the host.
    fn local_addr(&self) -> SocketAddr;

    /// Returns the driver's counters, if it has any. They stay valid after [`Driver::split`].
    fn counters(&self) -> Option<Arc<dyn DriverCounters>> {
        None
    }

    /// Splits the driver into its halves. They are independent: neither waits for the other.
    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>);
}

/// Counters of a driver. Values never decrease.
pub trait DriverCounters: Send + Sync {
    /// Returns the name and value of each counter, always in the same order.
    fn all(&self) -> Vec<(&'static str, u64)>;
}

impl<D: Driver + ?Sized> Driver for Box<D> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        (**self).local_addr()
    }

    fn counters(&self) -> Option<Arc<dyn DriverCounters>> {
        (**self).counters()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        (*self).split()
    }
}

/// The transmitting half of a driver.
pub trait TransmitHalf: Send {
    /// Accepts a burst. The driver may hold small packets until [`TransmitHalf::flush`], so that
    /// packets of equal size for one peer leave in one system call, whatever messages they belong
    /// to.
    ///
    /// The driver copies what it holds beyond this call. Packets longer than
    /// [`TransmitHalf::packet_limit`] are not sent but reported ([`NetworkError::TooBig`]). Without
    /// [`TransmitHalf::has_room`] the burst may be dropped.
    ///
    /// # Errors
    ///
    /// The driver itself is broken, for example because its descriptor was closed. Failure of the
    /// destination is not an error but a [`NetworkReport`] (DRIVER-4).
    ///
    /// # Panics
    ///
    /// In debug builds, if the burst is inconsistent (see [`Burst`]).
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()>;

    /// Sends pending packets.
    ///
    /// # Errors
    ///
    /// The driver itself is broken, as for [`TransmitHalf::send`]. A full socket buffer is not an
    /// error: [`TransmitHalf::has_room`] then returns `false`.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns whether the driver can accept a burst now. After `false`, the caller waits until the
    /// descriptor of the receiving half is writable, and flushes.
    fn has_room(&self) -> bool;

    /// Returns whether packets are pending that [`TransmitHalf::flush`] would send.
    fn has_pending(&self) -> bool;

    /// Returns the length in bytes of the longest packet (header and payload, without UDP and IP
    /// headers) that reaches `to` without fragmentation, as far as the system knows. May cost a few
    /// system calls; callers ask once per peer, and again after [`NetworkError::TooBig`].
    fn packet_limit(&mut self, to: SocketAddr) -> usize;

    /// Returns when [`TransmitHalf::handle_timeout`] is due. The default, `None`, is for drivers
    /// without timers.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Runs the timers that are due. The caller flushes afterwards.
    fn handle_timeout(&mut self) {}

    /// Returns a new session that the driver has agreed on with a peer. The caller passes it to the
    /// protocol before it drains the packets of the last receive. The default, `None`, is for
    /// drivers without sessions.
    fn poll_session(&mut self) -> Option<Session> {
        None
    }
}

/// The receiving half of a driver.
pub trait ReceiveHalf: Send + AsFd {
    /// Receives up to about `limit` packets; a merged datagram is never cut, so there may be a few
    /// more. Returns the number of packets for [`ReceiveHalf::drain`]. 0 means that no packet is
    /// left and that the thread may wait (DRIVER-6). Undrained packets of an earlier call are lost.
    ///
    /// # Errors
    ///
    /// The driver itself is broken. ICMP errors and interrupted calls are not errors.
    fn receive(&mut self, limit: usize) -> io::Result<usize>;

    /// Returns whether the last [`ReceiveHalf::receive`] may have left packets. `false` means that
    /// no packet was left at that moment, and saves another call. `true` means nothing: a driver
    /// receives as many packets at once as it can, which may be fewer than the limit.
    ///
    /// This is a hint, since a batch that an ICMP error cut short may look like the last one. No
    /// thread may wait for packets because of it (DRIVER-6).
    fn may_have_more(&self) -> bool;

    /// Returns the number of datagrams that the system dropped because its buffer was full, as of
    /// the last receive. The default, 0, is for drivers that cannot tell.
    fn overflowed(&self) -> u64 {
        0
    }

    /// Returns the source of bulk packets, if the driver separates them: they then make the
    /// source's descriptor readable instead of this half's descriptor. [`ReceiveHalf::receive`]
    /// receives from both. The default, `None`, is for drivers whose packets are all urgent.
    fn bulk(&self) -> Option<BulkSource<'_>> {
        None
    }

    /// Passes each packet of the last [`ReceiveHalf::receive`] to `sink`, in order of arrival, and
    /// forgets them.
    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>));

    /// Passes each report since the last call to `sink`. Cheap if there is none.
    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>));

    /// Returns a sentence for the user about something that the system refuses and the driver has
    /// replaced, once. The default, `None`, is for drivers without such replacements.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
}
