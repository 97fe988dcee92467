//! What lies under the core lock, and what one pass of the loop does with it?
//!
//! [`Core`] owns the protocol and the driver's sending half. Each method below is one line of the
//! loop's table of contents in [`super::run`].

use super::alarm::Alarm;
use super::backlog::Backlog;
use super::calls::{Calls, Key, Response};
use super::clock::Clock;
use super::cpu::{Cpu, Part};
use super::handoff::{From, Handoff};
use super::local::{Origin, Path, Underway};
use super::metrics::EngineMetrics;
use super::paths::Paths;
use super::token::ThreadToken;
use super::tracer::{Traced, Tracer};
use super::turn::Turn;
use super::waiter::{Told, Waiter};
use super::wakes::Wakes;
use crate::error::Closed;
use crate::overload::{Budget, Quotas, Work};
use apus_driver::{Arrival, Burst, Ecn, Receive, Report, Transmit, Trouble};
use apus_proto::{
    Address, Durations, Event, Instant, Refusal, RpcError, Sizes, Transport, Unreachable,
};
use apus_trace::clock::ticks;
use apus_trace::{Rpc, recorder};
use bytes::Bytes;
use smallvec::SmallVec;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A request that has arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) origin: Origin,
    pub(crate) from: Address,
    pub(crate) payload: Bytes,
    /// If it is traced.
    pub(crate) rpc: Option<Rpc>,
}

/// A call of the shared kind that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) cookie: u64,
    pub(crate) result: Result<Bytes, RpcError>,
    /// If it is traced.
    pub(crate) rpc: Option<Rpc>,
}

impl Traced for Arrived {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}

impl Traced for Ended {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}

/// Everything that one thread at a time may touch.
pub(crate) struct Core {
    pub(crate) transport: Transport,
    pub(crate) clock: Clock,
    /// What the clock said at the last look.
    pub(super) time: Instant,
    transmit: Box<dyn Transmit>,
    paths: Paths,
    /// Calls whose result is awaited.
    pub(crate) calls: Calls,
    /// Calls and requests that go through memory, if the endpoint has that way.
    pub(crate) local: Option<Underway>,
    pub(crate) requests: Handoff<Arrived>,
    /// How many of those may wait.
    pub(super) backlog: Backlog,
    pub(crate) completions: Handoff<Ended>,
    pub(crate) turn: Turn,
    /// Those who wait for room to send, and how often there has been some.
    room: Vec<Arc<Waiter>>,
    room_changes: u64,
    /// Whether a call was refused because there are too many.
    too_many_calls: bool,
    /// Those who wait until everything has been acknowledged.
    pub(super) draining: Vec<Arc<Waiter>>,
    /// Whether the endpoint was closed before that.
    gave_up: bool,
    pub(crate) wakes: Wakes,
    /// Until when the thread with the turn sleeps in the kernel, while it does.
    pub(crate) sleeping_until: Option<Instant>,
    /// Whether it wakes when the full socket has room; nobody needs to tell it then that it is full.
    pub(super) sleeps_for_room: bool,
    /// Whether that thread must look up, whatever the time.
    pub(crate) look_up: bool,
    /// What wakes the keeper, if there is one.
    pub(super) keeper: Option<Arc<Alarm>>,
    /// If it sleeps until the turn is free: for how long the turn shall be free then.
    pub(super) sleeping_keeper: Option<Duration>,
    /// How often the turn had changed hands when its alarm was set.
    pub(super) free_since: Option<u64>,
    /// The thread that handles packets at the moment.
    pub(crate) producer: ThreadToken,
    /// Number of corks.
    pub(crate) corks: u32,
    /// What the present pass of the loop may still do.
    budget: Budget,
    /// Whether a quota ended the last transmission before everything had left, or the last delivery before
    /// everything was visible.
    more_to_send: bool,
    more_to_deliver: bool,
    /// Messages that were held back since the last transmission, by a cork or because too many requests wait.
    held_back: u32,
    pub(crate) closed: Option<Closed>,
    pub(super) metrics: EngineMetrics,
    pub(crate) tracer: Tracer,
    /// Messages that the application got.
    pub(crate) sizes: Sizes,
    /// How long calls through memory took that were timed.
    pub(crate) local_calls: Durations,
    pub(super) cpu: Arc<Cpu>,
}

/// Messages that are held back at most: half of what one send carries, so that the peer is busy earlier.
const MAX_HELD_BACK: u32 = 32;

impl Core {
    pub(crate) fn new(
        mut transport: Transport,
        transmit: Box<dyn Transmit>,
        clock: Clock,
        quotas: Quotas,
        backlog: Backlog,
        local: Option<Path>,
        mut tracer: Tracer,
    ) -> Self {
        tracer.renew(&mut transport);
        Self {
            paths: Paths::new(transport.config().profile()),
            transport,
            clock,
            time: clock.now(),
            transmit,
            calls: Calls::default(),
            local: local.map(Underway::new),
            requests: Handoff::default(),
            backlog,
            completions: Handoff::default(),
            turn: Turn::default(),
            room: Vec::new(),
            room_changes: 0,
            too_many_calls: false,
            draining: Vec::new(),
            gave_up: false,
            wakes: Wakes::default(),
            sleeping_until: None,
            sleeps_for_room: false,
            look_up: false,
            keeper: None,
            sleeping_keeper: None,
            free_since: None,
            producer: ThreadToken::current(),
            corks: 0,
            budget: Budget::new(quotas),
            more_to_send: false,
            more_to_deliver: false,
            held_back: 0,
            closed: None,
            metrics: EngineMetrics::default(),
            tracer,
            sizes: Sizes::default(),
            local_calls: Durations::default(),
            cpu: Arc::default(),
        }
    }

    /// Looks at the clock: once per pass of the loop, as a look costs as much as a fifth of what a
    /// packet does.
    pub(crate) fn look_at_clock(&mut self) {
        self.time = self.clock.now();
    }

    /// The time of a command. Commands that a cork holds back have the time of the first one, or of the last look
    /// at the clock.
    pub(crate) fn command_time(&mut self) -> Instant {
        if self.held_back == 0 || self.corks == 0 {
            self.look_at_clock();
        }
        self.time
    }

    /// A pass of the loop begins, with so many packets.
    pub(super) fn begin_pass(&mut self, arrived: usize) {
        self.look_at_clock();
        self.producer = ThreadToken::current();
        self.tracer.renew(&mut self.transport);
        self.budget.begin();
        self.spend(Work::Receive, arrived);
    }

    /// So much of the present pass's quota was used.
    fn spend(&mut self, work: Work, amount: usize) {
        let before = self.budget.exhausted(work);
        self.budget.spend(work, amount);
        if self.budget.exhausted(work) > before {
            recorder::record(apus_trace::Event::QuotaHit, work as u32, 0);
        }
    }

    /// The same, with nothing but what came through memory: the clock can wait.
    pub(super) fn begin_local_pass(&mut self) {
        self.producer = ThreadToken::current();
    }

    /// Such a pass ends.
    pub(super) fn end_local_pass(&mut self) {
        self.backlog.pass(self.requests.len(), true, self.time);
    }

    /// Hands the packets of the last receive to the protocol.
    pub(crate) fn handle_packets(&mut self, receive: &mut dyn Receive) {
        let now = self.time;
        let began = self.cpu.begin(Part::Protocol);
        self.backlog.look(now);
        let Self { transport, paths, metrics, backlog, requests, tracer, .. } = self;
        transport.set_request_room(backlog.room(requests.len(), now));
        metrics.receive_batches += 1;
        receive.drain(&mut |arrival: Arrival<'_>| {
            metrics.packets_arrived += 1;
            metrics.congestion_marks += u64::from(arrival.ecn == Ecn::CongestionExperienced);
            if let Some(local) = arrival.to {
                paths.note(arrival.from, local);
            }
            transport.handle_packet(now, arrival.from, arrival.packet);
            tracer.fetch(transport);
        });
        self.cpu.end(Part::Protocol, began);
    }

    /// Tells the protocol what the network says about packets sent earlier.
    pub(crate) fn handle_report(&mut self, report: &Report<'_>) {
        self.look_at_clock();
        let now = self.time;
        self.metrics.reports += 1;
        let trouble = match report.trouble {
            Trouble::PortClosed => Unreachable::PortClosed,
            Trouble::ProtocolUnreachable => Unreachable::Protocol,
            Trouble::HostUnreachable => Unreachable::Host,
            Trouble::NotPermitted => Unreachable::NotPermitted,
            Trouble::TooBig => return self.renew_packet_limit(report.peer),
            // A trouble that a later driver may know.
            _ => return,
        };
        if self.transport.may_be_ours(report.peer, report.packet) {
            self.transport.handle_unreachable(now, report.peer, trouble);
        }
    }

    /// Does what has become due.
    pub(crate) fn handle_timers(&mut self) {
        let now = self.time;
        let is_due =
            |transport: &Transport| transport.next_timeout().is_some_and(|(at, _)| at <= now);
        if is_due(&self.transport) {
            // The protocol has a quota of its own: what is left over is still due.
            self.transport.handle_timeout(now);
            self.tracer.fetch(&mut self.transport);
            if is_due(&self.transport) {
                self.spend(Work::Timers, usize::MAX);
            }
        }
        self.handle_local_timers();
    }

    /// Sends what may leave. If the driver is broken, the endpoint is closed.
    pub(crate) fn transmit(&mut self) {
        self.transmit_within(usize::MAX);
    }

    /// The same, but not much more than the pass may; what is left waits for the next one.
    pub(super) fn transmit_in_pass(&mut self) {
        self.transmit_within(self.budget.left(Work::Transmit));
        if self.more_to_send {
            self.spend(Work::Transmit, usize::MAX);
        }
    }

    /// The same with so many bytes of payload.
    fn transmit_within(&mut self, quota: usize) {
        self.held_back = 0;
        let began = self.cpu.begin(Part::Send);
        let sent = self.try_transmit(quota);
        self.cpu.end(Part::Send, began);
        if let Err(error) = sent {
            self.close(Closed::Driver(error.into()));
        }
    }

    /// Sends what was held back.
    pub(crate) fn transmit_held_back(&mut self) {
        self.flush_local();
        if self.held_back > 0 {
            self.look_at_clock();
            self.transmit();
        }
    }

    fn try_transmit(&mut self, mut quota: usize) -> io::Result<()> {
        let now = self.time;
        if self.tracer.take_tells_peers() {
            self.transport.freeze_peers(now);
        }
        let (mut began, mut packets) = (0, 0);
        if !self.transmit.has_room() {
            self.transmit.flush()?;
        }
        self.more_to_send = false;
        while self.transmit.has_room() {
            if quota == 0 {
                self.more_to_send = true;
                break;
            }
            let Some(transmit) = self.transport.poll_transmit(now) else { break };
            quota = quota.saturating_sub(transmit.payload_len());
            if packets == 0 {
                began = recorder::stamp();
            }
            packets += transmit.packets();
            let mut payload = SmallVec::<[&[u8]; 4]>::new();
            payload.extend(transmit.payload());
            self.transmit.send(&Burst {
                to: transmit.to(),
                from: self.paths.local(transmit.to()),
                traffic_class: transmit.traffic_class(),
                headers: transmit.headers(),
                header_len: transmit.header_len(),
                payload: &payload,
                segment: transmit.segment(),
            })?;
            drop(payload);
            self.tracer.fetch(&mut self.transport);
        }
        self.tracer.fetch(&mut self.transport);
        self.flush(began, packets)
    }

    /// Gives to the kernel what the driver holds back, and records when: `began` is when the driver got the first of so
    /// many packets, 0 if nothing is recorded. What it has sent on the way, for lack of room, is said to have left now.
    fn flush(&mut self, began: u64, packets: usize) -> io::Result<()> {
        if self.tracer.has_leaving() {
            self.tracer.left(recorder::stamp());
        }
        if self.transmit.has_pending() {
            self.transmit.flush()?;
        }
        if packets > 0 && began > 0 {
            let now = ticks();
            let took = now.saturating_sub(began);
            recorder::record_at(now, apus_trace::Event::Send, packets as u32, took);
        }
        Ok(())
    }

    /// Puts what the protocol has to say where it is waited for. Messages become visible here; who
    /// shall take them is decided by [`Core::assign`].
    pub(crate) fn deliver(&mut self) {
        self.deliver_within(usize::MAX);
    }

    /// The same, but no more than the pass may; what is left comes in the next one, before anything else is
    /// received. Then sees whether too many requests wait; `drained` says that no more are in the socket.
    pub(super) fn deliver_in_pass(&mut self, drained: bool) {
        let quota = self.budget.left(Work::Deliveries);
        self.deliver_within(quota);
        if self.more_to_deliver {
            self.spend(Work::Deliveries, quota);
        }
        let stops = self.backlog.stops();
        self.backlog.pass(self.requests.len(), drained, self.time);
        if self.backlog.stops() > stops {
            let waiting = self.requests.len() as u32;
            recorder::record(apus_trace::Event::FeedbackStop, waiting, 0);
        }
    }

    fn deliver_within(&mut self, mut quota: usize) {
        self.more_to_deliver = false;
        while let Some(event) = self.transport.poll_event() {
            match event {
                Event::Request { rpc, from, payload } => {
                    let origin = Origin::Network(rpc);
                    let rpc = self.tracer.delivered(&self.transport, rpc);
                    self.requests.push(Arrived { origin, from, payload, rpc }, self.producer);
                }
                Event::Response { cookie, payload, .. } => self.end_call(cookie, Ok(payload)),
                Event::Failed { cookie, error, .. } => self.end_call(cookie, Err(error)),
                Event::NewPeer(peer) => self.renew_packet_limit(peer),
                Event::Room => self.tell_room(),
                // An event that a later core may know.
                _ => {}
            }
            quota -= 1;
            if quota == 0 {
                self.more_to_deliver = true;
                break;
            }
        }
    }

    /// Whether requests wait and the network has not been looked at for a while; it counts as looked at then.
    pub(super) fn is_look_due(&mut self) -> bool {
        if self.held_back > 0 && self.corks > 0 {
            // The commands that a cork holds back did not look at the clock.
            self.look_at_clock();
        }
        let is_due = self.backlog.is_look_due(self.time);
        if is_due {
            self.backlog.look(self.time);
        }
        is_due
    }

    /// The application has taken a request.
    pub(super) fn request_taken(&mut self) {
        // Receiving had stopped, and goes on.
        self.look_up |= self.backlog.taken(self.requests.len(), self.time);
    }

    /// Tells those who wait that there is something for them, the newest first.
    pub(crate) fn assign(&mut self) {
        self.metrics.handoffs += self.requests.assign(&mut self.wakes);
        self.metrics.handoffs += self.completions.assign(&mut self.wakes);
        if !self.draining.is_empty() && self.is_drained() {
            self.tell_draining();
        }
    }

    /// A call was let go: there is room for another one, and perhaps nothing is left to be acknowledged.
    pub(crate) fn after_cancel(&mut self) {
        self.after_command();
        self.call_ended();
        if self.is_drained() {
            // The thread with the turn may wait for that, and is on no list.
            self.look_up = true;
            self.tell_draining();
        }
    }

    /// Whether everything that was sent has been acknowledged, and not only forgotten.
    pub(super) fn is_drained(&mut self) -> bool {
        if self.transport.unacknowledged_bytes() > 0 || self.gave_up {
            return false;
        }
        let now = self.time;
        let Some(local) = &mut self.local else { return true };
        let drained = local.is_drained();
        if !drained {
            local.look_again(now);
        }
        drained
    }

    fn tell_draining(&mut self) {
        for waiter in self.draining.drain(..) {
            self.wakes.tell(waiter, Told::Ready);
        }
    }

    /// After a command: what it brought about at once, and its packets, unless a cork holds them.
    pub(crate) fn after_command(&mut self) {
        self.deliver();
        if self.corks == 0 { self.transmit() } else { self.hold_back() }
    }

    /// The same after a reply. While too many requests wait for a thread of the application, it leaves at the next
    /// look at the network, together with others (B3).
    pub(crate) fn after_reply(&mut self) {
        if self.turn.is_free() && self.backlog.holds_replies(self.requests.len()) {
            self.metrics.held_replies += 1;
            self.deliver();
            self.hold_back();
        } else {
            self.after_command();
        }
    }

    fn hold_back(&mut self) {
        self.held_back += 1;
        if self.held_back >= MAX_HELD_BACK {
            self.transmit_held_back();
        }
    }

    /// When the loop must come under the lock even if nothing arrives: at the next timer, or at once if
    /// somebody wants it to look up, or if packets wait for room in the socket.
    pub(crate) fn next_due(&self) -> Instant {
        let is_full = self.is_stuck() && !self.sleeps_for_room;
        if self.look_up || self.has_more_to_do() || is_full {
            return Instant::ZERO;
        }
        let network = self.transport.next_timeout().map_or(Instant::NEVER, |(at, _)| at);
        self.local.as_ref().map_or(network, |local| network.min(local.next_due()))
    }

    /// Whether a quota ended the last pass before everything was done.
    pub(super) const fn has_more_to_do(&self) -> bool {
        self.more_to_send || self.more_to_deliver
    }

    /// Whether a quota ended the last delivery: nothing is received before that was made up for.
    pub(super) const fn has_more_to_deliver(&self) -> bool {
        self.more_to_deliver
    }

    /// The thread with the turn passes it on, or lets it go.
    pub(super) fn pass_turn(&mut self) {
        self.finish();
        let passed = self.turn.pass(&mut self.wakes);
        self.metrics.turn_passes += u64::from(passed);
        if !passed && let Some(after) = self.sleeping_keeper.take() {
            self.free_since = Some(self.turn.changes());
            self.wake_keeper(after);
        }
    }

    /// Has the keeper look after that time.
    fn wake_keeper(&self, after: Duration) {
        if let Some(keeper) = &self.keeper {
            keeper.set(after);
        }
    }

    /// Does what the quotas have left over: perhaps nobody goes on with it soon.
    pub(super) fn finish(&mut self) {
        if self.more_to_send {
            self.transmit();
        }
        if self.more_to_deliver {
            self.deliver();
            self.assign();
        }
    }

    /// Whether the socket is full.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.transmit.has_room()
    }

    /// How often there has been room to send after a command was refused for lack of it.
    pub(crate) const fn room_changes(&self) -> u64 {
        self.room_changes
    }

    /// Somebody waits for room to send.
    pub(crate) fn enlist_for_room(&mut self, waiter: Arc<Waiter>) {
        self.room.push(waiter);
    }

    /// It does not wait any more.
    pub(crate) fn delist_for_room(&mut self, waiter: &Arc<Waiter>) {
        self.room.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// There is room to send: all who wait for it try again.
    pub(crate) fn tell_room(&mut self) {
        self.room_changes += 1;
        // The thread with the turn may wait for room, and is on no list.
        self.look_up = true;
        for waiter in self.room.drain(..) {
            self.wakes.tell(waiter, Told::Ready);
        }
    }

    /// A call was refused because there are too many, those included whose end nobody has received; tell
    /// when there is room.
    pub(crate) const fn want_fewer_calls(&mut self) {
        self.too_many_calls = true;
    }

    /// A call is over: its end was received, or nobody wants it any more.
    pub(crate) fn call_ended(&mut self) {
        if std::mem::take(&mut self.too_many_calls) {
            self.tell_room();
        }
    }

    /// Why the endpoint does not work any more.
    pub(crate) fn closed_error(&self) -> Closed {
        self.closed.clone().unwrap_or(Closed::ShutDown)
    }

    /// Freezes the traces of peers and our own; how many peers were asked.
    pub(crate) fn freeze_peers(&mut self) -> usize {
        self.look_at_clock();
        let count = self.transport.freeze_peers(self.time);
        self.transmit();
        recorder::freeze(recorder::FreezeReason::Demand);
        count
    }

    /// Whether the next call through memory is timed: when it begins, and for how many calls it counts. A clock for each
    /// of them would be a tenth of what they take.
    pub(super) fn time_local_call(&self) -> Option<(std::time::Instant, u64)> {
        /// One in so many.
        const EVERY: u64 = 64;
        let earlier = self.metrics.local_calls;
        let times = if earlier == 0 { 1 } else { EVERY };
        earlier.is_multiple_of(EVERY).then(|| (std::time::Instant::now(), times))
    }

    /// The engine's counters.
    pub(crate) fn engine_metrics(&self) -> EngineMetrics {
        EngineMetrics {
            quota_exhaustions: Work::ALL.map(|work| self.budget.exhausted(work)).iter().sum(),
            feedback_stops: self.backlog.stops(),
            receive_nanos: self.cpu.nanos(Part::Receive),
            protocol_nanos: self.cpu.nanos(Part::Protocol),
            send_nanos: self.cpu.nanos(Part::Send),
            poll_nanos: self.cpu.nanos(Part::Poll),
            ..self.metrics
        }
    }

    /// Ends everything, for the reason given. What waits is told so.
    pub(crate) fn close(&mut self, why: Closed) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(why);
        // A reply that was accepted leaves: the protocol forgets those that have not.
        self.transmit_held_back();
        self.look_at_clock();
        self.gave_up = !self.is_drained();
        self.transport.shut_down(self.time);
        self.deliver();
        let requests: Vec<Arrived> = self.requests.drain().collect();
        for request in requests {
            self.transport.taken(request.payload.len());
            if let Origin::Local(pair, id) = request.origin {
                self.abandon_locally(&pair, id, Refusal::ShuttingDown);
            }
        }
        self.close_locally();
        // The refusals leave, if the driver still can.
        let _ = self.try_transmit(usize::MAX);
        self.requests.dismiss(&mut self.wakes);
        self.completions.dismiss(&mut self.wakes);
        self.tell_room();
        self.tell_draining();
        // Whoever lets the turn go from now on does not put the alarm off.
        self.sleeping_keeper = None;
        self.wake_keeper(Duration::ZERO);
    }

    /// A call has ended: whoever awaits it is told.
    pub(super) fn end_call(&mut self, cookie: u64, result: Result<Bytes, RpcError>) {
        let by = self.producer;
        let key = Key::from_cookie(cookie);
        let rpc = self.calls.rpc(key);
        let result = From { message: Response { result, rpc }, by };
        if let Some(ended) = self.calls.end(key, result, &mut self.wakes, &mut self.metrics) {
            self.completions.push(ended, by);
        }
    }

    /// Asks the driver how long packets to `peer` may be.
    fn renew_packet_limit(&mut self, peer: Address) {
        let limit = self.transmit.packet_limit(peer);
        self.transport.set_packet_limit(peer, limit);
    }
}
