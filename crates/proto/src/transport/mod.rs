//! The one object, and what it consists of.
//!
//! Each file of this folder is one family of calls: [`command`](self) what the application wants,
//! `ending` how RPCs end, `admission` how requests begin, `housekeeping` what the engine tells about
//! the system, `info` what may be looked at.

mod admission;
mod budget;
mod command;
mod ending;
mod event;
mod housekeeping;
mod info;

pub use command::Call;
pub use event::Event;
pub use housekeeping::Unreachable;
pub use info::{RpcInfo, RpcState};

pub(crate) use admission::Admitted;
pub(crate) use command::peer_address;
pub(crate) use ending::Ending;

use crate::config::Config;
use crate::grant::Granter;
use crate::message::Buffers;
use crate::metrics::Metrics;
use crate::peer::{Address, Peers};
use crate::priority::{OwnCutoffs, Sampler};
use crate::probe::{Notes, ProbeKind};
use crate::rpc::Rpcs;
use crate::time::Instant;
use crate::timer::{self, Deadlines, Reaper, Silence};
use crate::tx::{Identity, Outbox};
use apus_wire::Packet;
use budget::Budget;
use std::collections::VecDeque;

/// The Homa protocol of one endpoint, client and server at once, as a state machine without IO.
///
/// See the crate's head for the order of calls. All calls take the present time; it never decreases.
#[derive(Debug)]
pub struct Transport {
    pub(crate) config: Config,
    pub(crate) identity: Identity,
    pub(crate) rpcs: Rpcs,
    pub(crate) peers: Peers,
    pub(crate) granter: Granter,
    pub(crate) cutoffs: OwnCutoffs,
    pub(crate) sampler: Sampler,
    pub(crate) outbox: Outbox,
    pub(crate) silence: Silence,
    pub(crate) deadlines: Deadlines,
    pub(crate) reaper: Reaper,
    pub(crate) budget: Budget,
    pub(crate) buffers: Buffers,
    /// So many of the first bytes of each message that begins to arrive are kept.
    pub(crate) keep: u32,
    pub(crate) events: VecDeque<Event>,
    pub(crate) metrics: Metrics,
    /// What those want to know who watch single RPCs.
    pub(crate) notes: Notes,
    /// Draws session numbers.
    random: Random,
    /// The rate of the link that unscheduled bytes are computed with, in Mbit/s.
    pub(crate) link_mbps: u64,
    /// Number of RPCs created, for their order.
    births: u64,
    /// Next id of a call in the kernel profile, where ids are unique per host.
    next_kernel_id: u64,
    /// Whether requests are accepted.
    serving: bool,
    /// So many more requests are accepted before the rest is refused.
    request_room: usize,
    shut_down: bool,
    /// The latest time that was given; it never decreases.
    now: Instant,
}

/// Rate assumed where nobody knows the link's: the kernel's `link_mbps`.
const ASSUMED_LINK_MBPS: u64 = 25_000;

impl Transport {
    /// A transport for the endpoint with Homa port `port`.
    ///
    /// `seed` decides everything that is drawn at random: the endpoint's incarnation, its first RPC
    /// id, session numbers and hash seeds. Peers must not be able to guess it, and no two lives of an
    /// endpoint may have the same: take it from the operating system.
    #[must_use]
    pub fn new(config: Config, port: u16, seed: u64) -> Self {
        let mut random = Random(seed);
        let incarnation = random.next() as u32;
        // Even, far from 0 and with room for centuries above it.
        let first_id = (random.next() >> 2) & !1 | 1 << 61;
        let hash_seed = random.next();
        let identity = Identity { profile: config.profile(), port, incarnation };
        let configured = config.link_mbps();
        let link_mbps = if configured > 0 { configured } else { ASSUMED_LINK_MBPS };
        let mut granter = Granter::new(&config);
        granter.set_link_rate(link_mbps);
        Self {
            identity,
            rpcs: Rpcs::new(hash_seed),
            peers: Peers::new(&config, hash_seed, first_id),
            granter,
            cutoffs: OwnCutoffs::configured(&config),
            sampler: Sampler::new(&config),
            outbox: Outbox::new(&config),
            silence: Silence::new(timer::look_period(&config, link_mbps)),
            deadlines: Deadlines::default(),
            reaper: Reaper::default(),
            budget: Budget::default(),
            buffers: Buffers::default(),
            keep: u32::MAX,
            events: VecDeque::new(),
            metrics: Metrics::default(),
            notes: Notes::default(),
            random,
            link_mbps,
            births: 0,
            next_kernel_id: first_id,
            serving: true,
            request_room: usize::MAX,
            shut_down: false,
            now: Instant::ZERO,
            config,
        }
    }

    /// Takes a packet that came from `from`, without IP and UDP headers.
    ///
    /// Cannot fail: what a peer sends is used, or counted as dropped with a
    /// [`crate::DropReason`]; see [`Transport::metrics`].
    pub fn handle_packet(&mut self, now: Instant, from: Address, packet: &[u8]) {
        self.advance(now);
        // Looked at where it is: it is moved at no time.
        match &Packet::parse(self.identity.profile, packet) {
            Ok(packet) => self.receive(from, packet),
            Err(error) => {
                self.metrics.count_drop((*error).into());
                self.notes.add(None, from, ProbeKind::Dropped((*error).into()));
            }
        }
    }

    /// What the application should know; `None` if there is nothing (any more).
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Notes the time of a call.
    pub(crate) fn advance(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time goes backwards: {:?} after {now:?}", self.now);
        let waiting = self.granter.waiting() as u64;
        if waiting > 0 {
            let nanos = now.since(self.now).saturating_mul(waiting);
            let integral = &mut self.metrics.scheduling.grantable_integral_nanos;
            *integral = integral.saturating_add(nanos);
        }
        self.now = self.now.max(now);
    }

    /// The time of the present call.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The highest level: control packets and retransmissions (rows P-12, P-24, PRIO-5).
    pub(crate) const fn highest_priority(&self) -> u8 {
        self.config.highest_priority()
    }
}

/// A small generator for numbers that need to differ, not to be secret: SplitMix64 (Steele, Lea and
/// Flood, OOPSLA 2014).
#[derive(Debug)]
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
