//! Clock alignment: converts the clocks of several hosts to the first host's clock.
//!
//! Two clocks whose processes exchange packets are compared by those packets
//! ([`super::clock_offset`]). Each clock is aligned through the chain of comparisons with the least
//! uncertainty. A clock without packets in both directions is aligned by its host's wall clock.

use super::associations::Association;
use super::clock_domains::{ClockDomains, MAX_TIME};
use super::clock_offset::{OffsetBound, OffsetLine, estimate_offset};
use super::rpcs::TracedRpc;
use apus_trace::event::Event;
use apus_trace::{Side, Trace};
use std::collections::HashMap;

/// Alignment of a clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockAlignment {
    /// Indices of the processes that use the clock.
    pub processes: Vec<usize>,
    /// Method of alignment.
    pub placement: Placement,
    /// Offset of its host's wall clock from the reference's at its first record, in nanoseconds;
    /// positive if it is ahead.
    pub ahead: i64,
    /// Conversion to the common clock: subtract the offset, then multiply by the scale.
    offset: f64,
    scale: f64,
}

/// Method used to determine a clock's offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// The reference: the clock of the first trace.
    Reference,
    /// Packets in both directions.
    Traffic {
        /// Index of the clock that it was compared with.
        against: usize,
        /// Rate relative to that clock, in ppm.
        ppm: f64,
        /// Bound for the error of the offset in nanoseconds: half the sum of the smallest delays in
        /// both directions, summed over all comparisons up to the reference. Negative if packets
        /// contradict each other.
        uncertainty: f64,
        /// Number of packets from the other clock, and to it.
        packets: [usize; 2],
    },
    /// The wall clocks of both hosts, since packets in both directions are missing. The error is
    /// the error of the wall clocks.
    WallClock,
}

/// Bounds from packets between two clocks: how far the second clock is ahead of the first, at most
/// and at least.
#[derive(Debug, Default)]
struct Bounds {
    upper: Vec<OffsetBound>,
    lower: Vec<OffsetBound>,
}

/// Alignment of all clocks, by domain.
#[derive(Debug)]
pub(super) struct Clocks {
    links: Vec<ClockAlignment>,
    names: Vec<String>,
}

impl Clocks {
    pub(super) fn of(
        traces: &[(String, Trace)],
        clock_domains: &ClockDomains,
        associations: &[Association],
        rpcs: &[TracedRpc],
    ) -> Self {
        let bounds = bounds(clock_domains, associations, rpcs);
        let mut links: Vec<ClockAlignment> = (0..clock_domains.count())
            .map(|domain| ClockAlignment::by_wall_clock(domain, clock_domains))
            .collect();
        links[0].placement = Placement::Reference;
        let mut known = vec![false; links.len()];
        known[0] = true;
        while let Some(step) = best_comparison(&bounds, &links, &known) {
            let Comparison { from, to, line, uncertainty, packets } = step;
            let ClockAlignment { offset, scale, .. } = links[from];
            let link = &mut links[to];
            // Its time t corresponds to (t - line.offset) / (1 + line.rate) on the other clock.
            link.scale = scale / (1.0 + line.rate);
            link.offset = line.offset + offset * (1.0 + line.rate);
            let ppm = line.rate * 1e6;
            link.placement = Placement::Traffic { against: from, ppm, uncertainty, packets };
            known[to] = true;
        }
        for (domain, link) in links.iter_mut().enumerate() {
            let walls = clock_domains.realtime(domain).abs_diff(clock_domains.realtime(0));
            let walls = i64::try_from(walls).unwrap_or(i64::MAX / 2);
            let later = clock_domains.realtime(domain) >= clock_domains.realtime(0);
            link.ahead = (if later { walls } else { -walls }) - link.common(0);
        }
        let name = |domain| {
            let process = clock_domains.processes(domain).next().unwrap_or(0);
            let (source, trace) = &traces[process];
            format!("{} ({source})", trace.head.host)
        };
        Self { names: (0..links.len()).map(name).collect(), links }
    }

    /// Converts a clock's time to the common clock.
    pub(super) fn common(&self, domain: usize, local: i64) -> i64 {
        self.links[domain].common(local)
    }

    /// Returns warnings about uncertain alignments.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |(link, name): (&ClockAlignment, &String)| match link.placement {
            Placement::WallClock => Some(format!(
                "the clock of {name} cannot be aligned by packets, since no RPC with packets in both directions is traced at \
                 both ends; it is aligned by its wall clock, whose error may exceed every duration shown"
            )),
            Placement::Traffic { uncertainty, .. } if uncertainty < 0.0 => Some(format!(
                "packets of {name} seem to arrive up to {:.1} us before they are sent; a clock may have been set during the trace",
                -uncertainty * 2.0 / 1e3
            )),
            _ => None,
        };
        self.links.iter().zip(&self.names).filter_map(note).collect()
    }

    pub(super) fn into_links(self) -> Vec<ClockAlignment> {
        self.links
    }
}

impl ClockAlignment {
    fn by_wall_clock(domain: usize, clock_domains: &ClockDomains) -> Self {
        let (own, first) = (clock_domains.realtime(domain), clock_domains.realtime(0));
        // Subtract as integers: a float cannot represent nanoseconds since 1970.
        let later = own.abs_diff(first) as f64;
        Self {
            processes: clock_domains.processes(domain).collect(),
            placement: Placement::WallClock,
            ahead: 0,
            offset: if own >= first { -later } else { later },
            scale: 1.0,
        }
    }

    /// Converts a time to the common clock.
    pub(super) fn common(&self, local: i64) -> i64 {
        if self.placement == Placement::Reference {
            return local;
        }
        let common = ((local as f64 - self.offset) * self.scale).round() as i64;
        common.clamp(-MAX_TIME, MAX_TIME)
    }
}

/// A comparison that aligns another clock.
struct Comparison {
    from: usize,
    to: usize,
    line: OffsetLine,
    uncertainty: f64,
    packets: [usize; 2],
}

/// Returns the comparison with the least remaining uncertainty.
fn best_comparison(
    bounds: &HashMap<(usize, usize), Bounds>,
    links: &[ClockAlignment],
    known: &[bool],
) -> Option<Comparison> {
    let mut best: Option<Comparison> = None;
    for (&(from, to), Bounds { upper, lower }) in bounds {
        if !known[from] || known[to] {
            continue;
        }
        let Some(line) = estimate_offset(lower, upper) else { continue };
        let before = match links[from].placement {
            Placement::Traffic { uncertainty, .. } => uncertainty,
            _ => 0.0,
        };
        let step = Comparison {
            from,
            to,
            line,
            uncertainty: before + line.uncertainty,
            packets: [upper.len(), lower.len()],
        };
        let better = |best: &Comparison| (step.uncertainty, to) < (best.uncertainty, best.to);
        if best.as_ref().is_none_or(better) {
            best = Some(step);
        }
    }
    best
}

/// Returns the bounds between each two clocks, in both orders.
fn bounds(
    clock_domains: &ClockDomains,
    associations: &[Association],
    rpcs: &[TracedRpc],
) -> HashMap<(usize, usize), Bounds> {
    let mut all: HashMap<(usize, usize), Bounds> = HashMap::new();
    for rpc in rpcs {
        let domain =
            |side| rpc.process(side, associations).map(|process| clock_domains.of_process(process));
        let (Some(client), Some(server)) = (domain(Side::Client), domain(Side::Server)) else {
            continue;
        };
        if client == server {
            continue;
        }
        for ((from, to), (departure, arrival)) in [
            ((client, server), request(rpc)),
            ((server, client), response(rpc)),
            ((server, client), grant(rpc, Side::Server)),
            ((client, server), grant(rpc, Side::Client)),
        ]
        .into_iter()
        .filter_map(|(association, times)| Some((association, times?)))
        {
            // The receiver's clock is ahead of the sender's by at most this ...
            let bound = OffsetBound { at: departure as f64, ahead: (arrival - departure) as f64 };
            all.entry((from, to)).or_default().upper.push(bound);
            // ... and the sender's clock is ahead of the receiver's by at least the negative.
            let bound = OffsetBound { at: arrival as f64, ahead: (departure - arrival) as f64 };
            all.entry((to, from)).or_default().lower.push(bound);
        }
    }
    all
}

/// Returns departure and arrival of a request's first packet. No packet of the RPC reaches the
/// server before it.
fn request(rpc: &TracedRpc) -> Option<(i64, i64)> {
    let departure = rpc.first(Side::Client, Event::ToKernel)?;
    let arrival = rpc.first(Side::Server, Event::FromKernel)?;
    Some((departure.at, arrival.at))
}

/// Returns the departure of a response's first packet and the arrival of its last piece. Earlier
/// packets may be grants.
fn response(rpc: &TracedRpc) -> Option<(i64, i64)> {
    let departure = rpc.first(Side::Server, Event::ToKernel)?;
    let whole = rpc.first(Side::Client, Event::Parsed)?;
    let arrival = rpc.last_until(Side::Client, Event::FromKernel, whole.at)?;
    Some((departure.at, arrival.at))
}

/// Returns departure and arrival of the last grant that `side` sent.
fn grant(rpc: &TracedRpc, side: Side) -> Option<(i64, i64)> {
    let departure = rpc.all(side, Event::GrantSent).next_back()?;
    let arrival =
        rpc.all(side.other(), Event::GrantReceived).find(|grant| grant.b == departure.b)?;
    Some((departure.at, arrival.at))
}
