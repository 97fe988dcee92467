//! Fixture: opens the drivers that the suite tests.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::Driver;

/// Longest wait of a test; a longer wait means a hang. Generous, since a loaded machine is not a
/// failure.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// Opens drivers of one kind that can reach each other.
///
/// Every `Fn() -> Box<dyn Driver>` is a fixture.
pub trait Fixture {
    /// Returns a new driver at its own address.
    fn open(&self) -> Box<dyn Driver>;

    /// Returns the reason why the suite cannot run here, if there is one. The tests then pass, and
    /// print it.
    fn skip(&self) -> Option<String> {
        None
    }

    /// Returns the address where peers reach `driver`. Default: its local address, or the loopback
    /// address of the same family and port if it listens on all addresses of the host.
    fn address_of(&self, driver: &dyn Driver) -> SocketAddr {
        let local = driver.local_addr();
        let ip = match local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, local.port())
    }

    /// Returns an address without a listening driver, and an object that keeps it that way while it
    /// lives. Default: the address of a driver that was dropped, which is right if addresses are
    /// not reused soon.
    fn closed_address(&self) -> (SocketAddr, Box<dyn Any>) {
        let driver = self.open();
        (self.address_of(&*driver), Box::new(()))
    }
}

impl<F: Fn() -> Box<dyn Driver>> Fixture for F {
    fn open(&self) -> Box<dyn Driver> {
        self()
    }
}
