//! How are several clocks brought together?
//!
//! Two clocks whose processes talked with each other are compared by their packets ([`super::corridor`]); each clock is
//! placed by the chain of comparisons that leaves the least uncertainty. A clock to which no packets lead, or packets
//! in one direction only, is placed by its host's wall clock.

use super::Way;
use super::calls::Call;
use super::corridor::{Bound, Line, middle};
use super::domains::{Domains, LARGEST};
use apus_trace::event::Event;
use apus_trace::{Side, Trace};
use std::collections::HashMap;

/// How a clock was placed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockLink {
    /// Who has it: the places of the processes.
    pub processes: Vec<usize>,
    /// How.
    pub placement: Placement,
    /// How far the wall clock of its host was ahead of the reference's at its first record, in nanoseconds.
    pub ahead: i64,
    /// From its time to the common one: what is subtracted, then what a nanosecond of it is worth.
    offset: f64,
    scale: f64,
}

/// From what it is known how far a clock is ahead of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// It is the one that all others are compared with: the first trace's.
    Reference,
    /// From packets.
    Traffic {
        /// The place of the clock that it was compared with.
        against: usize,
        /// How much faster it runs, in millionths.
        ppm: f64,
        /// Half the sum of the smallest delays both ways, in nanoseconds: the true difference is not further away.
        /// All steps to the reference together. Negative if packets contradict each other.
        uncertainty: f64,
        /// Packets that came from the other clock, and packets that went to it.
        packets: [usize; 2],
    },
    /// From what the hosts' wall clocks say, since there were not packets both ways. Wrong by as much as those are.
    WallClock,
}

/// Packets between two clocks: what the second is ahead of the first at most, and at least.
#[derive(Debug, Default)]
struct Bounds {
    upper: Vec<Bound>,
    lower: Vec<Bound>,
}

/// All clocks, by their domains.
#[derive(Debug)]
pub(super) struct Clocks {
    links: Vec<ClockLink>,
    names: Vec<String>,
}

impl Clocks {
    pub(super) fn of(
        traces: &[(String, Trace)],
        domains: &Domains,
        ways: &[Way],
        calls: &[Call],
    ) -> Self {
        let bounds = bounds(domains, ways, calls);
        let mut links: Vec<ClockLink> =
            (0..domains.count()).map(|domain| ClockLink::by_wall_clock(domain, domains)).collect();
        links[0].placement = Placement::Reference;
        let mut known = vec![false; links.len()];
        known[0] = true;
        while let Some(step) = best_step(&bounds, &links, &known) {
            let Step { from, to, line, uncertainty, packets } = step;
            let ClockLink { offset, scale, .. } = links[from];
            let link = &mut links[to];
            // Its time t is time (t - line.offset) / (1 + line.rate) of the other.
            link.scale = scale / (1.0 + line.rate);
            link.offset = line.offset + offset * (1.0 + line.rate);
            let ppm = line.rate * 1e6;
            link.placement = Placement::Traffic { against: from, ppm, uncertainty, packets };
            known[to] = true;
        }
        for (domain, link) in links.iter_mut().enumerate() {
            let walls = domains.realtime(domain).abs_diff(domains.realtime(0));
            let walls = i64::try_from(walls).unwrap_or(i64::MAX / 2);
            let later = domains.realtime(domain) >= domains.realtime(0);
            link.ahead = (if later { walls } else { -walls }) - link.common(0);
        }
        let name = |domain| {
            let process = domains.processes(domain).next().unwrap_or(0);
            let (source, trace) = &traces[process];
            format!("{} ({source})", trace.head.host)
        };
        Self { names: (0..links.len()).map(name).collect(), links }
    }

    /// The common time of a clock's time.
    pub(super) fn common(&self, domain: usize, local: i64) -> i64 {
        self.links[domain].common(local)
    }

    /// What a reader has to know about them.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |(link, name): (&ClockLink, &String)| match link.placement {
            Placement::WallClock => Some(format!(
                "the clock of {name} could not be aligned, since no RPCs with packets both ways are traced at both \
                 ends: placed by its wall clock, which may be wrong by more than all that is shown"
            )),
            Placement::Traffic { uncertainty, .. } if uncertainty < 0.0 => Some(format!(
                "packets of {name} seem to come up to {:.1} us before they are sent: was a clock set meanwhile?",
                -uncertainty * 2.0 / 1e3
            )),
            _ => None,
        };
        self.links.iter().zip(&self.names).filter_map(note).collect()
    }

    pub(super) fn into_links(self) -> Vec<ClockLink> {
        self.links
    }
}

impl ClockLink {
    fn by_wall_clock(domain: usize, domains: &Domains) -> Self {
        let (own, first) = (domains.realtime(domain), domains.realtime(0));
        // As integers first: a float does not hold nanoseconds since 1970.
        let later = own.abs_diff(first) as f64;
        Self {
            processes: domains.processes(domain).collect(),
            placement: Placement::WallClock,
            ahead: 0,
            offset: if own >= first { -later } else { later },
            scale: 1.0,
        }
    }

    /// The common time of its time.
    pub(super) fn common(&self, local: i64) -> i64 {
        if self.placement == Placement::Reference {
            return local;
        }
        let common = ((local as f64 - self.offset) * self.scale).round() as i64;
        common.clamp(-LARGEST, LARGEST)
    }
}

/// A clock that can be placed, by one that is.
struct Step {
    from: usize,
    to: usize,
    line: Line,
    uncertainty: f64,
    packets: [usize; 2],
}

/// The one that leaves the least uncertainty.
fn best_step(
    bounds: &HashMap<(usize, usize), Bounds>,
    links: &[ClockLink],
    known: &[bool],
) -> Option<Step> {
    let mut best: Option<Step> = None;
    for (&(from, to), Bounds { upper, lower }) in bounds {
        if !known[from] || known[to] {
            continue;
        }
        let Some(line) = middle(lower, upper) else { continue };
        let before = match links[from].placement {
            Placement::Traffic { uncertainty, .. } => uncertainty,
            _ => 0.0,
        };
        let step = Step {
            from,
            to,
            line,
            uncertainty: before + line.uncertainty,
            packets: [upper.len(), lower.len()],
        };
        let better = |best: &Step| (step.uncertainty, to) < (best.uncertainty, best.to);
        if best.as_ref().is_none_or(better) {
            best = Some(step);
        }
    }
    best
}

/// What packets say about each two clocks, in both orders.
fn bounds(domains: &Domains, ways: &[Way], calls: &[Call]) -> HashMap<(usize, usize), Bounds> {
    let mut all: HashMap<(usize, usize), Bounds> = HashMap::new();
    for call in calls {
        let domain = |side| call.process(side, ways).map(|process| domains.of_process(process));
        let (Some(client), Some(server)) = (domain(Side::Client), domain(Side::Server)) else {
            continue;
        };
        if client == server {
            continue;
        }
        for ((from, to), (left, came)) in [
            ((client, server), request(call)),
            ((server, client), response(call)),
            ((server, client), grant(call, Side::Server)),
            ((client, server), grant(call, Side::Client)),
        ]
        .into_iter()
        .filter_map(|(way, times)| Some((way, times?)))
        {
            // The clock of who received it is ahead of the sender's by at most this, ...
            let bound = Bound { at: left as f64, ahead: (came - left) as f64 };
            all.entry((from, to)).or_default().upper.push(bound);
            // ... and the sender's ahead of the receiver's by at least the negative.
            let bound = Bound { at: came as f64, ahead: (left - came) as f64 };
            all.entry((to, from)).or_default().lower.push(bound);
        }
    }
    all
}

/// When the first packet of a request left and came: nothing comes to the server before that packet has left.
fn request(call: &Call) -> Option<(i64, i64)> {
    let left = call.first(Side::Client, Event::ToKernel)?;
    let came = call.first(Side::Server, Event::FromKernel)?;
    Some((left.at, came.at))
}

/// When the first packet of a response left, and the last piece of it came. What came earlier may have been a grant.
fn response(call: &Call) -> Option<(i64, i64)> {
    let left = call.first(Side::Server, Event::ToKernel)?;
    let whole = call.first(Side::Client, Event::Parsed)?;
    let came = call.last_until(Side::Client, Event::FromKernel, whole.at)?;
    Some((left.at, came.at))
}

/// When the last grant that `side` sent left and came.
fn grant(call: &Call, side: Side) -> Option<(i64, i64)> {
    let left = call.all(side, Event::GrantSent).next_back()?;
    let came = call.all(side.other(), Event::GrantReceived).find(|grant| grant.b == left.b)?;
    Some((left.at, came.at))
}
