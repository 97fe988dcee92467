//! Set-up of the paper's simulations.
//!
//! The set-up of SIGCOMM 2018 (docs/reference/papers.md, *Simulation set-up*), in terms of this
//! simulator and of the protocol's configuration.

use apus_proto::{Config, ConfigError};
use apus_workload::{PacketOverhead, SizeDistribution, Workload};

use crate::experiment::{Carrier, Experiment, Pattern};
use crate::fabric::Settings;
use crate::host::Answer;
use crate::published;
use crate::topology::{Delays, Shape, Topology};
use apus_workload::time::Rate;

/// Unscheduled bytes, about a round-trip time of the link. Source: A.1.
const UNSCHEDULED_BYTES: u64 = 9_328;
/// Bytes granted and not received, over all messages: in the paper, RTTbytes for each of seven
/// messages. Here they are divided among the active messages, whatever their number (GRANT-4), so
/// that a single message can have more than a round-trip time's worth and grants may arrive in
/// steps. Source: A.3, sanity bound.
const MAX_INCOMING: u64 = 68_000;
/// Bytes in flight from senders that report their backlog (GRANT-15): 1.8 times the bytes that the
/// link carries in a round-trip time. Chosen by us, from sweeps (docs/networks.md). Published Homa
/// has no such limit.
const INFORMED_INCOMING: u64 = 18_000;
/// Least bytes in flight from a sender whose packets are marked (GRANT-18); the step of GRANT-15 is
/// larger. Published Homa ignores marks.
const MARKED_INCOMING: u64 = 1_500;
/// Levels of priority.
const LEVELS: usize = 8;

/// Returns 144 hosts in 9 racks, 4 spines, links of 10 and 40 Gbit/s, and the delays of the paper's
/// hosts and switches.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn sigcomm18() -> Topology {
    let rate = |mbps| Rate::from_mbps(mbps).expect("a positive constant");
    Topology {
        shape: Shape { racks: 9, hosts_per_rack: 16, spines: 4 },
        host_rate: rate(10_000),
        fabric_rate: rate(40_000),
        // Out: 0.5 µs for the software and 0.5 µs for the interface; in: 0.5 µs.
        delays: Delays { switch: 250, host_out: 1_000, host_in: 500, propagation: 0, per_rack: 0 },
    }
}

/// Returns the configuration of apus that corresponds to the paper's Homa for a workload:
/// overcommitment and levels, cutoffs that give each unscheduled level the same number of bytes,
/// unscheduled bytes, no share for the oldest message. Sender-informed grants and the reaction to
/// marks are enabled; `informed_incoming` 0 and `marked_incoming` 0 turn it into published Homa.
///
/// # Errors
///
/// Never for any workload; the error type is inherited from [`apus_proto::ConfigBuilder::build`].
pub fn sigcomm18_config(workload: &Workload) -> Result<Config, ConfigError> {
    let sizes = workload.sizes();
    let scheduled = scheduled_levels(&workload.to_string(), sizes);
    Config::builder()
        .unsched_bytes(UNSCHEDULED_BYTES)
        .unsched_bytes_min(UNSCHEDULED_BYTES)
        .unsched_bytes_max(UNSCHEDULED_BYTES)
        .unsched_cutoffs(cutoffs(sizes, LEVELS - scheduled))
        .cutoffs_interval_usecs(0)
        .max_overcommit(scheduled as u64)
        .max_incoming(MAX_INCOMING)
        .informed_incoming(INFORMED_INCOMING)
        .marked_incoming(MARKED_INCOMING)
        .grant_fifo_fraction(0)
        .pacer_fifo_fraction(0)
        .max_link_usage(100)
        .burst_bytes(1_500)
        .build()
}

/// Returns the paper's experiment: one-way messages of a workload between all pairs of hosts, at a
/// load. It has few messages: set [`Experiment::messages`] and [`Experiment::warm_up`] as the
/// figures require.
///
/// # Errors
///
/// The errors of [`sigcomm18_config`].
pub fn sigcomm18_experiment(
    workload: Workload,
    load: f64,
    seed: u64,
) -> Result<Experiment, ConfigError> {
    let config = sigcomm18_config(&workload)?;
    Ok(Experiment {
        processes: None,
        fabric: Settings::new(sigcomm18(), seed),
        carrier: Carrier::Apus(config.clone()),
        load_config: config,
        workload,
        load,
        pattern: Pattern::Uniform,
        answer: Answer::Nothing,
        packets: PacketOverhead::UDP_OVER_ETHERNET,
        messages: 10_000,
        warm_up: 10_000,
        first_contact: true,
        processor: None,
        stall: 0,
        seed,
    })
}

/// Returns the number of scheduled levels, which is also the number of messages granted at the same
/// time. For unpublished workloads the share of unscheduled bytes determines it, as in section 3.4
/// of the paper.
fn scheduled_levels(name: &str, sizes: &SizeDistribution) -> usize {
    if let Some(levels) = published::scheduled_levels(name) {
        return levels as usize;
    }
    let share = unscheduled_bytes(sizes).map(|(_, bytes)| bytes).sum::<f64>() / sizes.mean();
    let unscheduled = (share * LEVELS as f64).round() as usize;
    LEVELS - unscheduled.clamp(1, LEVELS - 1)
}

/// Returns for each level the longest message whose unscheduled packets use it, with the same
/// number of bytes on each of `levels` levels.
fn cutoffs(sizes: &SizeDistribution, levels: usize) -> [u32; LEVELS] {
    let total: f64 = unscheduled_bytes(sizes).map(|(_, bytes)| bytes).sum();
    let mut table = [0; LEVELS];
    let lowest = LEVELS - levels;
    let mut level = LEVELS - 1;
    let mut sum = 0.0;
    for (size, bytes) in unscheduled_bytes(sizes) {
        sum += bytes;
        table[level] = size;
        // This level is full, and the next size starts the next level. A size may fill several
        // levels.
        while level > lowest && sum >= total * (LEVELS - level) as f64 / levels as f64 {
            level -= 1;
            table[level] = size;
        }
    }
    // Rounding may have left the lowest levels without a size.
    while level > lowest {
        level -= 1;
        table[level] = sizes.largest();
    }
    table
}

/// Returns each size with the unscheduled bytes of its messages, per message of the workload.
fn unscheduled_bytes(sizes: &SizeDistribution) -> impl Iterator<Item = (u32, f64)> + '_ {
    sizes.iter().map(|(size, share)| (size, share * f64::from(size.min(UNSCHEDULED_BYTES as u32))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_match_the_paper() {
        for (number, scheduled) in [(1, 1), (2, 3), (3, 4), (4, 7), (5, 7)] {
            let config = sigcomm18_config(&Workload::published(number)).unwrap();
            let zeros = config.unsched_cutoffs().iter().take_while(|cutoff| **cutoff == 0).count();
            assert_eq!(zeros, scheduled, "W{number}");
            assert_eq!(config.max_overcommit(), scheduled as u64);
        }
    }

    #[test]
    fn each_unscheduled_level_gets_the_same_bytes() {
        let sizes = Workload::published(2).sizes().clone();
        let table = cutoffs(&sizes, 5);
        let mut below = 0;
        for level in (3..8).rev() {
            let share: f64 = unscheduled_bytes(&sizes)
                .filter(|(size, _)| (below + 1..=table[level]).contains(size))
                .map(|(_, bytes)| bytes)
                .sum();
            let total: f64 = unscheduled_bytes(&sizes).map(|(_, bytes)| bytes).sum();
            assert!((0.12..0.28).contains(&(share / total)), "level {level}: {table:?}");
            below = table[level];
        }
    }

    #[test]
    fn one_size_fills_all_levels() {
        assert_eq!(cutoffs(&SizeDistribution::fixed(100), 3), [0, 0, 0, 0, 0, 100, 100, 100]);
        let workload: Workload = "100".parse().unwrap();
        assert_eq!(sigcomm18_config(&workload).unwrap().max_overcommit(), 1);
        let workload: Workload = "1000000".parse().unwrap();
        assert_eq!(sigcomm18_config(&workload).unwrap().max_overcommit(), 7);
    }
}
