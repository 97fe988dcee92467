//! The load of the switch during a run: packets, drops and queues by priority.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::site::Site;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::fabric::{LEVELS, PortCounters};
use apus_testbed::process::Crew;

/// Time between two samples of the queues of the switch. Each takes about 3 ms of a core.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// The load of the ports of the switch by priority, while requests counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SwitchLoad {
    /// Each level; the last one has the highest priority.
    pub levels: Vec<LevelLoad>,
    /// Queued bytes at a port, over all its levels: mean over all ports and samples.
    pub queue_mean: f64,
    /// Maximum at a single port.
    pub queue_max: u64,
    /// Bytes on the links to the hosts, Ethernet headers included.
    pub bytes: u64,
}

/// One priority, over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelLoad {
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub drops: u64,
    /// Queued bytes, mean over all ports and samples.
    pub queue_mean: f64,
    /// Maximum at a single port.
    pub queue_max: u64,
}

/// Samples the switch at intervals.
pub(super) struct Switch {
    first: Option<Vec<PortCounters>>,
    samples: Vec<Vec<PortCounters>>,
}

impl Switch {
    /// From now on.
    pub(super) fn watch(site: &Site<'_>) -> Result<Self, Error> {
        Ok(Self { first: site.counters()?, samples: Vec::new() })
    }

    /// Takes another sample.
    pub(super) fn sample(&mut self, site: &Site<'_>) -> Result<(), Error> {
        self.samples.extend(site.counters()?);
        Ok(())
    }

    /// Samples at intervals until `end`, an instant of this host's clock, while the agents run.
    pub(super) fn sample_until(
        &mut self,
        end: u64,
        site: &Site<'_>,
        crew: &mut Crew,
    ) -> Result<(), Error> {
        while clock::now() + clock::as_nanoseconds(SAMPLE_INTERVAL) < end {
            crew.sleep(SAMPLE_INTERVAL)?;
            self.sample(site)?;
        }
        crew.sleep(Duration::from_nanos(end.saturating_sub(clock::now())))
    }

    /// Returns the load up to now; `None` if the switch is not part of a fabric.
    pub(super) fn finish(mut self, site: &Site<'_>) -> Result<Option<SwitchLoad>, Error> {
        self.sample(site)?;
        Ok(self.first.map(|first| total(&first, &self.samples)))
    }
}

/// Returns the load between the first sample and the last one of `samples`.
fn total(first: &[PortCounters], samples: &[Vec<PortCounters>]) -> SwitchLoad {
    let mut load =
        SwitchLoad { levels: vec![LevelLoad::default(); LEVELS.into()], ..Default::default() };
    let ports = first.iter().map(|port| port.node + 1).max().unwrap_or(1);
    let count = (samples.len() * ports).max(1) as f64;
    for sample in samples {
        let mut port = vec![0; ports];
        for counters in sample {
            let level = &mut load.levels[usize::from(counters.level)];
            level.queue_mean += counters.backlog as f64 / count;
            level.queue_max = level.queue_max.max(counters.backlog);
            port[counters.node] += counters.backlog;
        }
        load.queue_mean += port.iter().sum::<u64>() as f64 / count;
        load.queue_max = port.into_iter().fold(load.queue_max, u64::max);
    }
    for (sign, sample) in [(-1, Some(first)), (1, samples.last().map(Vec::as_slice))] {
        for counters in sample.into_iter().flatten() {
            let level = &mut load.levels[usize::from(counters.level)];
            let add =
                |sum: &mut u64, count: u64| *sum = sum.wrapping_add_signed(sign * count as i64);
            add(&mut level.packets, counters.packets);
            add(&mut level.bytes, counters.bytes);
            add(&mut level.drops, counters.drops);
        }
    }
    load.bytes = load.levels.iter().map(|level| level.bytes).sum();
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(node: usize, level: u8, packets: u64, backlog: u64) -> PortCounters {
        PortCounters { node, level, packets, bytes: packets * 100, drops: packets / 10, backlog }
    }

    #[test]
    fn counts_are_differences_and_queues_are_what_was_seen() {
        let first = [port(0, 7, 10, 5000), port(1, 0, 0, 0)];
        let samples = [
            vec![port(0, 7, 20, 300), port(0, 0, 0, 500), port(1, 0, 0, 100)],
            vec![port(0, 7, 50, 100), port(0, 0, 0, 0), port(1, 0, 7, 0)],
        ];
        let load = total(&first, &samples);
        let seven = load.levels[7];
        assert_eq!((seven.packets, seven.bytes, seven.drops), (40, 4000, 4));
        assert_eq!((seven.queue_mean, seven.queue_max), (100.0, 300), "two ports, two samples");
        assert_eq!((load.levels[0].packets, load.bytes), (7, 4700));
        assert_eq!((load.queue_mean, load.queue_max), (250.0, 800), "all levels of a port");
    }
}
