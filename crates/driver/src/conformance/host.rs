//! A driver, and everything that a test does with it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Fixture, WATCHDOG};
use crate::{Burst, Capabilities, NetworkError, ReceiveHalf, TransmitHalf};

/// Length of the headers that the suite sends.
pub(super) const HEADER_LEN: usize = 4;

/// An opened driver.
pub(super) struct Host {
    pub(super) address: SocketAddr,
    pub(super) capabilities: Capabilities,
    pub(super) transmit: Box<dyn TransmitHalf>,
    pub(super) receive: Box<dyn ReceiveHalf>,
    /// Reports that have come in.
    pub(super) reports: Vec<Seen>,
}

/// A report that has come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) peer: SocketAddr,
    pub(super) trouble: NetworkError,
    pub(super) packet: Vec<u8>,
}

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) bytes: Vec<u8>,
}

impl Host {
    pub(super) fn open(fixture: &dyn Fixture) -> Self {
        let driver = fixture.open();
        let address = fixture.address_of(&*driver);
        let capabilities = driver.capabilities();
        let (transmit, receive) = driver.split();
        Self { address, capabilities, transmit, receive, reports: Vec::new() }
    }

    /// Bytes that may wait for this host without danger of an overflow. A quarter of the buffer,
    /// because systems count their own structures too.
    pub(super) fn budget(&self) -> usize {
        self.capabilities.receive_buffer / 4
    }

    /// Sends one packet.
    pub(super) fn send(&mut self, to: SocketAddr, packet: &[u8]) {
        self.send_class(to, 0, packet);
    }

    /// Sends one packet with a traffic class.
    pub(super) fn send_class(&mut self, to: SocketAddr, traffic_class: u8, packet: &[u8]) {
        let header_len = packet.len().min(HEADER_LEN);
        let (headers, payload) = packet.split_at(header_len);
        let (payload, segment) = (&[payload][..], payload.len());
        let burst = Burst { to, from: None, traffic_class, headers, header_len, payload, segment };
        self.send_burst(&burst);
    }

    /// Sends packets that are equal in size but for a shorter last one. The payload is cut into
    /// slices of the given lengths, again and again.
    pub(super) fn send_packets(&mut self, to: SocketAddr, packets: &[Vec<u8>], slices: &[usize]) {
        let headers: Vec<u8> =
            packets.iter().flat_map(|packet| &packet[..HEADER_LEN]).copied().collect();
        let payload: Vec<u8> =
            packets.iter().flat_map(|packet| &packet[HEADER_LEN..]).copied().collect();
        let mut rest = &payload[..];
        let mut cut = Vec::new();
        for len in slices.iter().cycle() {
            let (slice, behind) = rest.split_at(rest.len().min(*len));
            cut.push(slice);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        let segment = packets[0].len() - HEADER_LEN;
        let (headers, payload) = (&headers[..], &cut[..]);
        let header_len = HEADER_LEN;
        let burst =
            Burst { to, from: None, traffic_class: 0, headers, header_len, payload, segment };
        self.send_burst(&burst);
    }

    /// Sends a burst as soon as there is room.
    pub(super) fn send_burst(&mut self, burst: &Burst<'_>) {
        assert!(burst.is_consistent(), "the suite's own mistake: {burst:?}");
        self.make_room();
        self.transmit.send(burst).expect("D4: send fails only if the driver is broken");
    }

    /// Sends what was held back, all of it.
    pub(super) fn flush(&mut self) {
        self.transmit.flush().expect("D4: flush fails only if the driver is broken");
        self.make_room();
        assert!(!self.transmit.has_pending(), "D5: flush left packets although there is room");
    }

    fn make_room(&mut self) {
        while !self.transmit.has_room() {
            wait(&*self.receive, PollFlags::OUT);
            self.transmit.flush().expect("D4: flush fails only if the driver is broken");
        }
    }

    /// Waits for `count` packets, and sees to it that there are no more.
    pub(super) fn collect(&mut self, count: usize) -> Vec<Got> {
        let mut packets = Vec::new();
        loop {
            self.take(64, &mut packets);
            if packets.len() >= count {
                break;
            }
            wait(&*self.receive, PollFlags::IN);
        }
        assert_eq!(packets.len(), count, "more packets than were sent");
        packets
    }

    /// Takes everything that is there now, in calls with `limit`, and the reports. Afterwards one
    /// may wait (D6). Returns the most packets of one call.
    pub(super) fn take(&mut self, limit: usize, packets: &mut Vec<Got>) -> usize {
        let mut most = 0;
        self.take_reports();
        loop {
            let announced = self.receive.receive(limit).expect("D4: ICMP errors are not errors");
            if announced == 0 {
                assert!(!self.receive.may_have_more(), "there was nothing");
                return most;
            }
            let before = packets.len();
            self.receive.drain(&mut |arrival| {
                let bytes = arrival.packet.to_vec();
                packets.push(Got { from: arrival.from, to: arrival.to, bytes });
            });
            assert_eq!(packets.len() - before, announced, "receive and drain disagree");
            most = most.max(announced);
        }
    }

    pub(super) fn take_reports(&mut self) {
        self.receive.reports(&mut |report| {
            let packet = report.packet.to_vec();
            self.reports.push(Seen { peer: report.peer, trouble: report.trouble, packet });
        });
    }

    /// Whether the descriptor is readable now.
    pub(super) fn is_readable(&self) -> bool {
        is_ready(&*self.receive, PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    /// Gives the system a moment to say something; for what may be lost on its way and is tried
    /// again then.
    pub(super) fn linger(&self) {
        is_ready(&*self.receive, PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: 20_000_000 });
    }

    pub(super) fn wait_readable(&self) {
        wait(&*self.receive, PollFlags::IN);
    }
}

fn wait(receive: &dyn ReceiveHalf, events: PollFlags) {
    let secs = i64::try_from(WATCHDOG.as_secs()).expect("a sensible watchdog");
    let timeout = Timespec { tv_sec: secs, tv_nsec: 0 };
    assert!(is_ready(receive, events, timeout), "nothing within {WATCHDOG:?}: something hangs");
}

fn is_ready(receive: &dyn ReceiveHalf, events: PollFlags, timeout: Timespec) -> bool {
    let began = Instant::now();
    loop {
        let fd = receive.as_fd();
        match poll(&mut [PollFd::new(&fd, events)], Some(&timeout)) {
            Ok(ready) => return ready > 0,
            Err(error) if io::Error::from(error).kind() == io::ErrorKind::Interrupted => {
                assert!(began.elapsed() <= WATCHDOG, "interrupted again and again");
            }
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Bytes that tell one packet from others and one position from others.
pub(super) fn pattern(len: usize, salt: usize) -> Vec<u8> {
    let mut state = u32::try_from(salt % 0xffff_fffb).expect("it was reduced").wrapping_add(1);
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(len)
    .collect()
}

/// Checks that exactly these packets arrived, in whatever order (S1).
pub(super) fn assert_same(sent: &[Vec<u8>], got: &[Got]) {
    let mut balance = BTreeMap::<&[u8], isize>::new();
    for packet in sent {
        *balance.entry(packet).or_default() += 1;
    }
    for packet in got {
        *balance.entry(&packet.bytes).or_default() -= 1;
    }
    let wrong: Vec<String> = balance
        .iter()
        .filter(|(_, count)| **count != 0)
        .map(|(bytes, count)| {
            let what = if *count > 0 { "missing" } else { "never sent" };
            let start = &bytes[..bytes.len().min(8)];
            format!("{what}: {} bytes beginning with {start:02x?}", bytes.len())
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "D2: {} packets differ: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(8)]
    );
}
