//! The UDP driver from outside: the suite that all drivers pass, and what only this one promises.

mod allocations;
mod conformance;
mod host;
mod namespace;
mod socket;
