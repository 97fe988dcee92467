//! Clients: calls to one server, and the streams that they may open.

mod blocking;
mod channel;
mod exchange;
mod outgoing;
mod pull;
mod push;

pub use blocking::BlockingChannel;
pub use channel::Channel;
