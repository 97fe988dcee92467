//! Conformance suite: the behaviour required of every driver.
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
//! [`WATCHDOG`] means a hang and fails the test.
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
mod fixture;
mod host;
mod integrity;
mod merging;
mod threads;

pub use addresses::*;
pub use calls::*;
pub use errors::*;
pub use fixture::{Fixture, WATCHDOG};
pub use integrity::*;
pub use merging::*;
pub use threads::*;

/// Makes a module `$module` with one test for each behaviour of the suite. `$fixture` is an
/// expression that returns a [`Fixture`]; each test evaluates it again.
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
