//! The conformance suite over all drivers of this crate.

use apus_driver::fault::{FaultConfig, Faults, Faulty};
use apus_driver::loopback::{LoopbackConfig, LoopbackNetwork};
use apus_driver::pcap::Capture;
use apus_driver::{Driver, conformance};

/// Returns a network that permits long packets and has room for the suite's longest bursts.
fn network() -> LoopbackNetwork {
    LoopbackNetwork::with_config(LoopbackConfig { packet_limit: 9000, queue: 4096 })
}

fn loopback_v4() -> impl Fn() -> Box<dyn Driver> {
    let network = network();
    move || Box::new(network.host())
}

fn loopback_v6() -> impl Fn() -> Box<dyn Driver> {
    let network = network();
    move || Box::new(network.host_v6())
}

fn faulty(faults: Faults) -> impl Fn() -> Box<dyn Driver> {
    let network = network();
    let config = FaultConfig { seed: 1, receive: faults, transmit: faults };
    move || Box::new(Faulty::new(network.host(), config).unwrap())
}

fn captured() -> impl Fn() -> Box<dyn Driver> {
    let network = network();
    move || Box::new(Capture::new(network.host(), std::io::sink()).unwrap())
}

conformance!(over_loopback_v4, crate::loopback_v4());
conformance!(over_loopback_v6, crate::loopback_v6());
conformance!(without_faults, crate::faulty(apus_driver::fault::Faults::none()));
conformance!(with_reordering, crate::faulty(crate::REORDERING));
conformance!(captured_to_pcap, crate::captured());

/// Reordering violates no guarantee of a driver, so the suite passes with it.
const REORDERING: Faults = Faults { reordering: 300_000, hold: 4, ..Faults::none() };
