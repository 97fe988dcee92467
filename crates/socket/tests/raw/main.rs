//! The raw IP driver from outside: the suite that all drivers pass, and what only this one promises. In network namespaces
//! of the tests' own; who may not make any is told so.

mod conformance;
mod doorman;
mod host;
mod icmp;
mod namespace;
mod ported;
mod sharing;
mod socket;
mod unprivileged;
