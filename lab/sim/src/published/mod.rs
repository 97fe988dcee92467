//! Published measurements, for comparison.
//!
//! Figures of SIGCOMM 2018 (Montazeri, Li, Alizadeh, Ousterhout: Homa), in CSV files next to the
//! source:
//!
//! - [`slowdown()`]: slowdown by message size, figures 12 and 13, of each [`Scheme`];
//! - [`queue_length()`]: lengths of queues in switches, Table 1;
//! - [`sustainable_load()`]: the highest load that a transport sustains, figure 15;
//! - [`scheduled_levels`] and [`payload_share`]: the paper's set-up of Homa for each workload.
//!
//! Figures are looked up by the name of a workload, `w1` to `w5`. Other workloads (a file,
//! `w4 truncated at 1000000 bytes`) have no figures. Figures with uncertain digits are labelled
//! ([`Evidence`]).

mod queue_length;
mod scheme;
mod setup;
mod slowdown;
mod sustainable_load;
#[cfg(test)]
mod tests;

pub use queue_length::{GOAL_CORE_MEAN_KB, GOAL_TOR_TO_HOST, Queue, QueueLength, queue_length};
pub use scheme::{Evidence, Scheme};
pub use setup::{payload_share, scheduled_levels};
pub use slowdown::{
    Figure, Row, SizePercentile, SlowdownPoint, Summary, figure, figures, slowdown,
};
pub use sustainable_load::{SustainableLoad, sustainable_load, sustainable_loads};
