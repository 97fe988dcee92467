//! Conformance suite: the behaviour that every driver must show.
//!
//! One function per behaviour, written against the traits alone.
//! [`conformance!`](crate::conformance!) makes a test of each of them for one kind of driver:
//!
//! ```
//! use apus_driver::conformance::Fixture;
//! # #[cfg(feature = "loopback")]
//! # mod example {
//! use apus_driver::{Driver, conformance, loopback::LoopbackNetwork};
//!
//! fn loopback() -> impl Fn() -> Box<dyn Driver> {
//!     let network = LoopbackNetwork::new();
//!     move || Box::new(network.host())
//! }
//!
//! conformance!(loopback_v4, super::loopback());
//! # }
//! ```
//!
//! The tests wait with poll(2) on the driver's descriptor and never sleep. A wait that exceeds
//! [`WATCHDOG`] fails the test, because it means that something hangs.
//!
//! # Invariants
//!
//! - **CONFORMANCE-1** A test relies only on the documentation of the traits. Order, loss through
//!   overflow, and the number of system calls are up to the driver, so packets are compared as
//!   sets, and never exceed the receive buffer.
//! - **CONFORMANCE-2** The macro's list contains every public function of the modules below; a
//!   test compares them.

mod addresses;
mod calls;
mod errors;
mod host;
mod integrity;
mod merging;
mod threads;

pub use addresses::*;
pub use calls::*;
pub use errors::*;
pub use integrity::*;
pub use merging::*;
pub use threads::*;

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::Driver;

/// Longest wait of a test; a longer one means that something hangs. Generous, since a loaded
/// machine is not a failure.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// Opens drivers of one kind that can reach each other.
///
/// Every `Fn() -> Box<dyn Driver>` is a fixture.
pub trait Fixture {
    /// Returns a new driver at an address of its own.
    fn open(&self) -> Box<dyn Driver>;

    /// Returns why the suite cannot run here, if it cannot. The tests then pass, and print it.
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

    /// Returns an address at which no driver listens, and an object that keeps it so while it
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

/// Makes a module `$module` with one test for each behaviour of the suite. `$fixture` is an
/// expression that returns a [`Fixture`]; each test evaluates it anew.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $fixture:expr) => {
        $crate::conformance_tests! { $module, $fixture;
            a_response_reaches_the_sender
            a_response_leaves_from_the_address_of_the_request
            the_local_address_is_where_peers_send_to
            flush_sends_pending_packets
            a_flush_without_packets_does_nothing
            the_descriptor_is_readable_while_packets_wait
            a_receive_stays_near_its_limit
            no_packet_is_received_twice
            small_packets_of_many_bursts_all_arrive
            packets_of_different_sizes_all_arrive
            packets_to_many_peers_all_arrive
            short_last_packets_do_not_harm_their_successors
            every_traffic_class_is_carried
            halves_work_on_two_threads
            a_closed_peer_is_reported_and_others_are_unaffected
            a_too_long_packet_is_reported_and_others_are_unaffected
            a_too_long_burst_is_reported_and_others_are_unaffected
            packets_of_every_size_arrive_unchanged
            bursts_of_every_length_arrive_unchanged
            long_bursts_arrive_unchanged
            slices_may_end_anywhere_in_a_packet
            packets_may_be_only_a_header
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($module:ident, $fixture:expr; $($behaviour:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $behaviour() {
                    let fixture = $fixture;
                    match $crate::conformance::Fixture::skip(&fixture) {
                        Some(reason) => eprintln!("SKIPPED: {reason}"),
                        None => $crate::conformance::$behaviour(&fixture),
                    }
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_behaviour_is_in_the_list() {
        let list = include_str!("conformance.rs");
        let list = &list[..list.find("macro_rules! conformance_tests").unwrap()];
        let sources = [
            include_str!("conformance/addresses.rs"),
            include_str!("conformance/calls.rs"),
            include_str!("conformance/errors.rs"),
            include_str!("conformance/integrity.rs"),
            include_str!("conformance/merging.rs"),
            include_str!("conformance/threads.rs"),
        ];
        let behaviours = sources.iter().flat_map(|source| source.split("\npub fn ").skip(1));
        for behaviour in behaviours {
            let name = behaviour.split('(').next().unwrap();
            assert!(
                list.contains(&format!("            {name}\n")),
                "CONFORMANCE-2: {name} is not in the list"
            );
        }
    }
}
