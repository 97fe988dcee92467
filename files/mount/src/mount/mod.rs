//! Mounting: the loop of a client.
//!
//! ```text
//!   kernel ── Kernel ─ operations ─▶ ┌────────┐ ◀─ Network ══ server
//!                    ◀─ replies ──── │ Client │ ──▶
//!   kernel ◀─ Notifications ◀─────── └────────┘
//!             (a separate thread)        ▲ Mailbox: other threads
//! ```

mod attributes;
mod error;
mod kernel;
mod kernel_read_ahead;
mod lost_changes;
mod network;
mod notifications;
mod operations;
mod owner;
mod replies;
mod settings;

pub use error::MountFailure;
pub use owner::{Mounted, Stopper};
pub use settings::MountSettings;
