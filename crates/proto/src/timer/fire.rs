//! What happens when a timer fires?

use crate::config::Config;
use crate::error::FailureKind;
use crate::limits::{MAX_NEED_ACK_INTERVAL, MAX_QUESTIONS, QUEUED_BYTES};
use crate::rpc::{RpcKey, ServerState, Side};
use crate::time::{Instant, USEC};
use crate::transport::{Ending, Transport};
use apus_wire::{Body, Profile};

/// Why the core wants to be called at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeoutReason {
    /// RPCs must end.
    Reap,
    /// A call's deadline passes.
    Deadline,
    /// A peer may have been silent for too long.
    Silence,
    /// The network interface will have room: call `poll_transmit`.
    Pacer,
    /// Idle peers are looked for.
    Peers,
}

/// RPCs whose silence one call of `handle_timeout` looks at (the kernel yields after ten, row T-1).
const LOOKS_PER_CALL: usize = 256;

/// RESENDs without an answer before an RPC is aborted, whatever the clock says: a process that was
/// stopped for a second must not blame its peers.
const MIN_ASKS: u32 = 3;

/// However long round-trip times seem to be, so many times this long is `timeout_usecs`: the questions fit in.
const TIMES_PATIENT: u64 = MIN_ASKS as u64 + 1;

/// Nanoseconds of silence that are normal whatever the round-trip time, where the configuration says so many
/// microseconds: at least as long as the link is busy with what may stand before a packet.
fn least_patience(config: &Config, link_mbps: u64, usecs: u64) -> u64 {
    let queueing = QUEUED_BYTES * 8_000 / link_mbps;
    (usecs * USEC).max(queueing.min(most_patience(config)))
}

/// Nanoseconds of silence that are not normal, however long round-trip times seem to be.
fn most_patience(config: &Config) -> u64 {
    config.timeout_usecs() * USEC / TIMES_PATIENT
}

/// Nanoseconds between two looks at an RPC that waits: two in the shortest silence that is not normal, so that
/// a RESEND comes at most half of it late.
pub(crate) fn look_period(config: &Config, link_mbps: u64) -> u64 {
    least_patience(config, link_mbps, config.resend_usecs()) / 2
}

impl Transport {
    /// When [`Transport::handle_timeout`] (or, for [`TimeoutReason::Pacer`], `poll_transmit`) should be
    /// called next, and why. An instant in the past means now. `None`: nothing is going on.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        let mut next = (self.peers.next_scan(), TimeoutReason::Peers);
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && at <= next.0
            {
                next = (at, reason);
            }
        };
        consider(self.silence.next(&self.rpcs), TimeoutReason::Silence);
        consider(self.deadlines.next(), TimeoutReason::Deadline);
        consider(self.throttled_until(), TimeoutReason::Pacer);
        consider(self.reaper.is_due().then_some(Instant::ZERO), TimeoutReason::Reap);
        (next.0 < Instant::NEVER).then_some(next)
    }

    /// Does what has become due. Bounded work: call it again while `next_timeout` lies in the past.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        for _ in 0..LOOKS_PER_CALL {
            let Some(rpc) = self.deadlines.expired(now) else { break };
            self.fail_and_disown(rpc, FailureKind::DeadlineExceeded);
        }
        for _ in 0..LOOKS_PER_CALL {
            let Some(rpc) = self.silence.due(&self.rpcs, now) else { break };
            self.silence.watch(&mut self.rpcs, rpc, now);
            self.look_at(rpc);
        }
        self.reap();
        if self.peers.scan(now) {
            self.buffers.scan();
        }
    }

    /// See [`least_patience`].
    pub(crate) fn least_patience(&self, usecs: u64) -> u64 {
        least_patience(&self.config, self.link_mbps, usecs)
    }

    /// Looks at an RPC whose peer should be talking.
    fn look_at(&mut self, rpc: RpcKey) {
        let now = self.now();
        if !self.waits_for_peer(rpc) {
            self.rpcs[rpc].hear(now);
            return;
        }
        match &self.rpcs[rpc].side {
            Side::Client(_) => self.look_at_receiver(rpc, now),
            Side::Server(server) => match server.state {
                ServerState::Incoming if !server.confirmed => self.look_at_held(rpc, now),
                ServerState::Incoming => self.look_at_receiver(rpc, now),
                ServerState::Outgoing => self.look_at_response(rpc, now),
                ServerState::InService => debug_assert!(false, "T-2: not watched in service"),
            },
        }
    }

    /// We wait for DATA: ask for it, and give up in the end (rows T-3, T-4; TIME-3, TIME-4).
    fn look_at_receiver(&mut self, rpc: RpcKey, now: Instant) {
        let (floor, interval) = (self.config.resend_usecs(), self.config.resend_interval_usecs());
        let (floor, interval) = (self.least_patience(floor), self.least_patience(interval));
        let entry = &self.rpcs[rpc];
        let peer = &mut self.peers[entry.peer];
        let silent = now.since(entry.heard);
        if silent >= self.config.timeout_usecs() * USEC && entry.asks >= MIN_ASKS {
            self.give_up(rpc, silent);
            return;
        }
        let most = most_patience(&self.config);
        let patience = peer.rtt.patience(floor, most);
        let interval = peer.rtt.patience(interval, most);
        let asked_lately = entry.asks > 0 && now.since(entry.asked) < interval;
        if silent < patience || asked_lately || !peer.resends.may_ask(now, interval) {
            return;
        }
        self.request_missing(rpc);
        self.granter.silence(&mut self.rpcs, rpc);
    }

    /// The peer has been silent for `silent` nanoseconds although it was asked.
    fn give_up(&mut self, rpc: RpcKey, silent: u64) {
        self.metrics.recovery.rpc_timeouts += 1;
        let entry = &self.rpcs[rpc];
        match &entry.side {
            Side::Client(_) => {
                let silent_ms = u32::try_from(silent / 1_000_000).unwrap_or(u32::MAX);
                let resends = entry.asks;
                // Whoever answers there next may be another one.
                let peer = entry.peer;
                self.peers[peer].calls.session = None;
                if self.identity.profile == Profile::Kernel {
                    // It would wait for grants for ever, should it come back.
                    self.disown(rpc);
                }
                self.fail_client(rpc, FailureKind::PeerSilent { silent_ms, resends });
            }
            // BAD-6: part of a request: it was not executed, and may come again.
            Side::Server(_) => self.end_server(rpc, Ending::GivenUp),
        }
    }

    /// A request waits for its client's confirmation: ask again a few times, at growing distances
    /// (requirement `BAD-5`).
    fn look_at_held(&mut self, rpc: RpcKey, now: Instant) {
        let entry = &self.rpcs[rpc];
        if now.since(entry.started) >= self.config.timeout_usecs() * USEC {
            self.end_server(rpc, Ending::GivenUp);
            return;
        }
        let interval = self.least_patience(self.config.resend_interval_usecs());
        let wait = interval << entry.asks.saturating_sub(1).min(16);
        if entry.asks < MAX_QUESTIONS && now.since(entry.asked) >= wait {
            self.ask_for_confirmation(rpc);
        }
    }

    /// A response waits for its acknowledgment (row P-17, TIME-9), or for GRANTs of a client that may have
    /// gone: ask it, less and less often, and forget the response in the end (row K-3).
    fn look_at_response(&mut self, rpc: RpcKey, now: Instant) {
        let entry = &self.rpcs[rpc];
        let Some(message) = &entry.outgoing else { return };
        let since = message.last_sent.max(entry.heard);
        let limit = u32::try_from(self.config.need_ack_limit()).unwrap_or(u32::MAX);
        if entry.asks >= limit && now.since(since) >= self.config.timeout_usecs() * USEC {
            self.metrics.recovery.need_acks_exhausted += 1;
            self.end_server(rpc, Ending::Discarded);
            return;
        }
        let first = self.least_patience(self.config.need_ack_usecs());
        let most = most_patience(&self.config);
        let patience = self.peers[entry.peer].rtt.patience(first, most);
        let wait = patience.saturating_mul(1 << entry.asks.min(16)).min(MAX_NEED_ACK_INTERVAL);
        let last = if entry.asks == 0 { since } else { entry.asked };
        if now.since(last) >= wait {
            self.rpcs[rpc].ask(now);
            self.send_control(rpc, Body::NeedAck);
        }
    }
}
