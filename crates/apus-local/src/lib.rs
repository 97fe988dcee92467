//! How do two processes of one host exchange requests and responses without the kernel?

#![deny(unsafe_code)]

#[cfg(not(apus_loom))]
mod bell;
#[cfg(not(apus_loom))]
mod config;
#[expect(unsafe_code, reason = "SO_PEERCRED")]
#[cfg(not(apus_loom))]
mod credentials;
mod error;
mod farewell;
#[cfg(not(apus_loom))]
mod greeting;
#[cfg(not(apus_loom))]
mod handshake;
mod inbox;
mod layout;
mod limits;
mod link;
#[cfg(not(apus_loom))]
mod local;
mod lock;
#[expect(unsafe_code, reason = "the mapping, and copying into and out of it")]
#[cfg(not(apus_loom))]
mod memory;
#[cfg(apus_loom)]
#[expect(unsafe_code, reason = "loom's cells are not shared by themselves")]
#[path = "model_memory.rs"]
mod memory;
#[cfg(all(test, apus_loom))]
mod model;
#[cfg(not(apus_loom))]
mod name;
mod outbox;
#[cfg(not(apus_loom))]
mod pair;
mod record;
mod registry;
mod ring;
#[cfg(not(apus_loom))]
mod segment;
#[cfg(not(apus_loom))]
mod socket;
mod spare;
#[cfg(not(apus_loom))]
mod sweep;
mod sync;
mod wake;

pub use error::{ConnectError, Gone, Rejection, SendError, Violation};
pub use inbox::Event;
pub use layout::{Role, Sizes};
pub use limits::Limits;
pub use outbox::Ticket;
#[cfg(not(apus_loom))]
pub use {
    config::Config,
    credentials::{Credentials, Trust},
    handshake::{Accepting, Connecting, Listener},
    local::{Attempt, Local, Lookup},
    name::Name,
    pair::{Batch, Pair, Peer, Quota},
    sweep::{Arrival, Sweep},
};
