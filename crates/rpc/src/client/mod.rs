//! Clients: calls to one server, and the streams that they may open.

mod channel;
mod exchange;
mod pull;
mod push;

pub use channel::Channel;
