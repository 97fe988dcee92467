//! The tracer's state, and the records that are not probe events.

use crate::engine::clock::Clock;
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

/// Turns probe events into records. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Tracer {
    endpoint: SocketAddr,
    pub(super) triggers: FreezeTriggers,
    /// The rule that selects traced RPCs, as the protocol has it ([`recorder::threshold`]).
    below: u64,
    /// The indexes of peers in the process's table.
    indexes: HashMap<SocketAddr, PeerIndex>,
    /// The peer whose index was used last.
    last: Option<(SocketAddr, PeerIndex)>,
    /// When the current batch of packets was received, in ticks.
    pub(super) received_at: u64,
    /// Number of packets in the current batch.
    pub(super) packets: u32,
    /// The RPC of the last recorded receipt in the current batch.
    pub(super) from_kernel: Option<Rpc>,
    /// Pieces of traced messages that the driver has and may hold back: number of packets, and
    /// offset of the first byte.
    pub(super) unsent: SmallVec<[(Rpc, u32, u32); 8]>,
    /// Traced requests that are complete and not delivered yet, in the order of their delivery.
    pub(super) complete: VecDeque<(RpcKey, Rpc)>,
    /// Whether the trace was frozen and peers must be asked to freeze theirs.
    freezes_peers: bool,
}

/// A call through shared memory, traced or not, that freezes the trace if it is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowWatch {
    since: Instant,
    rpc: Rpc,
}

static DROP_REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| DropReason::ALL.iter().map(|reason| reason.name()).collect());

/// Names of the failures of calls, by [`fail_number`].
static FAIL_REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| ["other"].into_iter().chain(FailureKind::NAMES).collect());

/// Number of peers whose indexes an endpoint keeps. Chosen by us: twice the size of the process's
/// table.
const MAX_INDEXES: usize = 131_072;

impl Tracer {
    pub(crate) fn new(endpoint: SocketAddr, triggers: FreezeTriggers) -> Self {
        recorder::name_values("drop_reason", &DROP_REASONS);
        recorder::name_values("fail_reason", &FAIL_REASONS);
        Self {
            endpoint,
            triggers,
            below: 0,
            indexes: HashMap::new(),
            last: None,
            received_at: 0,
            packets: 0,
            from_kernel: None,
            unsent: SmallVec::new(),
            complete: VecDeque::new(),
            freezes_peers: false,
        }
    }

    /// Has the protocol report the probe events that are recorded now, if that has changed.
    #[inline]
    pub(crate) fn renew(&mut self, transport: &mut Transport) {
        let below = recorder::threshold();
        if below != self.below {
            self.below = below;
            let slow = self.triggers.slow.unwrap_or(std::time::Duration::MAX);
            let filter = ProbeFilter { multiplier: recorder::MULTIPLIER, below, slow };
            transport.set_probe_filter((below > 0).then_some(filter));
            self.complete.clear();
        }
    }

    /// Records the receipt of a batch of packets from the kernel, in a system call from `began` to
    /// `ended`, in ticks.
    #[inline]
    pub(crate) fn batch_received(&mut self, began: u64, ended: u64, packets: usize) {
        self.received_at = ended;
        self.packets = packets as u32;
        self.from_kernel = None;
        if began > 0 {
            recorder::record_at(ended, Event::Look, self.packets, ended.saturating_sub(began));
        }
    }

    /// Records the probe events of the protocol.
    #[inline]
    pub(crate) fn fetch(&mut self, transport: &mut Transport) {
        if let Some(first) = transport.poll_probe() {
            self.record_all(first, transport);
        }
    }

    /// Records a request to a peer to freeze its trace.
    pub(crate) fn freeze_requested_of(&mut self, peer: SocketAddr) {
        let peer = self.peer_index(peer);
        recorder::record_peer(peer, Event::FreezeSent, 0, 0);
    }

    /// Records a peer's request to freeze the trace, and freezes it if the endpoint obeys peers.
    pub(crate) fn freeze_requested_by(&mut self, peer: SocketAddr) {
        let peer = self.peer_index(peer);
        recorder::record_peer(peer, Event::FreezeReceived, 0, 0);
        if self.triggers.obey_peers {
            recorder::freeze(FreezeReason::Peer);
        }
    }

    /// Freezes the trace on a retransmission, if a lost packet triggers that.
    pub(super) fn freeze_if_lost(&mut self, retransmitted: bool) {
        self.freeze_if(retransmitted && self.triggers.lost_packet, FreezeReason::LostPacket);
    }

    /// Freezes the trace if `condition` holds, and passes the freeze on to peers if the endpoint is
    /// configured to.
    pub(super) fn freeze_if(&mut self, condition: bool, reason: FreezeReason) {
        if condition && recorder::freeze(reason) {
            self.freezes_peers = self.triggers.freeze_peers;
        }
    }

    /// Returns whether peers must be asked to freeze their traces.
    pub(crate) const fn freezes_peers(&self) -> bool {
        self.freezes_peers
    }

    /// Returns whether peers must be asked to freeze their traces; once.
    #[inline]
    pub(crate) const fn take_freezes_peers(&mut self) -> bool {
        std::mem::replace(&mut self.freezes_peers, false)
    }

    /// Returns whether the driver has pieces of traced messages.
    #[inline]
    pub(crate) fn has_unsent_pieces(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Records that the driver has given its pieces to the kernel, by a call that started at these
    /// ticks.
    pub(crate) fn pieces_sent(&mut self, began: u64) {
        for (rpc, packets, from) in self.unsent.drain(..) {
            recorder::record_rpc_at(began, rpc, Event::ToKernel, packets, from.into());
        }
    }

    /// Returns the RPC of a request that the protocol delivers, if it is traced.
    #[inline]
    pub(crate) fn request_delivered(&mut self, rpc: RpcKey) -> Option<Rpc> {
        let is_traced = self.complete.front().is_some_and(|(next, _)| *next == rpc);
        if is_traced { self.complete.pop_front().map(|(_, rpc)| rpc) } else { None }
    }

    /// Records that all complete requests are delivered. The remaining ones were reported too late.
    #[inline]
    pub(crate) fn all_delivered(&mut self) {
        self.complete.clear();
    }

    /// Records that a call was made. Returns its RPC, if it is traced.
    pub(crate) fn call_made(
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

    /// Records that a call with this cookie was made through shared memory. Returns its RPC, if it
    /// is traced.
    #[inline]
    pub(crate) fn local_call_made(
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

    /// Starts to measure a call with this cookie through shared memory, if a slow call freezes the
    /// trace. Otherwise the clock is not read.
    #[inline]
    pub(crate) fn watch_local_call(
        &mut self,
        cookie: u64,
        to: SocketAddr,
        clock: Clock,
    ) -> Option<SlowWatch> {
        if self.triggers.slow.is_none() || !recorder::is_on() {
            return None;
        }
        let rpc = Rpc::new(cookie << 1, Side::Client, self.peer_index(to));
        Some(SlowWatch { since: clock.now(), rpc })
    }

    /// Freezes the trace if a call through shared memory whose response has arrived was slow.
    pub(crate) fn local_call_ended(&mut self, slow_watch: SlowWatch, now: Instant) {
        let took = (now - slow_watch.since).as_nanos() as u64;
        if took > self.triggers.slow_nanos() {
            recorder::record_rpc(slow_watch.rpc, Event::Slow, 0, took);
            self.freeze_if(true, FreezeReason::SlowRpc);
        }
    }

    /// Records the arrival of a request through shared memory. Returns its RPC, if it is traced.
    #[inline]
    pub(crate) fn local_request_received(
        &mut self,
        id: u64,
        from: SocketAddr,
        length: usize,
    ) -> Option<Rpc> {
        let rpc = self.local(id, Side::Server, from)?;
        recorder::record_rpc(rpc, Event::LocalReceived, 0, length as u64);
        Some(rpc)
    }

    /// Returns an RPC through shared memory, if it is traced. Ids may be odd there, so they are
    /// doubled.
    #[inline]
    fn local(&mut self, id: u64, side: Side, peer: SocketAddr) -> Option<Rpc> {
        let id = id << 1;
        recorder::is_traced(id).then(|| Rpc::new(id, side, self.peer_index(peer)))
    }

    pub(super) fn rpc(&mut self, id: SenderId, peer: SocketAddr) -> Rpc {
        let side = match id.sender() {
            Role::Client => Side::Client,
            Role::Server => Side::Server,
        };
        Rpc::new(id.client_id(), side, self.peer_index(peer))
    }

    /// Returns the index of a peer in the process's table.
    pub(super) fn peer_index(&mut self, peer: SocketAddr) -> PeerIndex {
        if let Some((last, index)) = self.last
            && last == peer
        {
            return index;
        }
        if self.indexes.len() >= MAX_INDEXES {
            self.indexes.clear();
        }
        let index =
            *self.indexes.entry(peer).or_insert_with(|| recorder::peer(self.endpoint, peer));
        self.last = Some((peer, index));
        index
    }
}

/// Returns the number of a reason in traces. 0 is reserved for reasons without a name; there is
/// none now, but the numbers are part of the file format.
pub(super) const fn fail_number(reason: FailureKind) -> u32 {
    1 + reason.index() as u32
}
