//! A server: receives requests, finds their handlers, and answers.
//!
//! Modules, the lowest first: `state` (running calls, and whether new calls are accepted),
//! `health`, `response` (one answer), `incoming` (parts of a request), `streams` (the table of
//! streams), `outgoing` (parts of a response), `call` (one call), `builder`.

mod builder;
mod call;
mod health;
mod incoming;
mod outgoing;
mod response;
mod state;
mod streams;

pub use builder::{Server, ServerControl};
pub use health::{HEALTH_METHOD, Health};
