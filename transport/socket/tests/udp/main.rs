//! Tests of the UDP driver: the conformance suite, and guarantees of this driver.

mod allocations;
mod conformance;
mod connected;
mod host;
mod namespace;
mod socket;
mod spray;
