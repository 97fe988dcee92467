//! Receiving half.
//!
//! The system fills [`RecvBuffer`]s, each with a datagram of one or more packets from one peer;
//! `drain` splits merged datagrams into packets.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use apus_driver::{Arrival, Ecn, NetworkReport, ReceiveHalf};
use apus_wire::Header;
use rustix::io::Errno;

use crate::address;
use crate::batch::Batch;
use crate::cmsg::Metadata;
use crate::error_queue::ErrorQueue;
use crate::errors::{self, ErrorClass};
use crate::fallback::{Call, Fallback};
use crate::kernel::{self, RECEIVE_BATCH, RecvBuffer};
use crate::shared::{SendFailure, SharedSocket};

/// Bytes of a receive buffer: the longest UDP datagram, merged or not.
const BUFFER: usize = 1 << 16;

/// Bytes of a buffer for short packets: the smallest MTU of IPv6.
const SHORT_BUFFER: usize = 1280;

/// Attempts of a receive. Chosen by us: a flood of ICMP errors must not keep the engine here;
/// received packets keep the descriptor readable.
const ATTEMPTS: u32 = 16;

/// The receiving half of a driver.
#[derive(Debug)]
pub(crate) struct SocketReceive {
    shared: Arc<SharedSocket>,
    /// As many as the largest batch so far, at most [`RECEIVE_BATCH`]: an endpoint with little
    /// traffic has one.
    buffers: Vec<RecvBuffer>,
    /// Bytes of each buffer.
    buffer_len: usize,
    /// Metadata of the datagrams in the first buffers; `None` for a discarded datagram.
    datagrams: Vec<Option<Datagram>>,
    batch: Batch,
    /// Whether the system refuses several datagrams at once.
    many: Fallback,
    /// The error of such receives in a test.
    #[cfg(test)]
    refuses_many: Option<Errno>,
    /// Whether the last call filled all the buffers that it was given.
    full: bool,
    errors: ErrorQueue,
    /// Whether datagrams may be merged, so that one without segment size cannot be split.
    may_be_merged: bool,
    /// The system's last reported count of datagrams dropped for lack of room, modulo 2^32.
    overflowed: Cell<u32>,
    /// Whether sprayed packets are attributed to their sender's own port (WIRE-36).
    takes_sprayed: bool,
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    /// Offset of its packets in the buffer.
    start: usize,
    from: SocketAddr,
    to: Option<IpAddr>,
    ecn: Ecn,
    /// Bytes of each packet but the last; at least 1.
    segment: usize,
}

impl SocketReceive {
    /// Returns the receiving half of the socket in `shared`. `may_be_merged` says that the system
    /// may deliver several packets as one.
    #[must_use]
    pub(crate) fn new(shared: Arc<SharedSocket>, may_be_merged: bool) -> Self {
        Self::with_buffers(shared, may_be_merged, BUFFER)
    }

    /// Returns the receiving half of a socket whose packets are short and not merged; longer
    /// packets are discarded.
    #[must_use]
    pub(crate) fn of_short_packets(shared: Arc<SharedSocket>) -> Self {
        Self::with_buffers(shared, false, SHORT_BUFFER)
    }

    fn with_buffers(shared: Arc<SharedSocket>, may_be_merged: bool, len: usize) -> Self {
        Self {
            shared,
            buffers: Vec::with_capacity(RECEIVE_BATCH),
            buffer_len: len,
            datagrams: Vec::with_capacity(RECEIVE_BATCH),
            batch: Batch::new(),
            many: Fallback::default(),
            #[cfg(test)]
            refuses_many: None,
            full: false,
            errors: ErrorQueue::new(),
            may_be_merged,
            overflowed: Cell::new(0),
            takes_sprayed: false,
        }
    }

    /// Makes each receive request at least `least` datagrams.
    #[must_use]
    pub(crate) fn in_batches_of(self, least: usize) -> Self {
        Self { batch: Batch::of_at_least(least), ..self }
    }

    /// Enables the attribution of sprayed packets to the port in their header.
    #[must_use]
    pub(crate) fn taking_sprayed(self, takes_sprayed: bool) -> Self {
        Self { takes_sprayed, ..self }
    }

    /// Receives into the first `count` buffers; returns how many were filled. If the system refuses
    /// to fill several at once, `count` becomes 1.
    #[inline]
    fn fill(&mut self, count: &mut usize) -> io::Result<usize> {
        if *count > self.buffers.len() {
            self.add_buffers(*count);
        }
        // The error of a receive into several buffers that was refused.
        let mut refusal = None;
        for attempt in 0..ATTEMPTS {
            self.shared.counters.receive.receive_calls.add(1);
            let error = match self.call(*count) {
                Ok(filled) => {
                    self.note_filled(*count, refusal);
                    return Ok(filled);
                }
                Err(Errno::AGAIN) => {
                    self.note_filled(*count, refusal);
                    return Ok(0);
                }
                Err(error) => error,
            };
            match self.handle_error(error) {
                // An ICMP error is reported once for each packet that caused one.
                Ok(()) if *count == 1 || attempt < ATTEMPTS / 2 => {}
                Err(error) if *count == 1 => return Err(error),
                Ok(()) | Err(_) => {
                    refusal = Some(error);
                    *count = 1;
                }
            }
        }
        Ok(0)
    }

    #[inline]
    fn call(&mut self, count: usize) -> Result<usize, Errno> {
        #[cfg(test)]
        if let Some(error) = self.refuses_many.filter(|_| count > 1) {
            return Err(error);
        }
        kernel::receive(self.shared.as_fd(), &mut self.buffers[..count], 0)
    }

    /// Records that a receive into `count` buffers worked, in place of one that was refused.
    #[inline]
    fn note_filled(&mut self, count: usize, refusal: Option<Errno>) {
        if let Some(error) = refusal {
            self.shared.counters.receive.receive_batches_refused.add(1);
            if self.many.note_failure(error) {
                self.shared.refused_calls.add(Call::ReceiveMany, error);
            }
        } else if count > 1 {
            self.many.note_success();
        }
    }

    /// Adds buffers until there are `count`.
    #[cold]
    fn add_buffers(&mut self, count: usize) {
        self.buffers.resize_with(count, || RecvBuffer::new(self.buffer_len));
    }

    /// Handles a failed receive; `Ok` means that the caller retries.
    #[cold]
    fn handle_error(&self, error: Errno) -> io::Result<()> {
        match errors::classify(error) {
            ErrorClass::Interrupted | ErrorClass::WouldBlock => Ok(()),
            // The error of an earlier packet, reported once. Its details are in the error queue.
            ErrorClass::Icmp(_) => {
                self.shared.raise_error_signal();
                Ok(())
            }
            ErrorClass::Destination(_) | ErrorClass::Broken => {
                let error = io::Error::from(error);
                Err(io::Error::new(error.kind(), format!("receive (recvmsg): {error}")))
            }
        }
    }

    /// Reads the metadata of the datagram in a buffer; `None` if it must be discarded.
    #[inline]
    fn open(&self, buffer: &RecvBuffer) -> Option<Datagram> {
        let metadata = Metadata::read(buffer.control());
        if let Some(total) = metadata.overflowed {
            self.count_overflow(total);
        }
        let unclear = self.may_be_merged && buffer.is_control_cut() && metadata.segment.is_none();
        if buffer.is_cut() || unclear {
            return None;
        }
        let SharedSocket { carrier, family, .. } = *self.shared;
        let bytes = buffer.datagram();
        let header = carrier.header_before(family, bytes).ok()?;
        let start = header.map_or(0, |header| header.len);
        let packets = &bytes[start..];
        let segment = metadata.segment.filter(|segment| *segment > 0);
        let segment = segment.unwrap_or(packets.len()).max(1);
        let class = header.map_or(metadata.traffic_class, |header| header.traffic_class);
        let mut from = carrier.sender(address::parse(buffer.name())?, packets)?;
        if self.takes_sprayed
            && let Some(port) = Header::peek_sprayed(packets)
        {
            from.set_port(port);
        }
        let to = header.map_or(metadata.to, |header| carrier.listens_at_all(header.to));
        Some(Datagram { start, from, to, ecn: Ecn::from_traffic_class(class), segment })
    }

    /// Reads the metadata of the first `count` buffers; returns the number of packets.
    #[inline]
    fn open_all(&mut self, count: usize) -> usize {
        let mut packets = 0;
        for buffer in &self.buffers[..count] {
            let datagram = self.open(buffer);
            match datagram {
                // An empty datagram is a packet as well.
                Some(Datagram { start, segment, .. }) => {
                    let len = buffer.datagram().len() - start;
                    packets += if len <= segment { 1 } else { len.div_ceil(segment) };
                }
                None => self.shared.counters.receive.datagrams_cut.add(1),
            }
            self.datagrams.push(datagram);
        }
        packets
    }

    /// Counts overflowed datagrams. The system's counter is modulo 2^32, the driver's is not.
    #[cold]
    fn count_overflow(&self, total: u32) {
        let more = total.wrapping_sub(self.overflowed.replace(total));
        self.shared.counters.receive.datagrams_overflowed.add(u64::from(more));
    }
}

impl ReceiveHalf for SocketReceive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.datagrams.clear();
        if limit == 0 {
            self.full = true;
            return Ok(0);
        }
        loop {
            let mut requested = self.batch.next_size(limit);
            if self.many.is_refused() {
                requested = 1;
            }
            let filled = self.fill(&mut requested)?;
            let packets = self.open_all(filled);
            self.batch.record(requested, filled, packets);
            self.full = filled == requested;
            if packets > 0 || filled == 0 {
                let counters = &self.shared.counters.receive;
                counters.datagrams_received.add(filled as u64);
                counters.packets_received.add(packets as u64);
                return Ok(packets);
            }
            self.datagrams.clear();
        }
    }

    fn may_have_more(&self) -> bool {
        self.full
    }

    fn overflowed(&self) -> u64 {
        self.shared.counters.receive.datagrams_overflowed.get()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        for (buffer, datagram) in self.buffers.iter().zip(&self.datagrams) {
            let Some(datagram) = datagram else { continue };
            // Copied in place: reading the fields of a moved struct costs a store-forwarding stall
            // per packet.
            let Datagram { start, from, to, ecn, segment } = *datagram;
            let bytes = &buffer.datagram()[start..];
            if bytes.is_empty() {
                sink(Arrival { from, to, ecn, packet: bytes });
            }
            for packet in bytes.chunks(segment) {
                sink(Arrival { from, to, ecn, packet });
            }
        }
        self.datagrams.clear();
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        if !self.shared.take_error_signal() {
            return;
        }
        for SendFailure { peer, error, beginning } in self.shared.take_failures() {
            sink(NetworkReport { peer, error, packet: &beginning });
        }
        let reads = &self.shared.counters.receive.error_reads;
        if !self.errors.drain(&self.shared, reads, sink) {
            self.shared.raise_error_signal();
        }
    }

    fn take_warning(&mut self) -> Option<String> {
        self.shared.refused_calls.take()
    }
}

impl AsFd for SocketReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::net::UdpSocket;

    impl SocketReceive {
        /// Waits until the socket is readable; the timeout is a watchdog.
        pub(crate) fn wait(&self) {
            let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)), Ok(1));
        }
    }

    /// FALLBACK-1, FALLBACK-2.
    #[test]
    fn a_system_that_refuses_several_datagrams_at_once_returns_each_alone() {
        for error in [Errno::NOSYS, Errno::IO, Errno::INVAL, Errno::PERM, Errno::MSGSIZE] {
            let (shared, local) = testing::open();
            let mut receive = SocketReceive::new(shared.clone(), true).in_batches_of(8);
            receive.refuses_many = Some(error);
            let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
            for number in 0..10 {
                peer.send_to(&[number], local).unwrap();
            }
            let mut numbers = Vec::new();
            while numbers.len() < 10 {
                receive.wait();
                while receive.receive(64).unwrap() > 0 {
                    receive.drain(&mut |arrival| numbers.push(arrival.packet[0]));
                }
            }
            assert_eq!(numbers, (0..10).collect::<Vec<u8>>(), "{error}");
            assert!(receive.many.is_refused(), "{error}");
            let warning = receive.take_warning().unwrap();
            assert!(warning.contains("recvmmsg"), "{warning}");
            assert_eq!(receive.take_warning(), None, "once");
            // A full receive of one datagram may have left others.
            peer.send_to(&[1], local).unwrap();
            receive.wait();
            assert_eq!((receive.receive(64).unwrap(), receive.may_have_more()), (1, true));
        }
    }

    #[test]
    fn a_truncated_datagram_is_discarded_and_counted() {
        let (shared, local) = testing::open();
        let mut receive = SocketReceive::with_buffers(shared.clone(), true, 100);
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        for len in [101, 100, 5000, 7] {
            peer.send_to(&vec![1; len], local).unwrap();
        }
        let mut lengths = Vec::new();
        while lengths.len() < 2 {
            receive.wait();
            receive.receive(64).unwrap();
            receive.drain(&mut |arrival| lengths.push(arrival.packet.len()));
        }
        assert_eq!(lengths, [100, 7]);
        assert_eq!(shared.counters.datagrams_cut(), 2);
    }
}
