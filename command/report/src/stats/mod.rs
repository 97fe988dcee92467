//! Statistics of measurements.
//!
//! - [`Latencies`]: percentiles of one run, from all its samples.
//! - [`Spread`]: median, least and greatest of one figure over the runs.
//! - [`Sample`]: mean and deviation of one figure over the runs.
//! - [`Difference`]: whether two contenders differ, with a confidence interval over the runs.

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
