//! Forged ICMP "port unreachable": no call fails for it.
//!
//! The attacker is a raw socket, which needs CAP_NET_RAW. It may send ICMP packets with any
//! content, as an attacker anywhere in the network can.

use super::{echo_pair, over_udp};
use apus::{Config, Endpoint, Role};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The attacker.
struct Forger {
    socket: OwnedFd,
    client: SocketAddrV4,
    server: SocketAddrV4,
}

impl Forger {
    /// Returns an attacker that knows the addresses; `None`, and a line that reports it, if the
    /// system permits none.
    fn open(client: SocketAddr, server: SocketAddr) -> Option<Self> {
        let opened = rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP));
        let (SocketAddr::V4(client), SocketAddr::V4(server)) = (client, server) else {
            panic!("addresses of IPv4")
        };
        // A client is bound to all addresses.
        let client = SocketAddrV4::new(Ipv4Addr::LOCALHOST, client.port());
        match opened {
            Ok(socket) => Some(Self { socket, client, server }),
            Err(error) => {
                eprintln!("SKIPPED: a raw socket needs CAP_NET_RAW: {error}");
                None
            }
        }
    }

    /// Sends "port unreachable" about a packet from the client to the server that starts with
    /// `packet`.
    fn send(&self, packet: &[u8]) {
        let udp = |port: u16| port.to_be_bytes();
        let length = u16::try_from(8 + packet.len()).unwrap();
        let inner = [
            &[0x45, 0][..],
            &(20 + length).to_be_bytes(),
            &[0, 0, 0, 0, 64, 17, 0, 0],
            &self.client.ip().octets(),
            &self.server.ip().octets(),
            &udp(self.client.port()),
            &udp(self.server.port()),
            &length.to_be_bytes(),
            &[0, 0],
            packet,
        ]
        .concat();
        let mut icmp = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &inner].concat();
        let sum = checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let to = SocketAddr::from((*self.client.ip(), 0));
        rustix::net::sendto(&self.socket, &icmp, SendFlags::empty(), &to).unwrap();
    }
}

/// The checksum of the Internet (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the start of a DATA packet with this id.
fn header(id: u64) -> [u8; 60] {
    let mut bytes = [0; 60];
    // The kind of DATA, and the sender's id.
    bytes[11] = 0x10;
    bytes[20..28].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// Makes calls while `forge` runs, again and again. None may fail.
fn calls_survive(forge: impl Fn(&Forger, &Endpoint) + Sync) {
    // A peer that is silent for two intervals is believed to be gone. Threads may lose their core
    // for longer than the default of 5 ms.
    let patient = Config::builder()
        .resend_usecs(1_000_000)
        .resend_interval_usecs(1_000_000)
        .timeout_usecs(60_000_000);
    let (client, server, _echo) = echo_pair(&over_udp().config(patient.build().unwrap()));
    let Some(forger) = Forger::open(client.local_addr(), server) else { return };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                forge(&forger, &client);
            }
        });
        let mut failed = Vec::new();
        // As many calls as it takes until the client has read a forged packet.
        let reports = || client.metrics().engine.reports;
        for number in (0..usize::MAX).take_while(|number| *number < 60 || reports() == 0) {
            let size = [100, 2_000_000][number % 2];
            let result = client.call(server, vec![7; size]);
            failed.extend(result.err().map(|error| format!("call {number}: {error}")));
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(failed, Vec::<String>::new());
    });
}

/// A blind attacker cannot name a call.
#[test]
fn a_report_without_the_id_of_a_call_is_ignored() {
    calls_survive(|forger, client| {
        // Eight bytes behind the IP header, as old routers return, and an id that no call has.
        forger.send(&[]);
        forger.send(&header(2));
        assert_eq!(client.metrics().protocol.recovery.unreachable_reports, 0);
    });
}

/// Even an attacker that can name a call ends none: the client checks with the server, which
/// answers.
#[test]
fn a_report_with_the_id_of_a_call_is_a_hint() {
    calls_survive(|forger, client| {
        for rpc in client.info().iter().filter(|rpc| rpc.role == Role::Client) {
            forger.send(&header(rpc.id));
        }
    });
}
