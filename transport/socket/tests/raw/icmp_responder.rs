//! ICMP responder: answers for an unused port, like the kernel module.
//!
//! Hosts with the module answer "port unreachable" (HM `homa_incoming.c` `homa_dispatch_pkts`).
//! Here a thread answers for one port, and returns the packet as a router would, including the IP
//! header.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, bind, recvfrom, sendto, socket,
};

use crate::namespace::Namespace;

const HOMA: u32 = 146;

/// Contents of an answer: ICMP type and code, and the following word.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) v4: (u8, u8),
    pub(crate) v6: (u8, u8),
    /// The MTU, for errors that have one.
    pub(crate) word: u32,
}

pub(crate) const PORT_UNREACHABLE: Answer = Answer { v4: (3, 3), v6: (1, 4), word: 0 };
pub(crate) const HOST_UNREACHABLE: Answer = Answer { v4: (3, 1), v6: (1, 3), word: 0 };

/// A thread that answers until it is dropped.
pub(crate) struct IcmpResponder {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl IcmpResponder {
    /// Starts a thread that answers all packets to `at`, an address of `host`.
    pub(crate) fn new(host: &Namespace, at: SocketAddr, answer: Answer) -> Self {
        let (family, icmp) = match at {
            SocketAddr::V4(_) => (AddressFamily::INET, 1),
            SocketAddr::V6(_) => (AddressFamily::INET6, 58),
        };
        let open = |protocol: u32| {
            let protocol = Some(Protocol::from_raw(protocol.try_into().unwrap()));
            let socket = socket(family, SocketType::RAW, protocol).unwrap();
            bind(&socket, &SocketAddr::new(at.ip(), 0)).unwrap();
            socket
        };
        let (packets, errors) = host.inside(|| (open(HOMA), open(icmp)));
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || answer_all(&packets, &errors, &stopped, at, answer));
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for IcmpResponder {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn answer_all(
    packets: &OwnedFd,
    errors: &OwnedFd,
    stopped: &UnixStream,
    at: SocketAddr,
    answer: Answer,
) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut both = [PollFd::new(packets, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        poll(&mut both, None).unwrap();
        if !both[1].revents().is_empty() {
            return;
        }
        let (len, _, from) = recvfrom(packets, &mut buffer[..], RecvFlags::empty()).unwrap();
        let from = SocketAddr::try_from(from.unwrap()).unwrap().ip();
        let returned = match (from, at.ip()) {
            (IpAddr::V4(_), _) => buffer[..len].to_vec(),
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                // Version and class, length, protocol and hop limit, both addresses.
                let length = u16::try_from(len).unwrap().to_be_bytes();
                let mut header = vec![0x60, 0, 0, 0, length[0], length[1], 146, 64];
                header.extend(from.octets());
                header.extend(to.octets());
                [&header, &buffer[..len]].concat()
            }
            other => panic!("two families: {other:?}"),
        };
        let packet = &returned[if from.is_ipv4() { 20 } else { 40 }..];
        if packet.get(2..4) != Some(&at.port().to_be_bytes()) {
            continue;
        }
        let (kind, code) = if from.is_ipv4() { answer.v4 } else { answer.v6 };
        let mut message = vec![kind, code, 0, 0];
        message.extend(answer.word.to_be_bytes());
        message.extend(&returned[..returned.len().min(500)]);
        if from.is_ipv4() {
            // The system computes the checksum of ICMPv6.
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let to = SocketAddr::new(from, 0);
        sendto(errors, &message, SendFlags::empty(), &to).unwrap();
    }
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}
