//! Capture: writes the packets of a driver to a pcap file.
//!
//! [`Capture`] wraps any driver and writes every packet as a raw IP packet, with the IP and UDP
//! headers that it has, or would have, on a network. Wireshark and `tshark` open the file.
//!
//! Header fields without a known value are fixed: the time to live is 64, checksums are correct,
//! and the local IP address is unspecified if neither the driver nor the packet provides it.
//!
//! # Invariants
//!
//! - **CAPTURE-1** A capture that cannot be written never affects the packets: it stops, and counts
//!   the missing ones.

mod log;

pub use log::CaptureLog;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::{
    Arrival, BulkSource, Burst, Capabilities, Driver, Ecn, NetworkReport, ReceiveHalf, TransmitHalf,
};

/// A driver whose packets are written to a file.
#[derive(Debug)]
pub struct Capture<D> {
    inner: D,
    log: CaptureLog,
}

impl<D: Driver> Capture<D> {
    /// Wraps `inner` and writes packets to `writer`, which should buffer.
    ///
    /// # Errors
    ///
    /// An error of `writer`, while the file header is written.
    pub fn new(inner: D, writer: impl Write + Send + 'static) -> io::Result<Self> {
        let log = CaptureLog::start(Box::new(writer))?;
        Ok(Self { inner, log })
    }

    /// Wraps `inner` and writes packets to a new file at `path` that only this user can read. An
    /// existing name is refused, since it may be another user's link. The file is complete once
    /// both halves of the driver and all handles of [`Capture::log`] are dropped, or after
    /// [`CaptureLog::flush`].
    ///
    /// # Errors
    ///
    /// An error of the file system, while the file is created.
    pub fn to_file(inner: D, path: &Path) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("capture to {}: {error}", path.display()))
        };
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(named)?;
        Self::new(inner, BufWriter::new(file)).map_err(named)
    }

    /// Returns a handle to the state of the capture, which stays valid after [`Driver::split`].
    #[must_use]
    pub fn log(&self) -> CaptureLog {
        self.log.clone()
    }
}

impl<D: Driver> Driver for Capture<D> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let Self { inner, log } = *self;
        let local = inner.local_addr();
        let (transmit, receive) = Box::new(inner).split();
        (
            Box::new(CapturedTransmit { inner: transmit, log: log.clone(), local }),
            Box::new(CapturedReceive { inner: receive, log, local }),
        )
    }
}

struct CapturedTransmit {
    inner: Box<dyn TransmitHalf>,
    log: CaptureLog,
    local: SocketAddr,
}

impl TransmitHalf for CapturedTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let from = local_side(self.local, burst.from, burst.to);
        for packet in burst.each() {
            self.log.write(from, burst.to, burst.traffic_class, &packet.to_vec());
        }
        self.inner.send(burst)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn has_pending(&self) -> bool {
        self.inner.has_pending()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.inner.packet_limit(to)
    }
}

struct CapturedReceive {
    inner: Box<dyn ReceiveHalf>,
    log: CaptureLog,
    local: SocketAddr,
}

impl ReceiveHalf for CapturedReceive {
    fn receive(&mut self, limit: usize) -> io::Result<usize> {
        self.inner.receive(limit)
    }

    fn overflowed(&self) -> u64 {
        self.inner.overflowed()
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn bulk(&self) -> Option<BulkSource<'_>> {
        self.inner.bulk()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Arrival<'_>)) {
        self.inner.drain(&mut |arrival| {
            let to = local_side(self.local, arrival.to, arrival.from);
            self.log.write(arrival.from, to, traffic_class(arrival.ecn), arrival.packet);
            sink(arrival);
        });
    }

    fn reports(&mut self, sink: &mut dyn FnMut(NetworkReport<'_>)) {
        self.inner.reports(sink);
    }

    fn take_warning(&mut self) -> Option<String> {
        self.inner.take_warning()
    }
}

impl AsFd for CapturedReceive {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Returns the local address of a packet to or from `peer`, in the peer's family.
fn local_side(local: SocketAddr, known: Option<IpAddr>, peer: SocketAddr) -> SocketAddr {
    let ip = known.unwrap_or(local.ip());
    let ip = match (peer, ip) {
        (SocketAddr::V4(_), IpAddr::V6(_)) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (SocketAddr::V6(_), IpAddr::V4(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => ip,
    };
    SocketAddr::new(ip, local.port())
}

/// Returns the known part of a received packet's traffic class byte.
fn traffic_class(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable => 0b10,
        Ecn::CongestionExperienced => 0b11,
    }
}

#[cfg(all(test, feature = "loopback"))]
mod tests {
    use super::*;
    use crate::loopback::{LoopbackHost, LoopbackNetwork};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use pcap_file::pcap::PcapReader;

    /// Returns `source > destination class payload` for each packet of the file.
    fn read(path: &Path) -> Vec<String> {
        let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
        let mut lines = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
            let (source, destination, class) = match sliced.net.unwrap() {
                NetSlice::Ipv4(ip) => {
                    let header = ip.header().to_header();
                    let class = (header.dscp.value() << 2) | header.ecn.value();
                    assert_eq!(header.header_checksum, header.calc_header_checksum());
                    (IpAddr::from(header.source), IpAddr::from(header.destination), class)
                }
                NetSlice::Ipv6(ip) => {
                    let header = ip.header().to_header();
                    let class = header.traffic_class;
                    (IpAddr::from(header.source), IpAddr::from(header.destination), class)
                }
                other => panic!("{other:?}"),
            };
            let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("UDP") };
            let source = SocketAddr::new(source, udp.source_port());
            let destination = SocketAddr::new(destination, udp.destination_port());
            let payload = String::from_utf8_lossy(udp.payload());
            lines.push(format!("{source} > {destination} {class:#x} {payload}"));
        }
        lines
    }

    fn exchange(client: LoopbackHost, server: LoopbackHost) -> Vec<String> {
        let to = server.local_addr();
        let family = if to.is_ipv4() { "v4" } else { "v6" };
        let name = format!("apus-capture-{}-{family}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let capture = Capture::to_file(client, &path).unwrap();
        let log = capture.log();
        let (mut transmit, mut receive) = Box::new(capture).split();
        let (mut server_transmit, mut server_receive) = Box::new(server).split();
        let mut burst = Burst {
            to,
            from: None,
            traffic_class: 0xb8,
            headers: b"ab",
            header_len: 1,
            payload: &[b"123"],
            segment: 2,
            coalesce: 0,
        };
        transmit.send(&burst).unwrap();
        transmit.flush().unwrap();
        assert_eq!(server_receive.receive(9).unwrap(), 2);
        server_receive.drain(&mut |arrival| burst.to = arrival.from);
        burst.traffic_class = 0b11;
        server_transmit.send(&burst).unwrap();
        server_transmit.flush().unwrap();
        assert_eq!(receive.receive(9).unwrap(), 2);
        receive.drain(&mut |_| ());
        log.flush().unwrap();
        assert_eq!((log.written(), log.missing()), (4, 0));
        let lines = read(&path);
        std::fs::remove_file(&path).unwrap();
        lines
    }

    #[test]
    fn both_directions_are_written_as_udp_packets() {
        let network = LoopbackNetwork::new();
        let expected = [
            "10.0.0.2:1 > 10.0.0.1:1 0xb8 a12",
            "10.0.0.2:1 > 10.0.0.1:1 0xb8 b3",
            "10.0.0.1:1 > 10.0.0.2:1 0x3 a12",
            "10.0.0.1:1 > 10.0.0.2:1 0x3 b3",
        ];
        let server = network.host();
        assert_eq!(exchange(network.host(), server), expected);
    }

    #[test]
    fn ipv6_packets_have_ipv6_headers() {
        let network = LoopbackNetwork::new();
        let server = network.host_v6();
        let lines = exchange(network.host_v6(), server);
        assert_eq!(lines[0], "[fd00::2]:1 > [fd00::1]:1 0xb8 a12");
        assert_eq!(lines[3], "[fd00::1]:1 > [fd00::2]:1 0x3 b3");
    }

    /// The attack: another user has placed a link at the path of the capture.
    #[test]
    fn a_capture_is_not_written_through_a_link() {
        let network = LoopbackNetwork::new();
        let name = format!("apus-capture-{}-link", std::process::id());
        let (link, victim) =
            (std::env::temp_dir().join(&name), std::env::temp_dir().join(name + "ed"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let captured = Capture::to_file(network.host(), &link);
        let content = std::fs::read(&victim).unwrap();
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_file(&victim).unwrap();
        assert_eq!(content, b"precious");
        assert_eq!(captured.err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
    }

    #[test]
    fn a_full_disk_stops_the_capture_and_not_the_packets() {
        struct Disk(usize);
        impl Write for Disk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let network = LoopbackNetwork::new();
        let (server, client) = (network.host(), network.host());
        let to = server.local_addr();
        let capture = Capture::new(client, Disk(100)).unwrap();
        let log = capture.log();
        let (mut transmit, _receive) = Box::new(capture).split();
        let (_server_transmit, mut server_receive) = Box::new(server).split();
        let burst = Burst {
            to,
            from: None,
            traffic_class: 0,
            headers: b"abcde",
            header_len: 1,
            payload: &[b"12345"],
            segment: 1,
            coalesce: 0,
        };
        transmit.send(&burst).unwrap();
        transmit.flush().unwrap();
        assert_eq!(server_receive.receive(9).unwrap(), 5, "CAPTURE-1");
        assert_eq!(log.written() + log.missing(), 5);
        assert!(log.missing() > 0 && log.flush().is_err());
    }

    #[test]
    fn an_unknown_local_address_takes_the_family_of_the_peer() {
        let wildcard = "[::]:7".parse().unwrap();
        let v4 = "10.0.0.1:9".parse().unwrap();
        assert_eq!(local_side(wildcard, None, v4), "0.0.0.0:7".parse().unwrap());
        let here = Some("10.0.0.2".parse().unwrap());
        assert_eq!(local_side(wildcard, here, v4), "10.0.0.2:7".parse().unwrap());
    }
}
