//! Grants: which sender may transmit, and how far.
//!
//! The receiver schedules: a message longer than its unscheduled bytes continues only as far as
//! GRANTs allow. At any time a few messages are *active*: the shortest remaining ones, spread over
//! hosts ([`candidates`]). Each active message may have a window of granted bytes in flight
//! ([`window`]), all messages together at most `max_incoming` ([`backlog`]), and the oldest message
//! receives a small share, so that the longest do not starve ([`oldest`]). If senders report how
//! many granted bytes wait with them, the other bytes in flight are limited further
//! ([`in_flight`]).
//!
//! Data that arrives only marks its message; [`Granter::run`] decides once per batch of packets, so
//! that a message gets at most one GRANT per batch (HM `homa_grant.c` `homa_grant_check_rpc`,
//! GRANT-6).
//!
//! # Invariants
//!
//! - **GRANTER-1** (GRANT-12) A message is among the candidates exactly if it is not fully granted,
//!   is not silent and does not wait for room ([`parked`]).
//! - **GRANTER-2** The backlog is the sum of the bytes that all messages hold that ever needed a
//!   GRANT, except silent ones: bytes in flight, as far as they were allowed
//!   ([`MessageIn::held`](crate::message::MessageIn::held)).
//! - **GRANTER-3** A GRANT never raises the backlog above `max_incoming`; what a
//!   doubtful host holds beyond half of it does not count for other hosts ([`by_host`]).
//! - **GRANTER-4** A message in `content` is due no GRANT as long as no data arrives for it and its
//!   window is the same: what it may be granted depends on nothing else (GRANT-4).
//! - **GRANTER-5** (CAP-20) While messages wait for room, one message is assured of its room,
//!   unless memory has not enough for that. Those that wait take turns, by age.
//!
//! GRANT-10: a message whose sender has fallen silent, or lets it make no progress, gives its slot
//! and its share of `max_incoming` back until data arrives again. Chosen by us, because the kernel
//! lets eight dead senders hold all grants until they time out.

mod backlog;
mod by_host;
mod candidates;
mod credit;
mod doubts;
mod elsewhere;
mod in_flight;
mod marks;
mod oldest;
mod parked;
mod window;

use crate::allowed::Allowed;
use crate::budget::ReceiveRoom;
use crate::config::Config;
use crate::limits::{INCOMING_MICROS, MIN_INCOMING};
use crate::metrics::Scheduling;
use crate::peer::HostId;
use crate::rpc::{GrantEntry, InFlightShare, Rpc, RpcKey, Rpcs, Tables};
use crate::time::{Instant, USEC};
use apus_wire::Waiting;
use backlog::Backlog;
use candidates::{Candidates, Key};
use doubts::Doubts;
use elsewhere::Elsewhere;
use in_flight::{InFlight, Upto};
use marks::Marks;
use oldest::OldestShare;
use parked::Parked;
use smallvec::SmallVec;
use window::{Terms, Window};

/// Decides about grants.
#[derive(Debug)]
pub(crate) struct Granter {
    candidates: Candidates,
    backlog: Backlog,
    in_flight: InFlight,
    marks: Marks,
    doubts: Doubts,
    oldest: OldestShare,
    window: Window,
    max_active: usize,
    elsewhere: Elsewhere,
    /// Missing bytes of the active messages, published to other transports of the host.
    active_here: SmallVec<[u32; 8]>,
    /// Whether `max_incoming` is computed from the link's rate and the socket's buffer.
    follows_link: bool,
    /// Bytes that the link carries in [`INCOMING_MICROS`].
    link_bytes: u64,
    /// The part of the socket's buffer that granted bytes may fill; unlimited if its size is
    /// unknown.
    buffer_share: u64,
    /// Messages for which data has arrived since the last run.
    touched: Vec<RpcKey>,
    /// Whether anything has changed since the last run.
    dirty: bool,
    /// Active messages that had all they want, with the number of parts that `max_incoming` was
    /// divided into for them: most packets concern one message, and the others need not be checked
    /// (GRANTER-4).
    content: SmallVec<[(RpcKey, usize); 8]>,
    parked: Parked,
    /// The present time, during a run.
    now: Instant,
}

/// Granted bytes may fill the socket's buffer up to one part in this number. Chosen by us: a
/// quarter is for unscheduled bytes (PRIO-12), and the system counts its own structures, too.
const BUFFER_PART: u64 = 2;

/// Messages that are tried at once when one must be assured of its room. Some cannot be: they are
/// short, or lack more than is free.
const ASSURE_TRIES: usize = 16;

/// A GRANT to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) rpc: RpcKey,
    /// The new limit.
    pub(crate) offset: u32,
    pub(crate) level: Level,
}

/// The priority of granted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The rank of the message in SRPT order among the active ones (HM `homa_grant.c`
    /// `homa_grant_priority`).
    Scheduled {
        /// Position in SRPT order, 0 for the shortest.
        rank: usize,
        /// Number of active messages.
        active: usize,
    },
    /// Above the scheduled levels: the oldest message's share (HM `homa_grant.c`
    /// `homa_grant_check_fifo`, docs/networks.md).
    Oldest,
}

/// The outcome of checking an active message.
enum Granted {
    /// It is due no GRANT for now.
    Content,
    /// It is due a GRANT that `max_incoming` has no room for.
    HeldBack,
    /// It is due a GRANT that the receive budget has no room for.
    NoRoom,
    /// Its new limit.
    Upto(u32),
}

impl Granter {
    pub(crate) fn new(config: &Config) -> Self {
        let mut granter = Self {
            candidates: Candidates::default(),
            backlog: Backlog::new(config.max_incoming()),
            in_flight: InFlight::new(config),
            marks: Marks::new(config),
            doubts: Doubts::default(),
            follows_link: config.max_incoming() == 0,
            link_bytes: 0,
            buffer_share: u64::MAX,
            oldest: OldestShare::new(config),
            window: Window::new(config),
            max_active: config.max_overcommit() as usize,
            elsewhere: Elsewhere::default(),
            active_here: SmallVec::new(),
            touched: Vec::new(),
            dirty: false,
            content: SmallVec::new(),
            parked: Parked::default(),
            now: Instant::ZERO,
        };
        granter.set_max_incoming(config.max_incoming());
        granter
    }

    /// The link carries `mbps` Mbit/s.
    pub(crate) fn set_link_rate(&mut self, mbps: u64) {
        self.link_bytes = mbps * INCOMING_MICROS / 8;
        self.follow();
    }

    /// The system holds `bytes` bytes for this endpoint until they are read.
    pub(crate) fn set_receive_buffer(&mut self, bytes: u64) {
        self.buffer_share = bytes / BUFFER_PART;
        self.follow();
    }

    /// GRANT-5: computes `max_incoming` from the link's rate and the socket's buffer.
    fn follow(&mut self) {
        if self.follows_link {
            self.set_max_incoming(self.link_bytes.min(self.buffer_share).max(MIN_INCOMING));
        }
    }

    /// All messages together may be granted `bytes`.
    fn set_max_incoming(&mut self, bytes: u64) {
        self.backlog.set_limit(bytes);
        self.window.set_max_incoming(bytes);
        self.in_flight.set_max_incoming(bytes);
        self.oldest.set_max_incoming(self.in_flight.cap(bytes));
        self.marks.set_most(self.in_flight.cap(bytes));
        self.content.clear();
    }

    /// Reports `bytes` bytes that arrived without a GRANT in `nanos` nanoseconds. With one level,
    /// granted bytes get the rest (GRANT-20).
    pub(crate) fn note_unscheduled(&mut self, bytes: u64, nanos: u64) {
        let carried = (nanos / USEC).saturating_mul(self.link_bytes) / INCOMING_MICROS;
        let free = carried.saturating_sub(bytes) / (carried / 1_000).max(1);
        if self.in_flight.set_free(free) {
            self.set_max_incoming(self.window.max_incoming);
            self.dirty = true;
        }
    }

    /// Handles `bytes` new bytes of `rpc`'s incoming message, or the message's first packet;
    /// `waiting` is the backlog that its sender reports. `progress` is the present time if the
    /// message has made progress.
    pub(crate) fn data_arrived(
        &mut self,
        tables: &mut Tables,
        rpc: RpcKey,
        bytes: u32,
        waiting: Waiting,
        progress: Option<Instant>,
    ) {
        let entry = &mut tables.rpcs[rpc];
        let Some(message) = &entry.incoming else { return };
        if self.in_flight.is_on() {
            let waiting = waiting.bytes();
            entry.grant.at_sender = waiting.map(|bytes| Allowed::at_most(bytes, message.extent()));
        }
        // Whether unscheduled bytes were enough (HM `homa_grant.c` `homa_grant_init_rpc`, GRANT-1).
        let unscheduled = !entry.grant.scheduled && message.granted() == message.extent();
        if unscheduled && entry.grant.at_sender.is_none() {
            return;
        }
        entry.grant.host = tables.peers.host_id(entry.peer);
        if let Some(now) = progress {
            entry.grant.silent = false;
            if self.doubts.trusts_again(entry.grant.host, now) {
                self.set_doubt(entry.grant.host, false);
            }
        }
        if !unscheduled {
            entry.grant.scheduled = true;
            self.oldest.data_arrived(bytes);
        }
        if !entry.grant.touched {
            entry.grant.touched = true;
            self.touched.push(rpc);
        }
    }

    /// Counts the mark of a packet of `rpc`'s incoming message with `bytes` new bytes from `offset`
    /// on, if a GRANT has permitted it (GRANT-18). [`Granter::data_arrived`] follows.
    pub(crate) fn count_mark(
        &mut self,
        rpcs: &Rpcs,
        rpc: RpcKey,
        offset: u32,
        bytes: u32,
        is_marked: bool,
    ) {
        let entry = &rpcs[rpc];
        if entry.incoming.as_ref().is_some_and(|message| offset >= message.unscheduled()) {
            self.dirty |= self.marks.arrived(entry.peer, bytes, is_marked);
        }
    }

    /// The host of a message with this state has not sent what it was granted. What it holds counts
    /// for less until `until` (GRANT-21).
    pub(crate) fn doubt(&mut self, entry: &GrantEntry, until: Instant) {
        if entry.scheduled && self.doubts.doubt(entry.host, until) {
            self.set_doubt(entry.host, true);
        }
    }

    fn set_doubt(&mut self, host: HostId, is_doubtful: bool) {
        self.backlog.doubt(host, is_doubtful);
        self.in_flight.doubt(host, is_doubtful);
        self.dirty = true;
    }

    /// The sender of `rpc`'s incoming message has fallen silent, or the message makes no progress.
    pub(crate) fn silence(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        if !std::mem::replace(&mut rpcs[rpc].grant.silent, true) {
            self.refresh(rpcs, rpc);
        }
    }

    /// The incoming message of `rpc` is complete, or the RPC has been removed (GRANT-11).
    pub(crate) fn forget(&mut self, rpc: RpcKey, entry: &mut Rpc) {
        let GrantEntry { key, host, counted, on_way, in_flight, parked, .. } =
            std::mem::take(&mut entry.grant);
        self.dirty |= self.in_flight.change(host, in_flight, InFlightShare::default());
        self.dirty |= self.marks.change(entry.peer, on_way, Allowed::NONE);
        if parked {
            self.parked.remove(entry.birth, rpc);
        }
        if let Some(missing) = key {
            let key = Key { missing, birth: entry.birth, rpc };
            self.candidates.change(host, entry.peer, Some(key), None);
            self.dirty = true;
        }
        if counted > Allowed::NONE {
            self.backlog.change(host, counted, Allowed::NONE);
            self.dirty = true;
        }
    }

    /// Whether [`Granter::run`] may have GRANTs to give.
    pub(crate) fn is_due(&self) -> bool {
        self.dirty || !self.touched.is_empty() || self.parked.has_more()
    }

    /// Gives the GRANTs that are due, at most one per message, to `send`; the messages' limits are
    /// raised already.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        rpcs: &mut Rpcs,
        room: &mut ReceiveRoom<'_>,
        metrics: &mut Scheduling,
        mut send: impl FnMut(Decision),
    ) {
        metrics.grant_checks += 1;
        self.now = now;
        if room.take_freed() {
            self.parked.retry_all();
        }
        let again: SmallVec<[RpcKey; 16]> = self.parked.take_some().collect();
        for rpc in again {
            self.unpark(rpcs, rpc);
        }
        let mut touched = std::mem::take(&mut self.touched);
        for rpc in &touched {
            if rpcs.get(*rpc).is_some_and(|rpc| rpc.grant.touched) {
                rpcs[*rpc].grant.touched = false;
                self.refresh(rpcs, *rpc);
            }
        }
        self.content.retain(|(rpc, _)| !touched.contains(rpc));
        touched.clear();
        self.touched = touched;
        let mut granted: SmallVec<[RpcKey; 8]> = SmallVec::new();
        // Repeat whenever a message becomes fully granted: its slot passes to the next candidate.
        loop {
            self.dirty = false;
            self.grant_active(rpcs, room, metrics, &mut granted, &mut send);
            if !self.dirty {
                return;
            }
        }
    }

    /// Grants the oldest message's share and then, in SRPT order, all active messages that are not
    /// in `granted` yet.
    fn grant_active(
        &mut self,
        rpcs: &mut Rpcs,
        room: &mut ReceiveRoom<'_>,
        metrics: &mut Scheduling,
        granted: &mut SmallVec<[RpcKey; 8]>,
        send: &mut impl FnMut(Decision),
    ) {
        let (active, together) = self.active();
        self.active_here.clear();
        self.active_here.extend(active.iter().map(|key| key.missing));
        let usual = self.window.terms(together);
        if let Some(decision) = self.grant_oldest(rpcs, room, usual.window, granted, metrics) {
            granted.push(decision.rpc);
            send(decision);
        }
        let shares = self.shares(rpcs, &active, together);
        let mut content: SmallVec<[(RpcKey, usize); 8]> = SmallVec::new();
        let mut without_room: SmallVec<[RpcKey; 8]> = SmallVec::new();
        // Bytes in flight of this message and those before it.
        let mut upto = Upto::default();
        for (rank, (key, among)) in active.iter().zip(shares).enumerate() {
            let GrantEntry { host, in_flight: before, .. } = rpcs[key.rpc].grant;
            upto.add(host, before);
            if granted.contains(&key.rpc) {
                continue;
            }
            if self.content.contains(&(key.rpc, among)) {
                content.push((key.rpc, among));
                continue;
            }
            let terms = self.terms_of(&rpcs[key.rpc], self.window.terms(among));
            match self.grant(rpcs, room, key.rpc, terms, &upto, metrics) {
                Granted::Content => content.push((key.rpc, among)),
                Granted::HeldBack => {}
                Granted::NoRoom => without_room.push(key.rpc),
                Granted::Upto(offset) => {
                    granted.push(key.rpc);
                    let rank = self.elsewhere.rank(rank, key).min(together - 1);
                    let level = Level::Scheduled { rank, active: together };
                    send(Decision { rpc: key.rpc, offset, level });
                    upto.grow(host, before, rpcs[key.rpc].grant.in_flight);
                }
            }
        }
        self.content = content;
        let is_news = !without_room.is_empty() || self.parked.has_more();
        for rpc in without_room {
            self.park(rpcs, rpc);
        }
        if is_news {
            self.assure_one(rpcs, room, metrics);
        }
    }

    /// The active messages in SRPT order, and the number of active messages of the host.
    fn active(&self) -> (SmallVec<[Key; 8]>, usize) {
        let mut active = self.candidates.select(self.max_active);
        let (here, together) = self.elsewhere.narrow(&active, self.max_active);
        if here < active.len() {
            // Again, because each host keeps its first message (GRANT-3).
            active = self.candidates.select(here);
        }
        (active, together)
    }

    /// The number of messages that `max_incoming` is divided among, for each of the `active` ones
    /// (GRANT-4): all `together`, or, if those are fewer, as many as if each host had as many
    /// messages as the one of this message.
    fn shares(&self, rpcs: &Rpcs, active: &[Key], together: usize) -> SmallVec<[usize; 8]> {
        let host = |key: &Key| rpcs[key.rpc].grant.host;
        let mut of_hosts: SmallVec<[(HostId, usize); 8]> = SmallVec::new();
        for key in active {
            match of_hosts.iter_mut().find(|(other, _)| *other == host(key)) {
                Some((_, messages)) => *messages += 1,
                None => of_hosts.push((host(key), 1)),
            }
        }
        let hosts = of_hosts.len() + (together - active.len());
        let share = |key: &Key| {
            let of_host = of_hosts.iter().find(|(other, _)| *other == host(key));
            let parts = of_host.map_or(together + 1, |(_, messages)| (hosts + 1) * messages);
            together.min(parts - 1)
        };
        active.iter().map(share).collect()
    }

    /// `rpc`'s message waits for room in the receive budget.
    fn park(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let entry = &mut rpcs[rpc];
        entry.grant.parked = true;
        self.parked.insert(entry.birth, rpc);
        self.refresh(rpcs, rpc);
    }

    /// Retries `rpc`'s message, which was removed from the parked ones.
    fn unpark(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        rpcs[rpc].grant.parked = false;
        self.refresh(rpcs, rpc);
    }

    /// If messages wait for room, one of them gets all it needs, in turn, unless a message has that
    /// already (GRANTER-5).
    fn assure_one(
        &mut self,
        rpcs: &mut Rpcs,
        room: &mut ReceiveRoom<'_>,
        metrics: &mut Scheduling,
    ) {
        for _ in 0..self.parked.len().min(ASSURE_TRIES) {
            if room.is_one_assured() {
                return;
            }
            let Some(rpc) = self.parked.take_next() else { return };
            let Some(message) = rpcs[rpc].incoming.as_mut() else { continue };
            if room.assure(message) {
                metrics.assured_messages += 1;
                self.unpark(rpcs, rpc);
                return;
            }
            self.park(rpcs, rpc);
        }
    }

    /// Messages that wait for grants.
    pub(crate) fn waiting(&self) -> usize {
        self.candidates.len() + self.parked.len()
    }

    /// `sharers` transports share `max_incoming`, this one included, and the others have granted
    /// `elsewhere` bytes that they have not received (GRANT-14).
    pub(crate) const fn share(&mut self, sharers: u64, elsewhere: u64) {
        self.backlog.share(sharers, elsewhere);
    }

    /// Other transports of the host grant messages that lack `active` bytes, ascending (GRANT-17).
    pub(crate) fn set_active_elsewhere(&mut self, active: &[u32]) {
        self.dirty |= self.elsewhere.set(active);
    }

    /// Returns the bytes that the active messages lack, ascending.
    pub(crate) fn active_here(&self) -> &[u32] {
        &self.active_here
    }

    /// The terms of a message, if messages without a reported backlog have `usual` (GRANT-15).
    ///
    /// Cap the reported backlog at the outstanding bytes; a reordered or forged report could
    /// otherwise block grants forever.
    fn terms_of(&self, entry: &Rpc, usual: Terms) -> Terms {
        let (Some(waiting), Some(message)) = (entry.grant.at_sender, &entry.incoming) else {
            return usual;
        };
        let excess = self.in_flight.excess(waiting.get()).min(message.outstanding());
        let window = self.in_flight.limit().saturating_sub(excess);
        Terms { window, step: self.in_flight.step() }
    }

    fn backlog_room(&self, host: HostId) -> u32 {
        self.backlog.room(host, self.window.longest_step().max(self.in_flight.step()))
    }

    /// Bytes granted and not received.
    pub(crate) const fn backlog(&self) -> u64 {
        self.backlog.bytes()
    }

    /// Bytes granted and not received, as other transports of the host count them.
    pub(crate) const fn published_backlog(&self) -> u64 {
        self.backlog.published()
    }

    /// Raises the limit of an active message, if that is worth a GRANT.
    fn grant(
        &mut self,
        rpcs: &mut Rpcs,
        room: &mut ReceiveRoom<'_>,
        rpc: RpcKey,
        terms: Terms,
        upto: &Upto,
        metrics: &mut Scheduling,
    ) -> Granted {
        let (peer, GrantEntry { host, at_sender, .. }) = (rpcs[rpc].peer, rpcs[rpc].grant);
        let Some(message) = rpcs[rpc].incoming.as_mut() else { return Granted::Content };
        // A step of more than the limit would never fit.
        let step = terms.step.min(self.marks.limit(peer).unwrap_or(u32::MAX));
        let terms = Terms { step, ..terms };
        let Some(wanted) = Window::increase(message, terms) else { return Granted::Content };
        let informed = at_sender.is_some();
        let in_flight = if informed { self.in_flight.room(host, upto) } else { u32::MAX };
        let marked = self.marks.room(peer).unwrap_or(u32::MAX);
        let step = wanted.min(self.backlog_room(host)).min(in_flight).min(marked);
        if step < wanted && !Window::is_worthwhile(message, terms, step) {
            metrics.needy_grants += 1;
            return Granted::HeldBack;
        }
        let base = Window::base(message);
        let fits = step.min(room.beyond(peer, message, base));
        let is_enough = fits == step || Window::is_worthwhile(message, terms, fits);
        if !is_enough || !room.reserve_for_grant(peer, message, base + fits) {
            metrics.memory_held_grants += 1;
            room.is_waited_for(peer, message, base + step);
            return Granted::NoRoom;
        }
        message.grant(base + fits, self.now);
        metrics.granted_bytes += u64::from(fits);
        self.refresh(rpcs, rpc);
        Granted::Upto(base + fits)
    }

    /// The oldest message's share, when one is due.
    fn grant_oldest(
        &mut self,
        rpcs: &mut Rpcs,
        room: &mut ReceiveRoom<'_>,
        window: u32,
        granted: &[RpcKey],
        metrics: &mut Scheduling,
    ) -> Option<Decision> {
        let rpc = self.candidates.oldest().filter(|rpc| !granted.contains(rpc))?;
        let (peer, host) = (rpcs[rpc].peer, rpcs[rpc].grant.host);
        let message = rpcs[rpc].incoming.as_mut()?;
        let marked = self.marks.room(peer).unwrap_or(u32::MAX);
        let step = self.oldest.due(message, window)?.min(self.backlog_room(host)).min(marked);
        let base = Window::base(message);
        let step = step.min(room.beyond(peer, message, base));
        let offset = base + step;
        if step == 0 || !room.reserve_for_grant(peer, message, offset) {
            return None;
        }
        message.grant(offset, self.now);
        self.oldest.granted(step);
        metrics.granted_bytes += u64::from(step);
        metrics.fifo_grant_bytes += u64::from(step);
        self.refresh(rpcs, rpc);
        Some(Decision { rpc, offset, level: Level::Oldest })
    }

    /// Makes candidates and backlog agree with the state of `rpc`'s message (GRANTER-1, GRANTER-2).
    fn refresh(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let entry = &mut rpcs[rpc];
        let Some(message) = &entry.incoming else { return };
        let host = entry.grant.host;
        let live = entry.grant.scheduled && !entry.grant.silent;
        let held = message.held();
        let counted = if live { held } else { Allowed::NONE };
        self.backlog.change(host, entry.grant.counted, counted);
        self.dirty |= counted < entry.grant.counted;
        entry.grant.counted = counted;

        let grantable = live && !entry.grant.parked && message.granted() < message.extent();
        let key = grantable.then(|| message.missing());
        self.dirty |= key.is_some() != entry.grant.key.is_some();
        let share = match entry.grant.at_sender {
            Some(waiting) if !entry.grant.silent => {
                self.in_flight.share(held, waiting, key.is_some())
            }
            _ => InFlightShare::default(),
        };
        self.dirty |= self.in_flight.change(host, entry.grant.in_flight, share);
        entry.grant.in_flight = share;
        let on_way =
            if live { self.marks.on_way(message, entry.grant.at_sender) } else { Allowed::NONE };
        self.dirty |= self.marks.change(entry.peer, entry.grant.on_way, on_way);
        entry.grant.on_way = on_way;
        if key != entry.grant.key {
            let (peer, birth) = (entry.peer, entry.birth);
            let named = |missing| Key { missing, birth, rpc };
            self.candidates.change(host, peer, entry.grant.key.map(named), key.map(named));
            entry.grant.key = key;
        }
    }
}
