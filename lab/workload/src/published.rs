//! Published workloads W1 to W5.
//!
//! Each table has 64 sizes. A size represents a group of neighbouring sizes of the original: it is
//! the group's mean, so the mean of the distribution is exact. The largest size is unchanged.
//!
//! Source: the distributions of SIGCOMM 2018 (figure 1) as `util/dist.cc` of the Homa kernel module
//! lists them, reduced by us.

use crate::csv_table;
use crate::size_distribution::SizeDistribution;

const TABLES: [&str; 5] = [
    include_str!("published/w1.csv"),
    include_str!("published/w2.csv"),
    include_str!("published/w3.csv"),
    include_str!("published/w4.csv"),
    include_str!("published/w5.csv"),
];

/// Returns the sizes of workload `W<number>`; `None` if the workload does not exist.
pub(crate) fn sizes(number: u32) -> Option<SizeDistribution> {
    let text = TABLES.get(number.checked_sub(1)? as usize)?;
    Some(SizeDistribution::from_shares(&csv_table::rows::<(u32, f64)>(text)))
}
