//! What does an endpoint record of what happens to its RPCs?
//!
//! The protocol notes what happens ([`apus_proto::probe`]) to RPCs that are traced, and what should be rare of all; the
//! notes are fetched after each call into it, and become records ([`probe_events`]), with the time. What the protocol cannot know is
//! added: when packets came from the kernel and are given to it, who is told of a message, and when the
//! application has it. What a message needs for that on its way travels with it: `Option<Rpc>`, `None` if it is not
//! traced.

mod probe_events;

use super::clock::Clock;
use crate::trace::FreezeTriggers;
use apus_proto::probe::ProbeFilter;
use apus_proto::{DropReason, FailureKind, Instant, Role, RpcKey, SenderId, Transport};
use apus_trace::clock::ticks;
use apus_trace::recorder::{self, FreezeReason};
use apus_trace::{Event, PeerIndex, Rpc, Side};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::LazyLock;

/// What turns notes into records. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Tracer {
    endpoint: SocketAddr,
    triggers: FreezeTriggers,
    /// The rule by which RPCs are traced, as the protocol knows it ([`recorder::below`]).
    below: u64,
    /// Peers and their places in the process's table, and the one that was looked up last.
    places: HashMap<SocketAddr, PeerIndex>,
    last: Option<(SocketAddr, PeerIndex)>,
    /// The batch of packets that is handled: when it came, and how many.
    came: u64,
    packets: u32,
    /// The RPC of that batch that was seen to come from the kernel last.
    from_kernel: Option<Rpc>,
    /// Pieces of traced messages that the driver has, and may hold back: packets, and the place of the first byte.
    leaving: SmallVec<[(Rpc, u32, u32); 8]>,
    /// Traced requests that are complete and were not delivered yet, in the order in which they will be.
    complete: VecDeque<(RpcKey, Rpc)>,
    /// Whether the trace was frozen, and peers shall be asked to freeze theirs.
    freezes_peers: bool,
}

/// A call through memory, traced or not, that freezes the trace if it is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatch {
    since: Instant,
    rpc: Rpc,
}

/// What knows whether it is traced.
pub(crate) trait Traced {
    /// The RPC, if it is.
    fn rpc(&self) -> Option<Rpc>;
}

static DROP_REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| DropReason::ALL.iter().map(|reason| reason.name()).collect());

/// Names of the reasons for which calls fail, by [`probe_events::fail_number`].
static FAIL_REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| ["other"].into_iter().chain(FailureKind::NAMES).collect());

/// Peers that an endpoint remembers the places of. Ours: twice as many as the process's table has.
const MAX_PLACES: usize = 131_072;

impl Tracer {
    pub(crate) fn new(endpoint: SocketAddr, triggers: FreezeTriggers) -> Self {
        recorder::name_values("drop_reason", &DROP_REASONS);
        recorder::name_values("fail_reason", &FAIL_REASONS);
        Self {
            endpoint,
            triggers,
            below: 0,
            places: HashMap::new(),
            last: None,
            came: 0,
            packets: 0,
            from_kernel: None,
            leaving: SmallVec::new(),
            complete: VecDeque::new(),
            freezes_peers: false,
        }
    }

    /// Has the protocol note what is recorded now, if that has changed.
    #[inline]
    pub(crate) fn renew(&mut self, transport: &mut Transport) {
        let below = recorder::below();
        if below != self.below {
            self.below = below;
            let slow = self.triggers.slow.unwrap_or(std::time::Duration::MAX);
            let watch = ProbeFilter { multiplier: recorder::MULTIPLIER, below, slow };
            transport.set_probe_filter((below > 0).then_some(watch));
            self.complete.clear();
        }
    }

    /// A batch of packets has come from the kernel: the system call began and ended at these ticks.
    #[inline]
    pub(crate) fn came(&mut self, began: u64, ended: u64, packets: usize) {
        self.came = ended;
        self.packets = packets as u32;
        self.from_kernel = None;
        if began > 0 {
            recorder::record_at(ended, Event::Look, self.packets, ended.saturating_sub(began));
        }
    }

    /// Records what the protocol has noted.
    #[inline]
    pub(crate) fn fetch(&mut self, transport: &mut Transport) {
        if let Some(first) = transport.poll_probe() {
            self.record_all(first, transport);
        }
    }

    /// A peer is asked to freeze its trace.
    pub(crate) fn asks_to_freeze(&mut self, peer: SocketAddr) {
        let peer = self.place(peer);
        recorder::record_peer(peer, Event::FreezeSent, 0, 0);
    }

    /// A peer has asked for ours.
    pub(crate) fn asked_to_freeze(&mut self, peer: SocketAddr) {
        let peer = self.place(peer);
        recorder::record_peer(peer, Event::FreezeReceived, 0, 0);
        if self.triggers.heed_peers {
            recorder::freeze(FreezeReason::Peer);
        }
    }

    fn lost_if(&mut self, retransmitted: bool) {
        self.freeze_if(retransmitted && self.triggers.lost_packet, FreezeReason::LostPacket);
    }

    fn freeze_if(&mut self, yes: bool, reason: FreezeReason) {
        if yes && recorder::freeze(reason) {
            self.freezes_peers = self.triggers.tell_peers;
        }
    }

    /// Whether peers are to be asked to freeze their traces.
    pub(crate) const fn freezes_peers(&self) -> bool {
        self.freezes_peers
    }

    /// The same, once.
    #[inline]
    pub(crate) const fn take_freezes_peers(&mut self) -> bool {
        std::mem::replace(&mut self.freezes_peers, false)
    }

    /// Whether the driver has pieces of traced messages.
    #[inline]
    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// What the driver had has been given to the kernel, by a call that began at these ticks.
    pub(crate) fn left(&mut self, began: u64) {
        for (rpc, packets, from) in self.leaving.drain(..) {
            recorder::record_rpc_at(began, rpc, Event::ToKernel, packets, from.into());
        }
    }

    /// The RPC behind a request that the protocol delivers, if it is traced.
    #[inline]
    pub(crate) fn delivered(&mut self, rpc: RpcKey) -> Option<Rpc> {
        let is_it = self.complete.front().is_some_and(|(next, _)| *next == rpc);
        if is_it { self.complete.pop_front().map(|(_, rpc)| rpc) } else { None }
    }

    /// All are delivered that were complete. What is left was noted too late, and waits for nothing.
    #[inline]
    pub(crate) fn all_delivered(&mut self) {
        self.complete.clear();
    }

    /// The RPC behind a call that was made just now, if it is traced; what has happened until then is recorded.
    pub(crate) fn called(
        &mut self,
        transport: &Transport,
        rpc: RpcKey,
        called: u64,
        length: usize,
    ) -> Option<Rpc> {
        let (id, peer) = transport.selected(rpc)?;
        let rpc = self.rpc(id, peer);
        recorder::record_rpc_at(called, rpc, Event::Call, 0, length as u64);
        recorder::record_rpc(rpc, Event::Queued, 0, length as u64);
        Some(rpc)
    }

    /// The same of a call with this cookie that went through memory.
    #[inline]
    pub(crate) fn called_locally(
        &mut self,
        cookie: u64,
        to: SocketAddr,
        called: u64,
        length: usize,
    ) -> Option<Rpc> {
        let rpc = self.local(cookie, Side::Client, to)?;
        let called = if called > 0 { called } else { ticks() };
        recorder::record_rpc_at(called, rpc, Event::Call, 0, length as u64);
        recorder::record_rpc(rpc, Event::LocalSent, 0, length as u64);
        Some(rpc)
    }

    /// Watches how long a call with this cookie takes that goes through memory and is made now, if it freezes the trace when
    /// it is slow: otherwise nobody looks at the clock.
    #[inline]
    pub(crate) fn watch_locally(
        &mut self,
        cookie: u64,
        to: SocketAddr,
        clock: Clock,
    ) -> Option<SlowWatch> {
        if self.triggers.slow.is_none() || !recorder::is_on() {
            return None;
        }
        let rpc = Rpc::new(cookie << 1, Side::Client, self.place(to));
        Some(SlowWatch { since: clock.now(), rpc })
    }

    /// The whole response to such a call is here.
    pub(crate) fn ended_locally(&mut self, slow_watch: SlowWatch, now: Instant) {
        let took = (now - slow_watch.since).as_nanos() as u64;
        if took > self.triggers.slow_nanos() {
            recorder::record_rpc(slow_watch.rpc, Event::Slow, 0, took);
            self.freeze_if(true, FreezeReason::SlowRpc);
        }
    }

    /// The RPC behind a request that came through memory, if it is traced.
    #[inline]
    pub(crate) fn came_locally(&mut self, id: u64, from: SocketAddr, length: usize) -> Option<Rpc> {
        let rpc = self.local(id, Side::Server, from)?;
        recorder::record_rpc(rpc, Event::LocalReceived, 0, length as u64);
        Some(rpc)
    }

    /// An RPC through memory, if it is traced. There ids may be odd: they are doubled.
    #[inline]
    fn local(&mut self, id: u64, side: Side, peer: SocketAddr) -> Option<Rpc> {
        let id = id << 1;
        recorder::is_traced(id).then(|| Rpc::new(id, side, self.place(peer)))
    }

    fn rpc(&mut self, id: SenderId, peer: SocketAddr) -> Rpc {
        let side = match id.sender() {
            Role::Client => Side::Client,
            Role::Server => Side::Server,
        };
        Rpc::new(id.client_id(), side, self.place(peer))
    }

    /// The place of a peer in the process's table.
    fn place(&mut self, peer: SocketAddr) -> PeerIndex {
        if let Some((last, place)) = self.last
            && last == peer
        {
            return place;
        }
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        let place = *self.places.entry(peer).or_insert_with(|| recorder::peer(self.endpoint, peer));
        self.last = Some((peer, place));
        place
    }
}

/// A message was put where it is waited for; who was told is named by its waiter's address, 0 stands for nobody.
#[inline]
pub(crate) fn handed_off(rpc: Option<Rpc>, waiter: u64) {
    if let Some(rpc) = rpc {
        recorder::record_rpc(rpc, Event::HandedOff, 0, waiter);
    }
}

/// Whoever turns the loop takes a message itself.
#[inline]
pub(crate) fn taken(rpc: Option<Rpc>) {
    if let Some(rpc) = rpc {
        let now = ticks();
        recorder::record_rpc_at(now, rpc, Event::HandedOff, 0, 0);
        recorder::record_rpc_at(now, rpc, Event::Woken, 0, 0);
    }
}

/// Whoever shall have a message runs, since that time.
#[inline]
pub(crate) fn woken(rpc: Option<Rpc>, waiter: u64, at: u64) {
    if let Some(rpc) = rpc {
        let at = if at > 0 { at } else { ticks() };
        recorder::record_rpc_at(at, rpc, Event::Woken, 0, waiter);
    }
}

/// A stage of a message of that length.
#[inline]
pub(crate) fn stage(rpc: Option<Rpc>, event: Event, length: usize) {
    if let Some(rpc) = rpc {
        recorder::record_rpc(rpc, event, 0, length as u64);
    }
}
