//! A fabric in regions that several threads simulate at the same time.
//!
//! ```text
//!   thread 1  ── collect mail ── events of the window ── post mail ── other regions ──┐ next window
//!   thread 2  ── collect mail ── events of the window ── post mail ── other regions ──┘
//! ```
//!
//! A packet that leaves a region arrives in another one a *lookahead* later at the earliest: the
//! propagation on a link and the delay of a switch, or with a single rack also the software of the
//! host. A window starts at the first event of all regions and is as long as the lookahead, so
//! events of a region affect other regions only from the next window on, and all threads can work.
//! Each thread first simulates its own regions, whose state is in its processor's cache, and then
//! helps out with the regions of other threads. This is conservative parallel simulation: no event
//! is ever rolled back.
//!
//! # Invariants
//!
//! - **REGION-1**: No packet reaches a region before its clock.
//! - **REGION-2**: Equal settings, hosts and messages give equal events, whatever the number of
//!   threads: the number of regions depends on the settings alone, regions share only mail, each
//!   has its own random numbers, and mail is ordered by sender.

use std::collections::VecDeque;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// Regions of a fabric with fewer racks. Chosen by us: most machines do not run more threads at the
/// same time.
const REGIONS: u32 = 8;
/// Maximum number of regions. Chosen by us: each pair needs a box.
const MOST_REGIONS: u32 = 32;
/// Minimum average number of hosts per region. Chosen by us: fewer hosts have too little work in a
/// window.
const LEAST_HOSTS: u32 = 8;

/// A fabric in regions. A message may be submitted before its time; its host receives it at that
/// time.
#[derive(Debug)]
pub struct Regions<H: Host> {
    regions: Vec<Mutex<Region<H>>>,
    division: Arc<Division>,
    mail: Mail<H::Body>,
    /// Least time from the transmission of a packet to its arrival in another region.
    lookahead: Nanos,
    threads: usize,
}

/// A region, and the messages and outcomes between its hosts and the applications.
#[derive(Debug)]
struct Region<H: Host> {
    fabric: Fabric<H>,
    /// Messages to be submitted, in order of time.
    messages: VecDeque<Message>,
    /// Outcomes that have not been reported.
    outcomes: Vec<(Nanos, Outcome)>,
}

impl<H: Host> Region<H> {
    /// Returns the time of its next event or message.
    fn next_at(&self) -> Nanos {
        let message = self.messages.front().map_or(Nanos::MAX, |message| message.at);
        self.fabric.next_event_at().min(message)
    }

    /// Simulates up to and including `until`.
    fn advance(&mut self, until: Nanos) {
        let Self { fabric, messages, outcomes } = self;
        let mut report = |at, outcome| outcomes.push((at, outcome));
        loop {
            let message = messages.front().copied().filter(|message| message.at <= until);
            fabric.advance(message.map_or(until, |message| message.at), &mut report);
            let Some(message) = message else { return };
            fabric.submit(&message);
            messages.pop_front();
        }
    }
}

impl<H: Host> Regions<H> {
    /// Returns a fabric at time 0 that up to `threads` threads simulate. `hosts` is called for each
    /// region and returns a function that creates its hosts, so that hosts of different regions
    /// need not share state.
    pub fn new<F: FnMut(HostId) -> H>(
        settings: &Settings,
        threads: usize,
        mut hosts: impl FnMut() -> F,
    ) -> Self {
        let Topology { shape, delays, .. } = settings.topology;
        // Between the switches of different racks, or from a host to the switch of the only rack.
        let software = if shape.racks == 1 { delays.host_out } else { 0 };
        let lookahead = delays.propagation + delays.switch + software;
        let routes = Fabric::<H>::routes(settings);
        // Ports that share a buffer see each other's changes immediately.
        let divisible = lookahead > 0 && !matches!(settings.buffers, Buffers::Shared(_));
        let most = shape.racks.clamp(REGIONS, MOST_REGIONS);
        let count = if divisible { (shape.hosts() / LEAST_HOSTS).clamp(1, most) } else { 1 };
        let division = Arc::new(Division::new(&routes, count));
        let region = |region| Region {
            fabric: Fabric::region(settings, &routes, &division, region, hosts()),
            messages: VecDeque::new(),
            outcomes: Vec::new(),
        };
        Self {
            regions: (0..count).map(region).map(Mutex::new).collect(),
            division,
            mail: Mail::new(count),
            lookahead,
            threads: threads.clamp(1, count as usize),
        }
    }

    /// Returns all regions.
    fn all(&mut self) -> impl Iterator<Item = &mut Region<H>> {
        self.regions
            .iter_mut()
            .map(|region| region.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// State shared by the threads of a run.
#[derive(Debug)]
struct Run<'a, H: Host> {
    regions: &'a [Mutex<Region<H>>],
    mail: &'a Mail<H::Body>,
    barrier: Barrier,
    threads: usize,
    /// Window that each region was last taken for by a thread.
    taken: Box<[AtomicU64]>,
    /// Next event of each region after the previous window and after this one, alternating.
    next: [Box<[AtomicU64]>; 2],
    lookahead: Nanos,
    until: Nanos,
}

impl<H: Host> Run<'_, H> {
    /// Simulates window by window in one of the threads.
    fn simulate(&self, thread: usize) {
        let _guard = self.barrier.guard();
        let count = self.regions.len();
        let first = |thread: usize| thread * count / self.threads;
        let own = first(thread)..first(thread + 1);
        for window in 1.. {
            let next = self.next[((window - 1) % 2) as usize].iter();
            let begin = next.map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(Nanos::MAX);
            // All threads compute the same value, and end with the same window.
            let is_last = begin > self.until;
            let end = if is_last {
                self.until
            } else {
                self.until.min(begin.saturating_add(self.lookahead))
            };
            // Its own regions, and then the regions of other threads, starting with the regions
            // that their threads reach last.
            for number in own.clone().chain((0..own.start).rev()).chain((own.end..count).rev()) {
                let free = self.taken[number].compare_exchange(
                    window - 1,
                    window,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if free.is_ok() {
                    self.advance(number, window, end);
                }
            }
            if self.barrier.wait().is_err() || is_last {
                return;
            }
        }
    }

    /// Simulates window `window` of a region, up to `end`.
    fn advance(&self, number: usize, window: u64, end: Nanos) {
        let [before, after] = [window - 1, window].map(|window| &self.next[(window % 2) as usize]);
        let region = number as u32;
        let next = before[number].load(Ordering::Relaxed);
        let at = if next > end && end < self.until && !self.mail.waits(window - 1, region) {
            // No event is due, so its clock may lag behind.
            next
        } else {
            let mut this = lock(&self.regions[number]);
            self.mail.collect(window - 1, region, |letter| this.fabric.accept(letter));
            this.advance(end);
            this.next_at().min(self.mail.post(window, region, &mut this.fabric.outbox))
        };
        after[number].store(at, Ordering::Relaxed);
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
        let region = self.regions[region as usize].get_mut();
        region.unwrap_or_else(PoisonError::into_inner).messages.push_back(*message);
    }

    fn advance(&mut self, until: Nanos, report: &mut dyn FnMut(Nanos, Outcome)) {
        let next: Vec<Nanos> = self.all().map(|region| region.next_at()).collect();
        let numbers = || next.iter().map(|&at| AtomicU64::new(at)).collect();
        let run = Run {
            regions: &self.regions,
            mail: &self.mail,
            barrier: Barrier::new(self.threads),
            threads: self.threads,
            taken: next.iter().map(|_| AtomicU64::new(0)).collect(),
            next: [numbers(), numbers()],
            lookahead: self.lookahead,
            until,
        };
        thread::scope(|scope| {
            let run = &run;
            let others: Vec<_> =
                (1..self.threads).map(|thread| scope.spawn(move || run.simulate(thread))).collect();
            run.simulate(0);
            for other in others {
                if let Err(panic) = other.join() {
                    panic::resume_unwind(panic);
                }
            }
        });
        let mut outcomes: Vec<(Nanos, Outcome)> =
            self.all().flat_map(|region| region.outcomes.drain(..)).collect();
        outcomes.sort_by_key(|&(at, _)| at);
        for (at, outcome) in outcomes {
            report(at, outcome);
        }
    }

    fn reset_counters(&mut self) {
        for region in self.all() {
            region.fabric.reset_counters();
        }
    }

    fn data_packets(&self) -> u64 {
        self.regions.iter().map(|region| lock(region).fabric.data_packets()).sum()
    }

    fn counters(&self) -> Counters {
        self.regions.iter().map(|region| lock(region).fabric.totals()).sum::<Totals>().counters()
    }
}

/// Locks a region. A panic while one is locked ends the run, so poisoning can be ignored.
fn lock<H: Host>(region: &Mutex<Region<H>>) -> MutexGuard<'_, Region<H>> {
    region.lock().unwrap_or_else(PoisonError::into_inner)
}
