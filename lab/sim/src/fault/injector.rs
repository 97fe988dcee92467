//! Fault injection: the fate of each packet and the state of each host.
//!
//! # Invariants
//!
//! - **INJECTOR-1**: The same packets at the same times have the same fate: random numbers are
//!   drawn packet by packet from one stream.
//! - **INJECTOR-2**: After healing there are no new faults. Delayed packets still arrive late, and
//!   hosts that crashed forever stay down.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::burst::Burst;
use super::counters::Counters;
use super::outages::Outages;
use super::settings::{Corruption, Settings};
use crate::message::{HostId, Message};
use apus_workload::time::Nanos;

/// Separates the random stream of faults from the stream of paths.
const STREAM: u64 = 0x6661_756c_7473;

/// State of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostState {
    /// Running.
    Up,
    /// Suspended until this time.
    Paused(Nanos),
    /// Crashed.
    Down,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketFate {
    /// Whether the packet itself is lost.
    pub(crate) lost: bool,
    /// Delay of the packet.
    pub(crate) delay: Nanos,
    /// Delays of copies of it.
    pub(crate) copies: [Option<Nanos>; 2],
    /// Random number that selects the flipped bit; `None` for an intact packet.
    pub(crate) corrupted: Option<u64>,
}

/// Injects faults into a running fabric.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    settings: Settings,
    outages: Outages,
    rng: Pcg64Mcg,
    /// Burst state by host.
    bursts: Vec<Burst>,
    /// End of the current delay spike by host.
    spikes: Vec<Nanos>,
    /// Messages that applications of paused hosts submit when these resume, in order of time.
    pub(crate) held_messages: Vec<Message>,
    pub(crate) counters: Counters,
}

impl FaultInjector {
    pub(crate) fn new(settings: Settings, outages: Outages, hosts: u32, seed: u64) -> Self {
        Self {
            settings,
            outages,
            rng: Pcg64Mcg::seed_from_u64(seed ^ STREAM),
            bursts: vec![Burst::default(); hosts as usize],
            spikes: vec![0; hosts as usize],
            held_messages: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Returns when hosts crash.
    pub(crate) fn crashes(&self) -> impl Iterator<Item = (Nanos, HostId)> + '_ {
        self.outages.crashes.iter().map(|crash| (crash.at, crash.host))
    }

    /// Returns when hosts resume or restart.
    pub(crate) fn returns(&self) -> impl Iterator<Item = (Nanos, HostId)> + '_ {
        let pauses = self.outages.pauses.iter().map(|pause| (pause.until, pause.host));
        let crashes = self.outages.crashes.iter().map(|crash| (crash.until, crash.host));
        pauses.chain(crashes).filter(|(at, _)| *at < Nanos::MAX)
    }

    /// Returns the state of a host.
    pub(crate) fn state(&self, host: HostId, now: Nanos) -> HostState {
        let crashes = self.outages.crashes.iter().filter(|crash| crash.host == host);
        if crashes.clone().any(|crash| (crash.at..crash.until).contains(&now)) {
            return HostState::Down;
        }
        let pauses = self.outages.pauses.iter().filter(|pause| pause.host == host);
        let asleep = pauses.filter(|pause| (pause.from..pause.until).contains(&now));
        asleep.map(|pause| pause.until).max().map_or(HostState::Up, HostState::Paused)
    }

    /// Draws the fate of a packet at its last link.
    pub(crate) fn fate(&mut self, now: Nanos, from: HostId, to: HostId) -> PacketFate {
        let mut fate = PacketFate::default();
        if self.outages.partitions.iter().any(|partition| partition.cuts(now, from, to)) {
            self.counters.cut_off += 1;
            fate.lost = true;
            return fate;
        }
        if self.settings.are_none() {
            return fate;
        }
        let settings = self.settings;
        if self.chance(settings.duplication) {
            self.counters.duplicated += 1;
            fate.copies[0] = Some(self.within(settings.reordered_by));
        }
        if self.chance(settings.very_late) {
            self.counters.very_late += 1;
            fate.copies[1] = Some(self.within(settings.late_by));
        }
        fate.lost = self.is_lost(to);
        if self.chance(settings.corruption) {
            self.corrupt(&mut fate);
        }
        fate.delay = self.delay(now, to);
        fate
    }

    /// Stops new faults (INJECTOR-2).
    pub(crate) fn heal(&mut self, now: Nanos) {
        self.settings = Settings::default();
        for partition in &mut self.outages.partitions {
            partition.until = partition.until.min(now);
        }
    }

    fn is_lost(&mut self, to: HostId) -> bool {
        let settings = self.settings;
        let burst = &mut self.bursts[to as usize];
        if burst.strikes(&mut self.rng, settings.burst, settings.burst_length) {
            self.counters.lost_in_bursts += 1;
            return true;
        }
        let lost = self.chance(settings.loss);
        self.counters.lost += u64::from(lost);
        lost
    }

    fn corrupt(&mut self, fate: &mut PacketFate) {
        match self.settings.corrupted {
            Corruption::Caught => {
                self.counters.caught += 1;
                fate.lost = true;
            }
            Corruption::Unnoticed => {
                self.counters.corrupted += u64::from(!fate.lost);
                fate.corrupted = Some(self.rng.random());
            }
        }
    }

    fn delay(&mut self, now: Nanos, to: HostId) -> Nanos {
        let settings = self.settings;
        let mut delay = 0;
        if self.chance(settings.reordering) {
            self.counters.reordered += 1;
            delay = self.within(settings.reordered_by);
        }
        if self.chance(settings.spike) {
            let spike = now + self.within(settings.spike_of);
            let until = &mut self.spikes[to as usize];
            *until = spike.max(*until);
        }
        let held = self.spikes[to as usize].saturating_sub(now);
        self.counters.held_up += u64::from(held > delay);
        delay.max(held)
    }

    fn chance(&mut self, of_10_000: u32) -> bool {
        of_10_000 > 0 && self.rng.random_range(0..10_000) < of_10_000
    }

    fn within(&mut self, most: Nanos) -> Nanos {
        self.rng.random_range(0..=most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Crash, Partition, Pause};

    fn injector(settings: Settings, outages: Outages) -> FaultInjector {
        FaultInjector::new(settings, outages, 4, 7)
    }

    #[test]
    fn each_fault_occurs_with_its_probability() {
        let settings = Settings {
            loss: 1_000,
            duplication: 2_000,
            reordering: 3_000,
            reordered_by: 50,
            very_late: 500,
            late_by: 1_000_000,
            ..Settings::default()
        };
        let mut injector = injector(settings, Outages::default());
        let fates: Vec<PacketFate> = (0..10_000).map(|now| injector.fate(now, 0, 1)).collect();
        let Counters { lost, duplicated, reordered, very_late, .. } = injector.counters;
        for (seen, expected) in
            [(lost, 1_000), (duplicated, 2_000), (reordered, 3_000), (very_late, 500)]
        {
            assert!(seen.abs_diff(expected) < 250, "{seen}, not {expected}");
        }
        assert_eq!(fates.iter().filter(|fate| fate.lost).count() as u64, lost);
        assert!(fates.iter().all(|fate| fate.delay <= 50));
        assert!(fates.iter().any(|fate| fate.copies[1].is_some_and(|late| late > 100_000)));
    }

    #[test]
    fn a_spike_delays_all_packets_to_the_host() {
        let settings = Settings { spike: 10_000, spike_of: 1_000, ..Settings::default() };
        let mut injector = injector(settings, Outages::default());
        let until = (0..20).map(|_| injector.fate(0, 0, 1).delay).max().unwrap();
        injector.settings = Settings { reordering: 10_000, ..Settings::default() };
        assert_eq!(injector.fate(until - 1, 0, 1).delay, 1);
        assert_eq!(injector.fate(until - 1, 0, 2).delay, 0, "another host");
        assert_eq!(injector.fate(until, 0, 1).delay, 0);
    }

    #[test]
    fn corrupted_packets_are_dropped_or_delivered() {
        let settings = Settings { corruption: 10_000, ..Settings::default() };
        assert!(injector(settings, Outages::default()).fate(0, 0, 1).lost);
        let settings = Settings { corrupted: Corruption::Unnoticed, ..settings };
        let fate = injector(settings, Outages::default()).fate(0, 0, 1);
        assert!(!fate.lost && fate.corrupted.is_some());
    }

    #[test]
    fn a_crash_takes_precedence_over_a_pause() {
        let pause = Pause { host: 1, from: 100, until: 300 };
        let outages = Outages {
            pauses: vec![pause, Pause { until: 400, ..pause }],
            crashes: vec![Crash { host: 1, at: 200, until: 250 }],
            ..Outages::default()
        };
        let injector = injector(Settings::default(), outages);
        let states = [0, 100, 200, 249, 250, 400].map(|now| injector.state(1, now));
        let paused = HostState::Paused(400);
        assert_eq!(
            states,
            [HostState::Up, paused, HostState::Down, HostState::Down, paused, HostState::Up]
        );
        assert_eq!(injector.state(2, 200), HostState::Up);
    }

    #[test]
    fn after_healing_there_are_no_faults() {
        let settings = Settings { loss: 10_000, ..Settings::default() };
        let cut = Partition { side: vec![0], from: 0, until: 1_000 };
        let outages = Outages { partitions: vec![cut], ..Outages::default() };
        let mut injector = injector(settings, outages);
        assert!(injector.fate(10, 0, 1).lost && injector.fate(10, 1, 2).lost);
        injector.heal(20);
        assert_eq!([injector.fate(20, 0, 1), injector.fate(20, 1, 2)], [PacketFate::default(); 2]);
    }
}
