//! Receive coalescing: packets from the middle of long messages have a separate socket, so that
//! they need not wake a thread one at a time.
//!
//! A classic BPF program chooses the socket of each datagram. A misclassification costs only time:
//! an urgent packet among bulk packets waits for at most [`BulkSource::max_delay`].
//!
//! # Invariants
//!
//! - **COALESCE-1** A datagram is bulk only if it consists of one DATA packet that is not a
//!   retransmission and is neither the first nor the last of its message.
//! - **COALESCE-2** Neither socket can starve the other: of two receives in a row, one reads both,
//!   as does each receive that finds no packet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use apus_driver::{Arrival, BulkSource, NetworkReport, ReceiveHalf};

use super::bpf::{
    ADD_INDEX, IF_EQUAL, IF_MORE_THAN_INDEX, LOAD_BYTE, LOAD_LENGTH, LOAD_WORD, RETURN, SUBTRACT,
    TO_INDEX,
};
use crate::receive::SocketReceive;

/// Number of the socket of bulk packets, in binding order.
const BULK: u32 = 1;
/// Number of the socket of all other packets.
const URGENT: u32 = 0;

/// Minimum number of datagrams requested by a receive of bulk packets. Chosen by us: more than
/// arrive in a millisecond at 40 Mbit/s.
const LEAST_BATCH: usize = 8;

// Layout of DATA packets: docs/spec/wire.md, WIRE-1 and WIRE-10.

/// Offset of the packet type, and the type of DATA.
const TYPE: (u32, u32) = (11, 0x10);
/// Offset of the length of the message.
const MESSAGE_LENGTH: u32 = 28;
/// Offset of the byte that marks retransmissions.
const RETRANSMIT: u32 = 48;
/// Offset of the message offset, and the kernel module's value if the offset is elsewhere.
const OFFSET: (u32, u32) = (52, u32::MAX);
/// Bytes of the header.
const HEADER: u32 = 56;

/// Returns the program. A load beyond the end of a datagram ends it with 0, [`URGENT`].
pub(crate) fn program() -> [libc::sock_filter; 16] {
    let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let check = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    [
        step(LOAD_BYTE, TYPE.0),
        check(IF_EQUAL, 0, 12, TYPE.1),
        step(LOAD_BYTE, RETRANSMIT),
        check(IF_EQUAL, 0, 10, 0),
        step(LOAD_LENGTH, 0),
        step(TO_INDEX, 0),
        step(LOAD_WORD, OFFSET.0),
        check(IF_EQUAL, 6, 0, 0),
        check(IF_EQUAL, 5, 0, OFFSET.1),
        step(ADD_INDEX, 0),
        step(SUBTRACT, HEADER),
        step(TO_INDEX, 0),
        step(LOAD_WORD, MESSAGE_LENGTH),
        // The program overestimates the end of several packets, merged or in one datagram.
        check(IF_MORE_THAN_INDEX, 1, 0, 0),
        step(RETURN, URGENT),
        step(RETURN, BULK),
    ]
}

/// The receiving half over two sockets.
pub(crate) struct CoalescingReceive {
    urgent: SocketReceive,
    bulk: SocketReceive,
    max_delay: Duration,
    /// Bulk packets of the last receive.
    bulk_packets: usize,
    /// Whether the last receive found no bulk packets.
    is_bulk_idle: bool,
}

impl CoalescingReceive {
    pub(crate) fn new(urgent: SocketReceive, bulk: SocketReceive, max_delay: Duration) -> Self {
        let bulk = bulk.in_batches_of(LEAST_BATCH);
        Self { urgent, bulk, max_delay, bulk_packets: 0, is_bulk_idle: false }
    }
}

impl ReceiveHalf for CoalescingReceive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        if std::mem::take(&mut self.is_bulk_idle) {
            // A sleeping thread then wakes for bulk packets as well, so the call that receives them
            // can be saved once.
            self.bulk_packets = 0;
            let urgent = self.urgent.receive(limit)?;
            if urgent > 0 {
                return Ok(urgent);
            }
            self.bulk_packets = self.bulk.receive(limit)?;
            self.is_bulk_idle = self.bulk_packets == 0;
            return Ok(self.bulk_packets);
        }
        self.bulk_packets = self.bulk.receive(limit.div_ceil(2))?;
        self.is_bulk_idle = self.bulk_packets == 0;
        let left = limit.saturating_sub(self.bulk_packets);
        Ok(self.bulk_packets + self.urgent.receive(left.max(limit.min(1)))?)
    }

    fn may_have_more(&self) -> bool {
        self.bulk.may_have_more() || self.urgent.may_have_more()
    }

    fn overflowed(&self) -> u64 {
        // Both sockets share their counters.
        self.urgent.overflowed()
    }

    fn bulk(&self) -> Option<BulkSource<'_>> {
        let drained = self.bulk_packets > 0 && !self.bulk.may_have_more();
        Some(BulkSource { descriptor: self.bulk.as_fd(), max_delay: self.max_delay, drained })
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        // The last packet of a message is urgent, and was sent after the bulk packets before it.
        self.bulk.drain(sink);
        self.urgent.drain(sink);
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.bulk.reports(sink);
        self.urgent.reports(sink);
    }

    fn take_warning(&mut self) -> Option<String> {
        self.bulk.take_warning().or_else(|| self.urgent.take_warning())
    }
}

impl AsFd for CoalescingReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.urgent.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Udp, UdpConfig};
    use apus_driver::Driver;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::net::UdpSocket;

    const LENGTH: usize = 3_000;

    /// Returns a DATA packet of `len` bytes at `offset` in a message of [`LENGTH`].
    fn data(offset: u32, len: usize) -> Vec<u8> {
        let mut packet = vec![0; HEADER as usize + len];
        packet[TYPE.0 as usize] = TYPE.1 as u8;
        let mut write = |at: u32, word: u32| {
            packet[at as usize..][..4].copy_from_slice(&word.to_be_bytes());
        };
        write(MESSAGE_LENGTH, LENGTH as u32);
        write(OFFSET.0, offset);
        packet
    }

    fn with(mut packet: Vec<u8>, at: u32, byte: u8) -> Vec<u8> {
        packet[at as usize] = byte;
        packet
    }

    fn open(bind: &str) -> (UdpSocket, std::net::SocketAddr, Box<dyn ReceiveHalf>) {
        let config = UdpConfig {
            receive_coalescing_usecs: 1_000,
            ..UdpConfig::bound_to(bind.parse().unwrap())
        };
        let udp = Udp::open(&config).unwrap();
        let local = udp.local_addr();
        let peer = UdpSocket::bind((local.ip(), 0)).unwrap();
        (peer, local, Box::new(udp).split().1)
    }

    /// Returns whether the descriptor is readable; on loopback, sent packets have arrived.
    fn is_readable(fd: BorrowedFd<'_>) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    fn receive_all(receive: &mut dyn ReceiveHalf) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        while receive.receive(64).unwrap() > 0 {
            receive.drain(&mut |arrival| received.push(arrival.packet.to_vec()));
        }
        received
    }

    /// COALESCE-1.
    #[test]
    fn only_packets_from_the_middle_of_a_message_may_wait() {
        let merged = [data(1_000, 1_000), data(2_000, 1_000)].concat();
        let grant = with(data(1_000, 1_000), TYPE.0, 0x11);
        let cases = [
            (data(1_000, 1_000), true, "from the middle"),
            (data(1, 2_998), true, "all but the first and the last byte"),
            (data(0, 1_000), false, "the first one"),
            (data(2_000, 1_000), false, "the last one"),
            (with(data(1_000, 1_000), RETRANSMIT, 1), false, "sent again"),
            (data(u32::MAX, 1_000), false, "the offset is elsewhere"),
            (merged, false, "two packets, one of them the last"),
            (grant, false, "not DATA"),
            (data(1_000, 0)[..55].to_vec(), false, "too short"),
            (Vec::new(), false, "empty"),
        ];
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let (peer, local, mut receive) = open(bind);
            for (packet, may_wait, why) in &cases {
                peer.send_to(packet, local).unwrap();
                let bulk = receive.bulk().unwrap();
                assert_eq!(is_readable(bulk.descriptor), *may_wait, "{bind}: {why}");
                assert_eq!(is_readable(receive.as_fd()), !may_wait, "{bind}: {why}");
                assert_eq!(receive.receive(64).unwrap(), 1, "{why}");
                assert_eq!(receive.bulk().unwrap().drained, *may_wait, "{why}");
                let mut received = Vec::new();
                receive.drain(&mut |arrival| received.push(arrival.packet.to_vec()));
                assert_eq!(received, std::slice::from_ref(packet), "{why}");
            }
        }
    }

    /// COALESCE-2.
    #[test]
    fn urgent_packets_delay_others_by_one_receive_at_most() {
        let (peer, local, mut receive) = open("127.0.0.1:0");
        assert_eq!(receive.receive(64).unwrap(), 0);
        for _ in 0..10 {
            peer.send_to(&data(0, 2), local).unwrap();
        }
        peer.send_to(&data(1_000, 1), local).unwrap();
        assert_eq!(receive.receive(64).unwrap(), 1, "an urgent one, as no other was there before");
        assert!(!receive.bulk().unwrap().drained);
        receive.receive(64).unwrap();
        assert!(receive.bulk().unwrap().drained);
        receive_all(&mut *receive);
        peer.send_to(&data(1_000, 1), local).unwrap();
        assert_eq!(receive.receive(64).unwrap(), 1, "without urgent ones at once");
    }

    /// COALESCE-2.
    #[test]
    fn a_receive_takes_packets_of_both_sockets() {
        let (peer, local, mut receive) = open("127.0.0.1:0");
        for _ in 0..100 {
            peer.send_to(&data(1_000, 1), local).unwrap();
            peer.send_to(&data(0, 2), local).unwrap();
        }
        for limit in [1, 2, 16] {
            receive.receive(limit).unwrap();
            assert!(!receive.bulk().unwrap().drained, "others are left");
            let mut lengths = Vec::new();
            receive.drain(&mut |arrival| lengths.push(arrival.packet.len() - HEADER as usize));
            assert!(lengths.contains(&1) && lengths.contains(&2), "{limit}: {lengths:?}");
        }
        let left = receive_all(&mut *receive);
        assert!(!is_readable(receive.as_fd()) && !is_readable(receive.bulk().unwrap().descriptor));
        assert!(left.len() < 200 && left.len() > 100, "{}", left.len());
    }

    #[test]
    fn the_last_packet_comes_after_those_that_waited() {
        let (peer, local, mut receive) = open("127.0.0.1:0");
        let sent = [data(1_000, 1_000), data(2_000, 1_000)];
        for packet in &sent {
            peer.send_to(packet, local).unwrap();
        }
        assert_eq!(receive_all(&mut *receive), sent);
    }

    #[test]
    fn an_address_in_use_is_an_error_and_a_group_does_without() {
        let (_peer, local, receive) = open("127.0.0.1:0");
        let coalescing =
            UdpConfig { receive_coalescing_usecs: 1_000, ..UdpConfig::bound_to(local) };
        Udp::open(&coalescing).unwrap_err();
        drop(receive);
        let group = Udp::open_group(&coalescing, 2).unwrap();
        for udp in group {
            assert!(Box::new(udp).split().1.bulk().is_none());
        }
    }
}
