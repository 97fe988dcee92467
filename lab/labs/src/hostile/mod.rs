//! The hostile lab: the effect of an attacker that sends packets on a server and its honest client.
//!
//! ```text
//!   honest client ──────▶ server        requests at random instants, a share of the server's capacity
//!                            ▲
//!   attacker ────────────────┘          as many packets as one core can send, from any source address
//! ```
//!
//! Other attackers need few packets; honest calls of several lengths are measured under them. One is
//! a server, which the honest client calls as well.
//!
//! The three are processes in a network namespace of the lab. Each attack has fresh ones. Requests
//! without an attack come first, as the baseline.
//!
//! | file | content |
//! |---|---|
//! | `options` | the options |
//! | `attack` | the attacks |
//! | `packet`, `forgery`, `claims`, `kept` | packets; the packets of floods; the attack that claims; attacks that keep messages alive |
//! | `attacker`, `sides` | the processes |
//! | `declaration` | the report: figures, ratios, sentences |
//! | `sweep` | capacity, baseline and attacks, in all runs |
//!
//! # Invariants
//!
//! - **HOSTILE-1** Packets of an attacker stay in a namespace that the lab has created, and end
//!   with it.
//! - **HOSTILE-2** An attacker has addresses, ports and this program's source. It receives only
//!   packets that are sent to it.

mod attack;
mod attacker;
mod claims;
mod declaration;
mod forgery;
mod kept;
mod options;
mod packet;
mod sides;
mod sweep;

pub use attack::Attack;
pub use options::HostileOptions;
pub use sweep::run;

pub(crate) use sides::{JOB, agent};
