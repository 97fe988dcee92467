//! The core: all groups of state, and the contexts that handlers borrow.

use crate::engine::clock::Clock;
use crate::engine::cpu::{Cpu, CpuPart};
use crate::engine::handoff::{ByKind, WakeList};
use crate::engine::paths::local::{LocalContext, LocalState, Path};
use crate::engine::state::{
    Backlog, CallTimeout, Calls, ClientWatches, CorkState, Delivery, DrainWaiters, Inbox, Network,
    Observation, PassQuota, Polling, RoomWaiters, Time,
};
use crate::engine::tracer::Tracer;
use crate::error::Closed;
use crate::overload::Quotas;
use apus_driver::TransmitHalf;
use apus_hostgroup::HostPlace;
use apus_local::Credentials;
use apus_observe::{EngineMetrics, SizeHistogram};
use apus_proto::{DurationHistogram, Exemplars, Instant, Transport};
use std::sync::Arc;

/// Everything that one thread at a time may touch.
pub(crate) struct Core {
    pub(super) network: Network,
    /// The place among the transports of the host group, if the endpoint belongs to one.
    pub(super) host: Option<HostPlace>,
    /// Calls whose completion has not been received.
    pub(super) calls: Calls,
    /// Calls and requests through shared memory, if the endpoint has that path.
    pub(super) local: Option<LocalState>,
    pub(super) inbox: Inbox,
    pub(super) room: RoomWaiters,
    pub(super) drain: DrainWaiters,
    pub(super) polling: Polling,
    pub(super) cork: CorkState,
    pub(super) quota: PassQuota,
    pub(super) call_timeout: CallTimeout,
    pub(super) wakes: WakeList,
    pub(super) time: Time,
    pub(super) observation: Observation,
    /// Clients of requests that the application has, if it watches them.
    pub(super) watches: ClientWatches,
    /// Kinds of messages that other shards are asked to steal although the surplus has not grown.
    pub(super) passed_on: ByKind<bool>,
    /// `None` while the endpoint is open.
    pub(super) closed: Option<Closed>,
    /// Whether the other shards of the endpoint must be closed, too.
    pub(super) spreads_close: bool,
}

/// Components of a core.
pub(crate) struct CoreParts {
    pub(crate) transport: Transport,
    pub(crate) transmit: Box<dyn TransmitHalf>,
    pub(crate) host: Option<HostPlace>,
    pub(crate) clock: Clock,
    pub(crate) quotas: Quotas,
    pub(crate) backlog: Backlog,
    pub(crate) call_timeout: CallTimeout,
    pub(crate) local: Option<Path>,
    pub(crate) tracer: Tracer,
    pub(in crate::engine) cpu: Arc<Cpu>,
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Self {
        let CoreParts {
            transport,
            transmit,
            host,
            clock,
            quotas,
            backlog,
            call_timeout,
            local,
            tracer,
            cpu,
        } = parts;
        let mut network = Network::new(transport, transmit);
        let mut observation = Observation::new(tracer, cpu);
        network.renew_probe_filter(&mut observation.tracer);
        Self {
            network,
            host,
            calls: Calls::default(),
            local: local.map(LocalState::new),
            inbox: Inbox::new(backlog),
            room: RoomWaiters::default(),
            drain: DrainWaiters::default(),
            polling: Polling::default(),
            cork: CorkState::default(),
            quota: PassQuota::new(quotas),
            call_timeout,
            wakes: WakeList::default(),
            time: Time::new(clock),
            observation,
            watches: ClientWatches::default(),
            passed_on: ByKind::default(),
            closed: None,
            spreads_close: false,
        }
    }

    /// Lends the groups that a delivery may change.
    pub(super) const fn delivery(&mut self) -> Delivery<'_> {
        let Self { network, calls, inbox, room, polling, wakes, observation, watches, .. } = self;
        Delivery { network, calls, inbox, room, polling, wakes, observation, watches }
    }

    /// Lends the groups that a handler of shared memory may change; `None` if the endpoint does not
    /// have that path.
    pub(super) fn local_context(&mut self) -> Option<LocalContext<'_>> {
        let is_corked = self.cork.is_corked();
        let Self {
            network,
            calls,
            local,
            inbox,
            room,
            polling,
            wakes,
            time,
            observation,
            watches,
            ..
        } = self;
        let local = local.as_mut()?;
        let delivery =
            Delivery { network, calls, inbox, room, polling, wakes, observation, watches };
        Some(LocalContext { local, delivery, time, is_corked })
    }

    /// Returns the credentials of the client of a pair; `None` if the pair has ended.
    pub(crate) fn credentials(&mut self, pair: u64) -> Option<Credentials> {
        self.local.as_mut()?.credentials(pair)
    }

    /// Returns whether the endpoint is closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns why the endpoint is closed.
    pub(crate) fn closed_error(&self) -> Closed {
        self.closed.clone().unwrap_or(Closed::ShutDown)
    }

    /// Checks that the endpoint is open.
    ///
    /// # Errors
    ///
    /// The reason of the closure.
    pub(super) fn check_open(&self) -> Result<(), Closed> {
        match &self.closed {
            None => Ok(()),
            Some(closed) => Err(closed.clone()),
        }
    }

    /// Returns the protocol, to be read.
    pub(crate) const fn transport(&self) -> &Transport {
        self.network.transport()
    }

    /// Returns the poll role and its state, shared by the loop and the waiting threads.
    pub(in crate::engine) const fn polling(&mut self) -> &mut Polling {
        &mut self.polling
    }

    /// Returns the engine's counters, to be written.
    pub(in crate::engine) const fn counters(&mut self) -> &mut EngineMetrics {
        &mut self.observation.counters
    }

    /// Returns until when receiving is stopped because too many requests wait, if it is.
    pub(in crate::engine) const fn stopped_until(&self) -> Option<Instant> {
        self.inbox.stopped_until()
    }

    /// Returns the number of calls whose completion the application has not received.
    pub(crate) fn open_calls(&self) -> u64 {
        (self.calls.len() + self.inbox.waiting_completions()) as u64
    }

    /// Returns the number of requests that the application has not received.
    pub(crate) fn waiting_requests(&self) -> usize {
        self.inbox.waiting_requests()
    }

    /// Returns the number of completions that the application has not received, except for calls
    /// whose caller waits.
    pub(crate) fn waiting_completions(&self) -> usize {
        self.inbox.waiting_completions()
    }

    /// Returns the engine's counters.
    pub(crate) fn engine_metrics(&self) -> EngineMetrics {
        let cpu = self.observation.cpu();
        let mut metrics = self.observation.counters;
        metrics.quota_exhaustions = self.quota.exhaustions();
        metrics.feedback_stops = self.inbox.stops();
        metrics.receive_nanos = cpu.nanos(CpuPart::Receive);
        metrics.protocol_nanos = cpu.nanos(CpuPart::Protocol);
        metrics.send_nanos = cpu.nanos(CpuPart::Send);
        metrics.poll_nanos = cpu.nanos(CpuPart::Poll);
        metrics
    }

    /// Returns the lengths of the messages that the application received.
    pub(crate) const fn message_sizes(&self) -> SizeHistogram {
        self.observation.message_sizes()
    }

    /// Returns the durations of the timed calls through shared memory.
    pub(crate) const fn local_calls(&self) -> DurationHistogram {
        self.observation.local_calls()
    }

    /// Returns the traced ones among the timed calls through shared memory: the latest in each
    /// bucket.
    pub(crate) const fn local_exemplars(&self) -> Exemplars {
        self.observation.local_exemplars()
    }
}
