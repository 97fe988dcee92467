//! Counters and records of the engine.

use super::message::Taken;
use crate::engine::clock::Clock;
use crate::engine::cpu::Cpu;
use crate::engine::tracer::Tracer;
use apus_observe::{EngineMetrics, SizeHistogram};
use apus_proto::{DurationHistogram, Exemplar, Exemplars};
use apus_trace::{Rpc, recorder};
use std::sync::Arc;

/// How a thread or task waited for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// The message was there.
    None,
    /// The thread polled the network or spun.
    Polled,
    /// The thread or task slept.
    Slept,
}

/// Counters, histograms and the tracer. Every handler may write them; none decides by them, except
/// that one call through shared memory in [64](Observation::time_local_call) is timed.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(in crate::engine) counters: EngineMetrics,
    pub(in crate::engine) tracer: Tracer,
    message_sizes: SizeHistogram,
    local_calls: DurationHistogram,
    local_exemplars: Exemplars,
    cpu: Arc<Cpu>,
}

impl Observation {
    pub(crate) fn new(tracer: Tracer, cpu: Arc<Cpu>) -> Self {
        Self {
            counters: EngineMetrics::default(),
            tracer,
            message_sizes: SizeHistogram::default(),
            local_calls: DurationHistogram::default(),
            local_exemplars: Exemplars::default(),
            cpu,
        }
    }

    /// Counts a message that the application takes.
    pub(crate) fn count_taken(&mut self, taken: Taken, kind: WaitKind) {
        self.counters.messages += 1;
        if let Taken::Message(bytes) = taken {
            self.message_sizes.record(bytes);
        }
        match kind {
            WaitKind::None => self.counters.wait_none += 1,
            WaitKind::Polled => self.counters.wait_polled += 1,
            WaitKind::Slept => self.counters.wait_slept += 1,
        }
    }

    /// Returns the start of the next call through shared memory and the number of calls that it
    /// counts for, if it is timed. Timing every call would cost a tenth of its duration.
    pub(crate) fn time_local_call(&self) -> Option<(std::time::Instant, u64)> {
        /// One call in this number is timed.
        const EVERY: u64 = 64;
        let earlier = self.counters.local_calls;
        let weight = if earlier == 0 { 1 } else { EVERY };
        earlier.is_multiple_of(EVERY).then(|| (std::time::Instant::now(), weight))
    }

    /// Records the duration of a timed call through shared memory, which ends now. If it is traced,
    /// it becomes an exemplar.
    pub(crate) fn record_local_call(
        &mut self,
        (began, weight): (std::time::Instant, u64),
        rpc: Option<Rpc>,
        clock: Clock,
    ) {
        let took = began.elapsed();
        let nanos = took.as_nanos() as u64;
        self.local_calls.record(nanos, weight);
        if let Some(rpc) = rpc
            && let Some(peer) = recorder::peer_at(rpc.peer())
        {
            let (peer, id, at) = (peer.address, rpc.id(), clock.convert(began + took));
            self.local_exemplars.remember(Exemplar { peer, id, nanos, at });
        }
    }

    /// Returns the sampled processor time.
    pub(crate) const fn cpu(&self) -> &Arc<Cpu> {
        &self.cpu
    }

    /// Returns the lengths of the messages that the application received.
    pub(crate) const fn message_sizes(&self) -> SizeHistogram {
        self.message_sizes
    }

    /// Returns the durations of the timed calls through shared memory.
    pub(crate) const fn local_calls(&self) -> DurationHistogram {
        self.local_calls
    }

    /// Returns the traced ones among the timed calls through shared memory: the latest in each
    /// bucket.
    pub(crate) const fn local_exemplars(&self) -> Exemplars {
        self.local_exemplars
    }
}
