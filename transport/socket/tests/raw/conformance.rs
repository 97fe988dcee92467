//! The conformance suite over raw IP: between two hosts on a cable and on the loopback device, with
//! both families, wildcard addresses, and systems that lack features.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use apus_driver::conformance::Fixture;
use apus_driver::{Driver, conformance};
use apus_socket::{Raw, RawConfig};

use crate::icmp_responder::{IcmpResponder, PORT_UNREACHABLE};
use crate::namespace::{Namespace, Pair, skip_reason};
use crate::port_prefix::PortPrefixed;

/// Location of the drivers.
enum DriverPlace {
    /// Alternates between left and right; the suite opens its clients first.
    Cable(Pair),
    Loopback(Arc<Namespace>),
}

/// Opens drivers with these settings.
struct Sockets {
    /// Addresses that the two hosts bind to, and addresses that the other host uses to reach them.
    binds: [IpAddr; 2],
    hosts: [IpAddr; 2],
    cable: bool,
    change: fn(&mut RawConfig),
    place: OnceLock<DriverPlace>,
    opened: AtomicUsize,
}

impl Sockets {
    fn place(&self) -> &DriverPlace {
        let make = || {
            let place = if self.cable {
                DriverPlace::Cable(Pair::new())
            } else {
                DriverPlace::Loopback(Arc::new(Namespace::new()))
            };
            // The suite's own thread enters the namespace of the clients, because it queries packet
            // limits.
            match &place {
                DriverPlace::Cable(Pair { left: host, .. }) | DriverPlace::Loopback(host) => {
                    host.enter();
                }
            }
            place
        };
        self.place.get_or_init(make)
    }

    fn namespace(&self, side: usize) -> &Namespace {
        match self.place() {
            DriverPlace::Loopback(host) => host,
            DriverPlace::Cable(Pair { left, right }) => [left, right][side],
        }
    }
}

/// A driver and its address.
struct Placed {
    driver: PortPrefixed<Raw>,
    host: IpAddr,
}

impl Driver for Placed {
    fn capabilities(&self) -> apus_driver::Capabilities {
        self.driver.capabilities()
    }

    /// Returns the address where peers reach the driver; the suite gets it from the fixture.
    fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.driver.local_addr().port())
    }

    fn split(
        self: Box<Self>,
    ) -> (Box<dyn apus_driver::TransmitHalf>, Box<dyn apus_driver::ReceiveHalf>) {
        Box::new(self.driver).split()
    }
}

impl Fixture for Sockets {
    fn open(&self) -> Box<dyn Driver> {
        let side = self.opened.fetch_add(1, Ordering::Relaxed) % 2;
        let mut config = RawConfig::bound_to((self.binds[side], 0).into());
        (self.change)(&mut config);
        let driver = self.namespace(side).inside(|| Raw::open(&config).unwrap());
        Box::new(Placed { driver: PortPrefixed(driver), host: self.hosts[side] })
    }

    fn skip(&self) -> Option<String> {
        skip_reason()
    }

    /// A port with a responder that answers like the kernel module for an unused port.
    fn closed_address(&self) -> (SocketAddr, Box<dyn Any>) {
        let at = SocketAddr::new(self.hosts[1], 4242);
        let responder = IcmpResponder::new(self.namespace(1), at, PORT_UNREACHABLE);
        (at, Box::new(responder))
    }
}

fn cable(binds: [&str; 2], hosts: [&str; 2]) -> Sockets {
    Sockets {
        binds: binds.map(|ip| ip.parse().unwrap()),
        hosts: hosts.map(|ip| ip.parse().unwrap()),
        cable: true,
        change: |_| (),
        place: OnceLock::new(),
        opened: AtomicUsize::new(0),
    }
}

fn loopback(bind: &str, host: &str) -> Sockets {
    Sockets { cable: false, ..cable([bind; 2], [host; 2]) }
}

/// IPv4 over a cable with a feature disabled.
fn without(change: fn(&mut RawConfig)) -> Sockets {
    Sockets { change, ..cable(V4, V4) }
}

const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const V6: [&str; 2] = ["fd09::1", "fd09::2"];

conformance!(ipv4, super::cable(super::V4, super::V4));
conformance!(ipv6, super::cable(super::V6, super::V6));
conformance!(all_ipv4_addresses, super::cable(["0.0.0.0"; 2], super::V4));
conformance!(all_ipv6_addresses, super::cable(["::"; 2], super::V6));
conformance!(loopback_ipv4, super::loopback("127.0.0.1", "127.0.0.1"));
conformance!(loopback_ipv6, super::loopback("::1", "::1"));
conformance!(without_priorities, super::without(|config| config.priorities = false));
conformance!(without_reports, super::without(|config| config.reports = false));
conformance!(
    small_buffers,
    super::without(|config| {
        config.receive_buffer = 100_000;
        config.send_buffer = 10_000;
    })
);
