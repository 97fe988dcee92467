//! apus as a contender.
//!
//! It is used as in any application: through the public interface of the crate `apus`, with default
//! parameters unless a plan overrides them. [`apus_measure::exchange`] contains the loops of the
//! two sides.
//!
//! - [`Exchange`]: in `rtt`, `throughput`, `rate` and `local`.
//! - [`Sharded`]: in `rate --shards`.
//! - [`ReceiveMode`]: in `handoff`.
//! - [`TracedApus`]: in `rtt` and `rate` on request, with non-default time traces.
//! - [`SealedApus`]: in `rtt`, `throughput` and `rate` with `--sealed`.
//! - [`BarePair`]: in `local`, the layer below an endpoint.

mod exchange;
mod pair;
mod receive_mode;
mod sealed_apus;
mod sharded;
mod traced_apus;

pub use apus_measure::exchange::Exchange;
pub use pair::{BarePair, both_sides};
pub use receive_mode::{ReceiveMode, counters};
pub use sealed_apus::SealedApus;
pub use sharded::Sharded;
pub use traced_apus::TracedApus;
