//! Does a driver keep the contract?
//!
//! One function per behaviour, written against the traits alone. [`conformance!`](crate::conformance!)
//! makes a test of each of them for one kind of driver:
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
//! The tests wait with poll(2) on the driver's descriptor and never sleep. A wait that takes longer
//! than [`WATCHDOG`] fails the test: something hangs.
//!
//! # Invariants
//!
//! - **S1** A test relies on nothing but the traits' documentation. Order, loss through overflow, and
//!   the number of system calls are the driver's business, so packets are compared as sets and are
//!   never more than the receive buffer holds.
//! - **S2** Every public function of the modules below is in the macro's list; a test compares them.

mod addresses;
mod calls;
mod host;
mod merging;
mod threads;
mod trouble;
mod whole;

pub use addresses::*;
pub use calls::*;
pub use merging::*;
pub use threads::*;
pub use trouble::*;
pub use whole::*;

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::Driver;

/// A wait of this length means that something hangs. Generous: a loaded machine is not a failure.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// Opens drivers of one kind that can reach each other.
///
/// Every `Fn() -> Box<dyn Driver>` is a fixture.
pub trait Fixture {
    /// A new driver at an address of its own.
    fn open(&self) -> Box<dyn Driver>;

    /// Why the suite cannot run here, if it cannot. The tests then pass, and say so.
    fn skip(&self) -> Option<String> {
        None
    }

    /// Where peers reach `driver`. As given here: its local address, or the loopback address of the
    /// same family and port if it listens on all addresses of the host.
    fn address_of(&self, driver: &dyn Driver) -> SocketAddr {
        let local = driver.local_addr();
        let ip = match local.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, local.port())
    }

    /// An address where nobody listens, and something that keeps it so while it lives. As given
    /// here: the address of a driver that was dropped, which is right if addresses are not used
    /// again soon.
    fn closed(&self) -> (SocketAddr, Box<dyn Any>) {
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
/// expression that gives a [`Fixture`]; it is evaluated anew in each test.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $fixture:expr) => {
        $crate::conformance_tests! { $module, $fixture;
            an_answer_reaches_the_sender
            an_answer_leaves_from_the_address_that_was_asked
            the_local_address_is_where_peers_send_to
            flush_sends_what_was_held_back
            a_flush_without_packets_is_fine
            the_descriptor_is_readable_while_packets_wait
            a_receive_stays_near_its_limit
            nothing_is_received_twice
            small_packets_of_many_bursts_all_arrive
            packets_of_different_sizes_all_arrive
            packets_to_many_peers_all_arrive
            short_last_packets_do_not_harm_their_successors
            every_traffic_class_is_carried
            halves_work_on_two_threads
            a_closed_peer_is_reported_and_disturbs_nobody
            a_too_long_packet_is_reported_and_disturbs_nobody
            a_too_long_burst_is_reported_and_disturbs_nobody
            packets_of_every_size_arrive_unchanged
            bursts_of_every_length_arrive_unchanged
            long_bursts_arrive_unchanged
            borders_of_slices_and_packets_need_not_meet
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
            include_str!("conformance/merging.rs"),
            include_str!("conformance/threads.rs"),
            include_str!("conformance/trouble.rs"),
            include_str!("conformance/whole.rs"),
        ];
        let behaviours = sources.iter().flat_map(|source| source.split("\npub fn ").skip(1));
        for behaviour in behaviours {
            let name = behaviour.split('(').next().unwrap();
            assert!(
                list.contains(&format!("            {name}\n")),
                "S2: {name} is not in the list"
            );
        }
    }
}
