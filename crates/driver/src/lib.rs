//! What must something do to carry apus's packets?
//!
//! A [`Driver`] moves datagrams between this host and others. It does not know the protocol: it sees
//! headers as bytes, and the engine (`apus`) is the only place where drivers and protocol meet.
//!
//! A driver is opened, asked for its [`Capabilities`], and then split in two halves that different
//! threads may own: [`TransmitHalf`] is used under the engine's core lock, [`ReceiveHalf`] by the thread that
//! has the turn.
//!
//! ```text
//!   engine ── send(Burst) … flush() ──▶ Transmit ──▶ network
//!   engine ◀── drain(Arrival) ── receive() ── Receive ◀── network
//!                  reports(Report): what ICMP and the system said about packets sent earlier
//! ```
//!
//! Beside the contract there are tools for tests and diagnosis, each behind the cargo feature of its
//! name: the in-memory network `loopback`, the wrappers `fault` and `pcap` around any driver, and the
//! suite `conformance` that every driver has to pass.
//!
//! # Invariants
//!
//! - **D1** No call blocks. Waiting is done by the engine on [`ReceiveHalf`]'s file descriptor.
//! - **D2** A packet arrives whole and unchanged, or not at all; packets may be lost, duplicated and
//!   reordered.
//! - **D3** A [`Burst`] is one or more packets of equal size, the last may be shorter. How many
//!   system calls or segments they become is the driver's business.
//! - **D4** Trouble with one destination never stops packets to another one: it becomes a [`NetworkReport`].
//!   Only trouble with the driver itself is an `Err`.
//! - **D5** What `send` accepted is on its way after `flush` returned, unless [`TransmitHalf::has_room`]
//!   says `false`; then the driver keeps it and sends it in a later `flush`.
//! - **D6** Before one waits on [`ReceiveHalf`]'s descriptor, one flushes, takes the reports, and calls
//!   `receive` until it returns 0, in this order. A wrapper may hold packets until that 0, and holds them
//!   for longer if one waits without it, as the engine does after a single packet; and what
//!   `flush` learns about a destination at once waits in `reports` without making the descriptor
//!   readable. Everything that happens later does.

#![forbid(unsafe_code)]

mod arrival;
mod burst;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "fault")]
pub mod fault;
#[cfg(feature = "loopback")]
pub mod loopback;
mod packet;
#[cfg(feature = "pcap")]
pub mod pcap;
mod report;

pub use arrival::{Arrival, Ecn};
pub use burst::Burst;
pub use capabilities::Capabilities;
pub use packet::{BurstPacket, BurstPackets, PacketPieces};
pub use report::{NetworkError, NetworkReport};

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Something that carries packets, not yet split in its halves.
pub trait Driver: Send {
    /// What the driver found out about the system when it was opened.
    fn capabilities(&self) -> Capabilities;

    /// The address that peers know this driver by. The IP address is unspecified if the driver
    /// listens on all addresses of the host.
    fn local_addr(&self) -> SocketAddr;

    /// What the driver counts, if it does; goes on counting after [`Driver::split`].
    fn counters(&self) -> Option<Arc<dyn DriverCounters>> {
        None
    }

    /// The two halves. They are independent: neither waits for the other.
    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>);
}

/// What a driver counts. Counts only grow.
pub trait DriverCounters: Send + Sync {
    /// Name and value of each, always in the same order.
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

/// The half that sends.
pub trait TransmitHalf: Send {
    /// Takes a burst. The driver may hold small packets back until [`TransmitHalf::flush`], so that
    /// packets of equal size for one peer leave in one system call whatever messages they belong to.
    ///
    /// `burst` is borrowed: what is held back has been copied. Packets longer than
    /// [`TransmitHalf::packet_limit`] are not sent but reported ([`NetworkError::TooBig`]). Without
    /// [`TransmitHalf::has_room`] the burst may be dropped.
    ///
    /// # Errors
    ///
    /// The driver itself is broken (its descriptor was closed, say). Trouble with the destination is
    /// not an error but a [`NetworkReport`] (invariant D4).
    ///
    /// # Panics
    ///
    /// If the burst contradicts itself (see [`Burst`]), in debug builds.
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()>;

    /// Sends what was held back.
    ///
    /// # Errors
    ///
    /// As for [`TransmitHalf::send`]. A full socket buffer is no error: [`TransmitHalf::has_room`] then is
    /// `false`.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether the driver can take a burst now. After `false`, wait until the descriptor of the
    /// receiving half is writable, and flush.
    fn has_room(&self) -> bool;

    /// Whether packets are held back that a [`TransmitHalf::flush`] would send.
    fn has_pending(&self) -> bool;

    /// Longest packet (header and payload, without UDP and IP headers) that reaches `to` in one
    /// piece, as far as the system knows. May cost a few system calls; ask once per peer, and again
    /// after [`NetworkError::TooBig`].
    fn packet_limit(&mut self, to: SocketAddr) -> usize;
}

/// The half that receives.
pub trait ReceiveHalf: Send + AsFd {
    /// Takes what has arrived, at most about `limit` packets (a merged datagram is never cut, so a
    /// few more may come). Returns the number of packets that [`ReceiveHalf::drain`] will give; 0 means
    /// that nothing is left and that one may wait (D6). Packets of an earlier call that were not
    /// drained are lost.
    ///
    /// # Errors
    ///
    /// The driver itself is broken. ICMP errors and interrupted calls are not errors.
    fn receive(&mut self, limit: usize) -> io::Result<usize>;

    /// Whether the last [`ReceiveHalf::receive`] may have left something. `false` says that there was nothing more at
    /// that moment, without the cost of another call; `true` says nothing: a driver takes as many packets at once
    /// as it can, which may be fewer than the limit. A hint: a batch that an ICMP error cut short may look like the
    /// last one. Nobody waits for packets because of it (D6).
    fn may_have_more(&self) -> bool;

    /// Gives each packet of the last [`ReceiveHalf::receive`] to `sink`, in order of arrival, and forgets
    /// them.
    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>));

    /// Gives each report that has come in since the last call to `sink`. Cheap when there is none.
    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>));
}
