//! Common base of apus's interfaces for other languages: one endpoint type, descriptors for event
//! loops, and errors as numbers with text.
//!
//! `apus-capi` (C and C++) and the Python package are thin layers over this crate that only
//! translate types. Rust programs use the crate `apus` directly.
//!
//! - **BIND-1** A descriptor is readable whenever a non-waiting receive call would return a message
//!   or the error of a closed endpoint. It may also be readable without either.
//! - **BIND-2** A thread that waits in this crate without a limit asks its caller every
//!   [`INTERVAL`] whether to keep waiting.
//!
//! An endpoint with descriptors is a tokio endpoint on a thread of its own, with one eventfd for
//! completions and one for requests. Rationale: an application that ran the loop itself, whenever
//! one epoll descriptor is readable, would send no grants and acks while it computes, and its
//! clients would give it up. The price is one wake-up per batch. One descriptor for both kinds of
//! messages could not be lowered for one of them.

#![forbid(unsafe_code)]

mod alert;
mod arrivals;
mod endpoint;
mod event_endpoint;
mod failure;
mod patience;
mod polled;
mod request;
mod status;

pub use apus::address::{AddressError, parse as parse_address, resolve};
pub use endpoint::{Endpoint, EndpointOptions};
pub use failure::Failure;
pub use patience::{INTERVAL, Patience};
pub use request::Request;
pub use status::Status;
