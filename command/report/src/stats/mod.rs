//! Statistics of measurements.
//!
//! - [`Latencies`]: percentiles of one run, from all its samples.
//! - [`Spread`]: median, least and greatest value of a figure over the runs.
//! - [`Sample`]: mean and deviation of a figure over the runs.
//! - [`Difference`]: difference of two contenders, with a confidence interval over the runs.
//! - [`Paired`]: ratio of two contenders that were measured in turn, with a confidence interval.

mod difference;
mod latencies;
mod paired;
mod sample;
mod spread;

pub use difference::Difference;
pub use latencies::{Latencies, Percentiles};
pub use paired::Paired;
pub use sample::Sample;
pub use spread::Spread;
