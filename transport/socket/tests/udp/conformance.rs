//! The conformance suite over UDP on the loopback device: both families, wildcard addresses,
//! systems that lack features, and the wrappers.

use std::any::Any;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use apus_driver::conformance::Fixture;
use apus_driver::fault::{FaultConfig, Faults, Faulty};
use apus_driver::pcap::Capture;
use apus_driver::{Driver, conformance};
use apus_socket::{Udp, UdpConfig};

/// Opens drivers with these settings.
struct Sockets {
    config: UdpConfig,
    /// Address where peers reach a socket that listens on all addresses.
    host: IpAddr,
    wrap: fn(Udp) -> Box<dyn Driver>,
}

impl Fixture for Sockets {
    fn open(&self) -> Box<dyn Driver> {
        (self.wrap)(Udp::open(&self.config).unwrap())
    }

    fn skip(&self) -> Option<String> {
        let error = UdpSocket::bind((self.host, 0)).err()?;
        Some(format!("{} does not exist here: {error}", self.host))
    }

    fn address_of(&self, driver: &dyn Driver) -> SocketAddr {
        SocketAddr::new(self.host, driver.local_addr().port())
    }

    /// A socket connected to itself refuses packets of other sockets, and keeps the port.
    fn closed_address(&self) -> (SocketAddr, Box<dyn Any>) {
        let socket = UdpSocket::bind((self.host, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        socket.connect(address).unwrap();
        (address, Box::new(socket))
    }
}

fn sockets(host: &str, bind: &str) -> Sockets {
    let config = UdpConfig::bound_to(bind.parse().unwrap());
    Sockets { config, host: host.parse().unwrap(), wrap: |driver| Box::new(driver) }
}

/// IPv4 sockets with a setting changed.
fn without(change: impl FnOnce(&mut UdpConfig)) -> Sockets {
    let mut sockets = sockets("127.0.0.1", "127.0.0.1:0");
    change(&mut sockets.config);
    sockets
}

/// Sockets with connected sockets from the first send on, and with a socket for bulk packets.
fn coalescing(host: &str, bind: &str) -> Sockets {
    let mut sockets = connected(host, bind);
    sockets.config.receive_coalescing_usecs = 1_000;
    sockets
}

/// Sockets with connected sockets from the first send on.
fn connected(host: &str, bind: &str) -> Sockets {
    let mut sockets = sockets(host, bind);
    sockets.config.connect_after = 1;
    sockets
}

fn wrapped(wrap: fn(Udp) -> Box<dyn Driver>) -> Sockets {
    Sockets { wrap, ..sockets("127.0.0.1", "127.0.0.1:0") }
}

fn faulty(driver: Udp, faults: Faults) -> Box<dyn Driver> {
    let config = FaultConfig { seed: 1, receive: faults, transmit: faults };
    Box::new(Faulty::new(driver, config).unwrap())
}

/// Reordering violates no guarantee of a driver.
const REORDERING: Faults = Faults { reordering: 300_000, hold: 4, ..Faults::none() };

conformance!(ipv4, super::sockets("127.0.0.1", "127.0.0.1:0"));
conformance!(ipv6, super::sockets("::1", "[::1]:0"));
conformance!(all_ipv4_addresses, super::sockets("127.0.0.1", "0.0.0.0:0"));
conformance!(dual_stack_reached_by_ipv4, super::sockets("127.0.0.1", "[::]:0"));
conformance!(dual_stack_reached_by_ipv6, super::sockets("::1", "[::]:0"));

conformance!(without_segmentation, super::without(|config| config.segmentation_offload = false));
conformance!(without_receive_offload, super::without(|config| config.receive_offload = false));
conformance!(without_priorities, super::without(|config| config.priorities = false));
conformance!(without_reports, super::without(|config| config.reports = false));
conformance!(
    with_receive_coalescing,
    super::without(|config| config.receive_coalescing_usecs = 1_000)
);
conformance!(
    without_ipv6,
    super::without(|config| {
        config.ipv6 = false;
        config.bind = "[::]:0".parse().unwrap();
    })
);
conformance!(
    without_anything,
    super::without(|config| {
        config.segmentation_offload = false;
        config.receive_offload = false;
        config.priorities = false;
        config.reports = false;
        config.receive_buffer = 100_000;
        config.send_buffer = 10_000;
    })
);
// With connected sockets from the second send on.
conformance!(connected_ipv4, super::connected("127.0.0.1", "127.0.0.1:0"));
conformance!(connected_ipv6, super::connected("::1", "[::1]:0"));
conformance!(connected_all_ipv4_addresses, super::connected("127.0.0.1", "0.0.0.0:0"));
conformance!(connected_dual_stack_to_ipv4, super::connected("127.0.0.1", "[::]:0"));
conformance!(connected_dual_stack_to_ipv6, super::connected("::1", "[::]:0"));
// Both share the port, each in a different way.
conformance!(connected_with_receive_coalescing, super::coalescing("127.0.0.1", "0.0.0.0:0"));
conformance!(connected_with_receive_coalescing_ipv6, super::coalescing("::1", "[::]:0"));
// The suite's packets have no mark, so all of them use the driver's own port.
conformance!(with_spray_ports, super::without(|config| config.spray_ports = 4));
conformance!(longest_packets, super::without(|config| config.max_ip_packet = 65_535));
conformance!(ethernet_packets, super::without(|config| config.max_ip_packet = 1500));

conformance!(
    wrapped_without_faults,
    super::wrapped(|udp| super::faulty(udp, super::Faults::none()))
);
conformance!(wrapped_with_reordering, super::wrapped(|udp| super::faulty(udp, super::REORDERING)));
conformance!(
    wrapped_in_a_capture,
    super::wrapped(|udp| Box::new(super::Capture::new(udp, std::io::sink()).unwrap()))
);
