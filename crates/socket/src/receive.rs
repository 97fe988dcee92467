//! How do packets arrive?
//!
//! The system fills [`Inbox`]es, each with a datagram of one or more packets of one peer; `drain` cuts
//! them apart where the sender, or the network card, had put them together.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use apus_driver::{Arrival, Ecn, NetworkReport, ReceiveHalf};
use rustix::io::Errno;

use crate::address;
use crate::batch::Batch;
use crate::cmsg::Told;
use crate::error_queue::ErrorQueue;
use crate::errors::{self, Verdict};
use crate::kernel::{self, Inbox, RECEIVE_BATCH};
use crate::shared::{Refusal, Shared};

/// Bytes of an inbox: the longest UDP datagram, merged or not.
const INBOX: usize = 1 << 16;

/// Times that a receive is tried. Ours: someone who floods us with ICMP errors shall not keep the
/// engine here; what has arrived keeps the descriptor readable.
const ATTEMPTS: u32 = 16;

/// The half that receives.
#[derive(Debug)]
pub(crate) struct SocketReceive {
    shared: Arc<Shared>,
    inboxes: Vec<Inbox>,
    /// What is known about the datagrams in the first inboxes; `None` for one that is useless.
    datagrams: Vec<Option<Datagram>>,
    batch: Batch,
    /// Whether the system filled all inboxes that it was given last.
    full: bool,
    errors: ErrorQueue,
    /// Whether datagrams may be merged, so that one whose segment size is missing cannot be cut.
    may_be_merged: bool,
}

/// A datagram in an inbox.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    /// Where in the inbox its packets begin.
    start: usize,
    from: SocketAddr,
    to: Option<IpAddr>,
    ecn: Ecn,
    /// Bytes of each packet but the last; at least 1.
    segment: usize,
}

impl SocketReceive {
    /// The half that receives through the socket in `shared`. `may_be_merged`: the system may hand over several
    /// packets as one.
    #[must_use]
    pub(crate) fn new(shared: Arc<Shared>, may_be_merged: bool) -> Self {
        Self::with_inboxes(shared, may_be_merged, INBOX)
    }

    fn with_inboxes(shared: Arc<Shared>, may_be_merged: bool, len: usize) -> Self {
        let new_inbox = || Inbox::new(len);
        Self {
            shared,
            inboxes: std::iter::repeat_with(new_inbox).take(RECEIVE_BATCH).collect(),
            datagrams: Vec::with_capacity(RECEIVE_BATCH),
            batch: Batch::new(),
            full: false,
            errors: ErrorQueue::new(),
            may_be_merged,
        }
    }

    /// Lets the system fill the first `count` inboxes; returns how many it has filled.
    #[inline]
    fn fill(&mut self, count: usize) -> io::Result<usize> {
        for _ in 0..ATTEMPTS {
            self.shared.counters.receive.receive_calls.add(1);
            match kernel::receive(self.shared.as_fd(), &mut self.inboxes[..count], 0) {
                Ok(filled) => return Ok(filled),
                Err(Errno::AGAIN) => return Ok(0),
                Err(error) => self.judge(error)?,
            }
        }
        Ok(0)
    }

    /// `Ok`: try again.
    #[cold]
    fn judge(&self, error: Errno) -> io::Result<()> {
        match errors::judge(error) {
            Verdict::Interrupted | Verdict::NotNow => Ok(()),
            // An earlier packet's, told once. Its details are in the error queue.
            Verdict::Told(_) => {
                self.shared.raise();
                Ok(())
            }
            Verdict::Own(_) | Verdict::Broken => {
                let error = io::Error::from(error);
                Err(io::Error::new(error.kind(), format!("receive: {error}")))
            }
        }
    }

    /// Reads what came with the datagram in an inbox; `None` if it is useless.
    #[inline]
    fn open(&self, inbox: &Inbox) -> Option<Datagram> {
        let told = Told::read(inbox.control());
        if let Some(total) = told.overflowed {
            self.note_overflow(total);
        }
        let unclear = self.may_be_merged && inbox.is_control_cut() && told.segment.is_none();
        if inbox.is_cut() || unclear {
            return None;
        }
        let Shared { carrier, family, .. } = *self.shared;
        let bytes = inbox.datagram();
        let header = carrier.header_before(family, bytes).ok()?;
        let start = header.map_or(0, |header| header.len);
        let packets = &bytes[start..];
        let segment = told.segment.filter(|segment| *segment > 0).unwrap_or(packets.len()).max(1);
        let class = header.map_or(told.traffic_class, |header| header.traffic_class);
        let from = carrier.sender(address::parse(inbox.name())?, packets)?;
        let to = header.map_or(told.to, |header| carrier.listens_at_all(header.to));
        Some(Datagram { start, from, to, ecn: Ecn::from_traffic_class(class), segment })
    }

    /// Opens the first `count` inboxes; returns the number of packets.
    #[inline]
    fn open_all(&mut self, count: usize) -> usize {
        let mut packets = 0;
        for inbox in &self.inboxes[..count] {
            let datagram = self.open(inbox);
            match datagram {
                // A datagram without a byte is a packet too.
                Some(Datagram { start, segment, .. }) => {
                    let len = inbox.datagram().len() - start;
                    packets += if len <= segment { 1 } else { len.div_ceil(segment) };
                }
                None => self.shared.counters.receive.datagrams_cut.add(1),
            }
            self.datagrams.push(datagram);
        }
        packets
    }

    /// The system counts modulo 2^32, we do not.
    #[cold]
    fn note_overflow(&self, total: u32) {
        let overflowed = &self.shared.counters.receive.datagrams_overflowed;
        #[allow(clippy::cast_possible_truncation)] // Modulo 2^32 is what is meant.
        let more = total.wrapping_sub(overflowed.get() as u32);
        overflowed.add(u64::from(more));
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
            let asked = self.batch.ask(limit);
            let filled = self.fill(asked)?;
            let packets = self.open_all(filled);
            self.batch.learn(asked, filled, packets);
            self.full = filled == asked;
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

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        for (inbox, datagram) in self.inboxes.iter().zip(&self.datagrams) {
            let Some(datagram) = datagram else { continue };
            // Copied from where it is: from one that was moved the processor would wait for its pieces, packet by packet.
            let Datagram { start, from, to, ecn, segment } = *datagram;
            let bytes = &inbox.datagram()[start..];
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
        if !self.shared.lower() {
            return;
        }
        for Refusal { peer, trouble, beginning } in self.shared.take_refusals() {
            sink(NetworkReport { peer, error: trouble, packet: &beginning });
        }
        let reads = &self.shared.counters.receive.error_reads;
        if !self.errors.drain(&self.shared, reads, sink) {
            self.shared.raise();
        }
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
        /// Waits for something; the timeout is a watchdog.
        pub(crate) fn wait(&self) {
            let timeout = Timespec { tv_sec: 60, tv_nsec: 0 };
            assert_eq!(poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&timeout)), Ok(1));
        }
    }

    #[test]
    fn a_datagram_that_is_cut_is_thrown_away_and_counted() {
        let (shared, local) = testing::open();
        let mut receive = SocketReceive::with_inboxes(shared.clone(), true, 100);
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
