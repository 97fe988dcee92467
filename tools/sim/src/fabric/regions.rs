//! A fabric in regions, which several threads simulate at the same time.
//!
//! ```text
//!   thread 1: regions 0 to 3 ──┐ window ┌── collect mail ── events of the window ── post mail ──┐ window
//!   thread 2: regions 4 to 7 ──┘        └── collect mail ── events of the window ── post mail ──┘
//! ```
//!
//! A packet that leaves a region arrives in another one a *lookahead* later at the earliest: the
//! propagation on a link and the delay of a switch. A window begins at the first event of all
//! regions and is as long as the lookahead, so what a region does in it concerns no other region
//! before the next one, and all threads can work. This is the conservative kind of parallel
//! simulation: nothing is ever taken back.
//!
//! # Invariants
//!
//! - **REGION-1**: No packet reaches a region before its clock.
//! - **REGION-2**: Equal settings, hosts and messages give equal events, whatever the number of
//!   threads: the number of regions depends on the settings alone, regions share nothing but mail,
//!   each has random numbers of its own, and mail is ordered by its sender.

use std::array;
use std::collections::VecDeque;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::barrier::Barrier;
use super::division::Division;
use super::mail::Mail;
use super::measurement::Totals;
use super::model::Fabric;
use super::settings::{Buffers, Settings};
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::network::{Counters, Network};
use apus_workload::time::Nanos;

/// Regions of a fabric with at least as many hosts. Chosen by us: a processor more than this gains
/// nothing, and every region costs some work in each window.
const REGIONS: u32 = 8;

/// A fabric in regions. A message may be submitted before its time, and is given to its host then.
#[derive(Debug)]
pub struct Regions<H: Host> {
    regions: Vec<Region<H>>,
    division: Arc<Division>,
    mail: Mail<H::Body>,
    /// Least time from the transmission of a packet to its arrival in another region.
    lookahead: Nanos,
    threads: usize,
}

/// A region, and what passes between its hosts and the applications.
#[derive(Debug)]
struct Region<H: Host> {
    fabric: Fabric<H>,
    /// Messages to be submitted, in order of time.
    messages: VecDeque<Message>,
    /// Outcomes that have not been reported.
    outcomes: Vec<(Nanos, Outcome)>,
}

impl<H: Host> Region<H> {
    /// Returns when it has something to do next.
    fn next_at(&self) -> Nanos {
        let message = self.messages.front().map_or(Nanos::MAX, |message| message.at);
        self.fabric.next_event_at().min(message)
    }

    /// Simulates up to and including `until`.
    fn advance(&mut self, until: Nanos) {
        let Self { fabric, messages, outcomes } = self;
        let mut report = |at, outcome| outcomes.push((at, outcome));
        while let Some(message) = messages.front().filter(|message| message.at <= until) {
            fabric.advance(message.at, &mut report);
            fabric.submit(message);
            messages.pop_front();
        }
        fabric.advance(until, &mut report);
    }
}

impl<H: Host> Regions<H> {
    /// Returns a fabric at time 0 that up to `threads` threads simulate. `hosts` is called for each region, and what it returns
    /// creates the hosts of that region, so that those of different regions need not share anything.
    pub fn new<F: FnMut(HostId) -> H>(
        settings: &Settings,
        threads: usize,
        mut hosts: impl FnMut() -> F,
    ) -> Self {
        let lookahead = settings.topology.delays.propagation + settings.topology.delays.switch;
        let routes = Fabric::<H>::routes(settings);
        // Ports that share a buffer change it at once.
        let divisible = lookahead > 0 && !matches!(settings.buffers, Buffers::Shared(_));
        let most = REGIONS.min(Mail::<H::Body>::MOST).min(settings.topology.shape.hosts());
        let count = if divisible { most } else { 1 };
        let division = Arc::new(Division::new(&routes, count));
        let region = |region| Region {
            fabric: Fabric::region(settings, &routes, &division, region, hosts()),
            messages: VecDeque::new(),
            outcomes: Vec::new(),
        };
        Self {
            regions: (0..count).map(region).collect(),
            division,
            mail: Mail::new(count),
            lookahead,
            threads: threads.clamp(1, count as usize),
        }
    }

    /// Returns the counters of all regions.
    fn totals(&self) -> Totals {
        self.regions.iter().map(|region| region.fabric.totals()).sum()
    }
}

/// What the threads of a run share.
#[derive(Debug)]
struct Run<'a, B> {
    mail: &'a Mail<B>,
    barrier: Barrier,
    /// When each region has something to do next, after the window before this one and after this
    /// one, in turns.
    next: [Box<[AtomicU64]>; 2],
    lookahead: Nanos,
    until: Nanos,
}

impl<B: Clone + Default> Run<'_, B> {
    /// Simulates some of the regions, the first of which has this number, window by window.
    fn simulate<H: Host<Body = B>>(&self, first: u32, regions: &mut [Region<H>]) {
        let _guard = self.barrier.guard();
        for window in 1.. {
            let next = |window: u64| &self.next[(window % 2) as usize];
            let begin = next(window - 1).iter().map(|next| next.load(Ordering::Relaxed)).min();
            // All threads compute the same, and end with the same window.
            let begin = begin.unwrap_or(Nanos::MAX);
            let is_last = begin > self.until;
            let end = if is_last { self.until } else { self.until.min(begin + self.lookahead) };
            for (number, region) in (first..).zip(&mut *regions) {
                self.mail.collect(window - 1, number, |letter| region.fabric.accept(letter));
                region.advance(end);
                let at = region.next_at().min(region.fabric.post(|letters| {
                    self.mail.post(window, number, letters);
                }));
                next(window)[number as usize].store(at, Ordering::Relaxed);
            }
            if is_last || self.barrier.wait().is_err() {
                return;
            }
        }
    }
}

impl<H> Network for Regions<H>
where
    H: Host + Send,
    H::Body: Send,
{
    fn carry(
        &mut self,
        messages: &[Message],
        until: Nanos,
        report: &mut dyn FnMut(Nanos, Outcome),
    ) {
        for message in messages {
            self.submit(message);
        }
        self.advance(until, report);
    }

    fn submit(&mut self, message: &Message) {
        let region = self.division.region_of(message.from);
        self.regions[region as usize].messages.push_back(*message);
    }

    fn advance(&mut self, until: Nanos, report: &mut dyn FnMut(Nanos, Outcome)) {
        let next = |region: &Region<H>| AtomicU64::new(region.next_at());
        let each = self.regions.len().div_ceil(self.threads);
        let run = Run {
            mail: &self.mail,
            barrier: Barrier::new(self.regions.len().div_ceil(each)),
            next: array::from_fn(|_| self.regions.iter().map(next).collect()),
            lookahead: self.lookahead,
            until,
        };
        let mut parts = (0..).step_by(each).zip(self.regions.chunks_mut(each));
        let own = parts.next();
        thread::scope(|scope| {
            let run = &run;
            let others: Vec<_> = parts
                .map(|(first, regions)| scope.spawn(move || run.simulate(first, regions)))
                .collect();
            if let Some((first, regions)) = own {
                run.simulate(first, regions);
            }
            for other in others {
                if let Err(panic) = other.join() {
                    panic::resume_unwind(panic);
                }
            }
        });
        let mut outcomes: Vec<(Nanos, Outcome)> =
            self.regions.iter_mut().flat_map(|region| region.outcomes.drain(..)).collect();
        outcomes.sort_by_key(|&(at, _)| at);
        for (at, outcome) in outcomes {
            report(at, outcome);
        }
    }

    fn reset_counters(&mut self) {
        for region in &mut self.regions {
            region.fabric.reset_counters();
        }
    }

    fn data_packets(&self) -> u64 {
        self.regions.iter().map(|region| region.fabric.data_packets()).sum()
    }

    fn counters(&self) -> Counters {
        self.totals().counters()
    }
}
