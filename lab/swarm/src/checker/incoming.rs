//! Incoming checker: granted bytes in flight stay within `max_incoming`.
//!
//! GRANT-5: a GRANT, the oldest message's share included, never raises the sum of granted and not
//! received bytes above `max_incoming`, in which each host but the one of the message may count with
//! at most half of it (GRANT-21: if it is doubtful, which is not checked). GRANT-7: each GRANT raises its message's limit. The
//! checker's sum is never greater than the core's: a message counts from its first GRANT. After a
//! RESEND, or a resend interval without progress (GRANT-10), it does not count until it is granted
//! again. A message that announces more than the unscheduled window does not count at all. After its possible end it does
//! not count: a server may also discard a request without RESENDs for it, if RESENDs for other
//! requests of its client have failed (TIME-4). Its later packets then start a new request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use apus_wire::{Body, Role};
use foldhash::fast::FixedState;

use super::contract::Checker;
use super::ranges::Ranges;
use super::session::session;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::scenario::{Processors, max_unscheduled};
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// Incoming messages of all calls, and the granted bytes of each host.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Request and response of each call.
    messages: Vec<[Message; 2]>,
    hosts: Vec<HostState>,
    /// The hosts of the senders of the request and of the response of each call.
    senders: Vec<[HostId; 2]>,
    /// A server may discard a client's requests after this silence, in nanoseconds.
    timeout: u64,
    /// A message may hold no grants after this time without progress, in nanoseconds.
    stalls_after: u64,
    /// The unscheduled window.
    window: u64,
}

/// New bytes that are progress (CAP-8).
const PROGRESS: u32 = 1_000;

/// Granted bytes of a host.
#[derive(Debug, Default)]
struct HostState {
    /// Most bytes that may be granted and not received.
    limit: u64,
    /// Bytes granted and not received, by the host of the sender.
    in_flight: BTreeMap<HostId, u64>,
    /// Requests that count.
    requests: BTreeSet<CallId>,
    /// Last session of each client.
    sessions: HashMap<HostId, u64, FixedState>,
}

/// A message, as its receiver may see it.
#[derive(Clone, Debug, Default)]
struct Message {
    received: Ranges,
    granted: u32,
    /// Whether it counts.
    counts: bool,
    /// Whether it has ended; later packets about it are ignored.
    ended: bool,
    /// Time of its sender's last packet about it.
    heard: Nanos,
    /// When it last made progress, and the bytes received then.
    progress: (Nanos, u32),
    /// Whether its sender has announced more than it may.
    overstated: bool,
}

impl HostState {
    fn new(directory: &Directory, host: HostId) -> Self {
        Self { limit: max_incoming(directory, host), ..Self::default() }
    }

    /// Bytes granted and not received.
    fn sum(&self) -> u64 {
        self.in_flight.values().sum()
    }

    /// The part that counts for a GRANT to a sender on `host` (GRANT-21).
    fn sum_for(&self, host: HostId) -> u64 {
        let counts = |(other, bytes): (&HostId, &u64)| {
            if *other == host { *bytes } else { (*bytes).min(self.limit / 2) }
        };
        self.in_flight.iter().map(counts).sum()
    }
}

/// Returns the limit of granted and not received bytes of a host (GRANT-5), computed from
/// configuration, link rate and socket as `docs/spec/grants.md` defines it.
fn max_incoming(directory: &Directory, host: HostId) -> u64 {
    let scenario = &directory.scenario;
    let config = &scenario.config;
    if config.max_incoming() > 0 {
        return config.max_incoming();
    }
    let known =
        if scenario.has_link_rate { scenario.fabric.topology.host_rate.mbps() } else { 25_000 };
    let mbps = if config.link_mbps() > 0 { config.link_mbps() } else { known };
    let of_link = mbps * 128 / 8;
    let buffer = match (&scenario.processors, &scenario.sharing) {
        (Some(Processors { processor, .. }), _) => Some(processor.socket_buffer),
        (None, sharing) => sharing.as_ref().map(|sharing| sharing.receive_buffer),
    };
    let knows_socket = directory.states_room(host) && !scenario.kernel_hosts.contains(&host);
    let of_socket = buffer.filter(|_| knows_socket).map_or(u64::MAX, |bytes| bytes / 2);
    of_link.min(of_socket).max(40_000)
}

impl Message {
    const fn outstanding(&self) -> u64 {
        if !self.counts || self.overstated {
            return 0;
        }
        self.granted.saturating_sub(self.received.bytes()) as u64
    }
}

impl Incoming {
    pub(crate) fn new(directory: &Directory) -> Self {
        let scenario = &directory.scenario;
        Self {
            messages: vec![Default::default(); scenario.calls.len()],
            hosts: (0..directory.ends.count())
                .map(|host| HostState::new(directory, host))
                .collect(),
            senders: scenario
                .calls
                .iter()
                .map(|call| [call.from, call.to].map(|end| directory.ends.host_of(end)))
                .collect(),
            timeout: scenario.config.timeout_usecs() * MICROSECOND,
            stalls_after: scenario.config.resend_usecs() * MICROSECOND,
            window: max_unscheduled(&scenario.config),
        }
    }

    /// Changes a message and updates the sum.
    fn change(
        &mut self,
        host: HostId,
        call: CallId,
        sender: Role,
        change: impl FnOnce(&mut Message),
    ) {
        let message = &mut self.messages[call as usize][sender as usize];
        let before = (message.outstanding(), message.counts);
        change(message);
        let host = &mut self.hosts[host as usize];
        let peer = self.senders[call as usize][sender as usize];
        let in_flight = host.in_flight.entry(peer).or_default();
        *in_flight = *in_flight + message.outstanding() - before.0;
        if sender == Role::Client && message.counts != before.1 {
            if message.counts {
                host.requests.insert(call);
            } else {
                host.requests.remove(&call);
            }
        }
    }

    fn end(&mut self, host: HostId, call: CallId, sender: Role) {
        self.change(host, call, sender, |message| {
            message.ended = true;
            message.counts = false;
        });
    }

    fn granted(
        &mut self,
        directory: &Directory,
        host: HostId,
        call: CallId,
        wire: &WirePacket<'_>,
        offset: u32,
        at: Nanos,
    ) -> Result<(), Violation> {
        let sender = wire.sender.peer();
        let planned = directory.call(call);
        let length = if sender == Role::Client { planned.request } else { planned.response };
        let message = &self.messages[call as usize][sender as usize];
        if message.ended {
            return Ok(());
        }
        let before = message.granted;
        let raises = !message.counts || offset.min(length) > before;
        Violation::unless(raises, ViolationKind::Incoming, call, || {
            (
                format!(
                    "a GRANT that permits the {sender:?} of call {call} more than {before} bytes"
                ),
                format!("one up to {offset}"),
            )
        })?;
        // Requests of a session that the client has left are released gradually, and may be granted
        // until then.
        let last = self.hosts[host as usize].sessions.get(&wire.peer).copied();
        let current = last.zip(session(wire.packet)).is_none_or(|(last, named)| last == named);
        self.change(host, call, sender, |message| {
            message.granted = offset.min(length);
            message.counts = sender == Role::Server || current;
        });
        let limit = self.hosts[host as usize].limit;
        let peer = directory.ends.host_of(wire.peer);
        if self.hosts[host as usize].sum_for(peer) > limit {
            self.forget_silent(host, at);
            self.forget_stalled(directory, host, at);
        }
        let sum = self.hosts[host as usize].sum_for(peer);
        Violation::unless(sum <= limit, ViolationKind::Incoming, call, || {
            (
                format!("at most {limit} bytes granted and not received at host {host}"),
                format!("{sum}, after a GRANT up to {offset} for call {call}"),
            )
        })?;
        self.check_neighbours(directory, host, call, at)
    }

    /// Ends that publish their state share the limit, but each may use its part, and at least a
    /// step, whatever the others have granted (GRANT-14). Since the ends together were last within
    /// the limit, an end that has granted more must be within its part.
    fn check_neighbours(
        &self,
        directory: &Directory,
        host: HostId,
        call: CallId,
        at: Nanos,
    ) -> Result<(), Violation> {
        let scenario = &directory.scenario;
        // A processor that lags behind may at any time request the bytes that its socket dropped,
        // and stop counting them.
        if !scenario.has_neighbours() || scenario.processors.is_some() {
            return Ok(());
        }
        let limit = self.hosts[host as usize].limit;
        let ends = u64::from(directory.ends.of_each_host());
        let step = scenario.config.grant_increment().min(limit.div_ceil(2));
        let most = limit + (ends - 1) * (limit / ends).max(step);
        // GRANT-21: one sender at each end may have half as much again.
        let most = most + most / 2;
        let sum = self.sum_on(directory, host);
        let silent = if sum > most { self.silent_on(directory, host, at) } else { 0 };
        Violation::unless(sum - silent <= most, ViolationKind::Incoming, call, || {
            let host = directory.ends.host_of(host);
            (
                format!("at most {most} bytes granted and not received at all ends of host {host}"),
                format!("{}", sum - silent),
            )
        })
    }

    /// Returns the bytes granted and not received at all ends on the host of `end`.
    fn sum_on(&self, directory: &Directory, end: HostId) -> u64 {
        let ends = directory.ends.on(directory.ends.host_of(end));
        ends.map(|end| self.hosts[end as usize].sum()).sum()
    }

    /// Returns the part of these bytes whose senders have been silent long enough that the end may
    /// have stopped counting them, although its RESEND is still queued for the link.
    fn silent_on(&self, directory: &Directory, end: HostId, at: Nanos) -> u64 {
        let host = directory.ends.host_of(end);
        let config = &directory.scenario.config;
        let least = config.resend_usecs().min(config.resend_interval_usecs()) * MICROSECOND;
        let silent = |(call, messages): (usize, &[Message; 2])| {
            let planned = directory.call(call as CallId);
            let of = |receiver, message: &Message| {
                let is_here = directory.ends.host_of(receiver) == host;
                let is_silent = at.saturating_sub(message.heard) >= least
                    || at.saturating_sub(message.progress.0) >= self.stalls_after;
                if is_here && is_silent { message.outstanding() } else { 0 }
            };
            of(planned.to, &messages[Role::Client as usize])
                + of(planned.from, &messages[Role::Server as usize])
        };
        self.messages.iter().enumerate().map(silent).sum()
    }

    /// Requests whose clients were silent about them for the timeout may have been discarded.
    fn forget_silent(&mut self, host: HostId, at: Nanos) {
        let is_silent = |call: &CallId| {
            let request = &self.messages[*call as usize][Role::Client as usize];
            at.saturating_sub(request.heard) >= self.timeout
        };
        for call in
            self.hosts[host as usize].requests.iter().copied().filter(is_silent).collect::<Vec<_>>()
        {
            self.change(host, call, Role::Client, |message| message.counts = false);
        }
    }

    /// Messages without progress for a resend interval may hold no grants.
    fn forget_stalled(&mut self, directory: &Directory, host: HostId, at: Nanos) {
        for (call, ends) in directory.scenario.calls.iter().enumerate() {
            for (sender, receiver) in [(Role::Client, ends.to), (Role::Server, ends.from)] {
                let message = &self.messages[call][sender as usize];
                let is_stalled = at.saturating_sub(message.progress.0) >= self.stalls_after;
                if receiver == host && message.outstanding() > 0 && is_stalled {
                    self.change(host, call as CallId, sender, |message| message.counts = false);
                }
            }
        }
    }

    /// A server may have discarded the request during the silence before this packet, which then
    /// starts it again: it is granted from the start.
    fn client_heard(&mut self, host: HostId, call: CallId, at: Nanos) {
        let heard = &mut self.messages[call as usize][Role::Client as usize].heard;
        let silent = at.saturating_sub(std::mem::replace(heard, at));
        if silent >= self.timeout {
            self.change(host, call, Role::Client, |message| message.counts = false);
        }
    }

    fn sent(
        &mut self,
        directory: &Directory,
        host: HostId,
        wire: &WirePacket<'_>,
        at: Nanos,
    ) -> Result<(), Violation> {
        let Some(call) = wire.call else { return Ok(()) };
        match &wire.packet.body {
            Body::Grant(grant) => self.granted(directory, host, call, wire, grant.offset, at)?,
            // The sender may be silent, and may have lost its state of the message; or this host
            // has no such state.
            Body::Resend(_) | Body::RpcUnknown => {
                self.change(host, call, wire.sender.peer(), |message| message.counts = false);
            }
            _ => {}
        }
        Ok(())
    }

    fn received(&mut self, directory: &Directory, host: HostId, wire: &WirePacket<'_>, at: Nanos) {
        if wire.sender == Role::Client {
            self.update_session(directory, host, wire);
        }
        let server_of = |id| directory.find(wire.peer, host, id);
        match &wire.packet.body {
            Body::Data(data, payload) => {
                if let Some(call) = wire.call {
                    let end = data.offset + payload.len() as u32;
                    let is_more = u64::from(data.incoming) > self.window;
                    self.change(host, call, wire.sender, |message| {
                        // If the message counts, its announcement has been accepted before.
                        message.overstated |= is_more && !message.counts;
                        message.received.insert(data.offset, end);
                        let received = message.received.bytes();
                        if received >= message.progress.1 + PROGRESS || message.progress.0 == 0 {
                            message.progress = (at, received);
                        }
                    });
                }
                if let Some(call) = data.ack.and_then(|ack| server_of(ack.client_id)) {
                    self.end(host, call, Role::Client);
                }
            }
            // The client has finished these calls.
            Body::Ack(list) => {
                let others = list.iter().filter_map(|ack| server_of(ack.client_id));
                for call in others.chain(wire.call).collect::<Vec<_>>() {
                    self.end(host, call, Role::Client);
                }
            }
            Body::RpcUnknown => {
                if let Some(call) = wire.call.filter(|_| wire.sender == Role::Client) {
                    self.end(host, call, Role::Client);
                }
            }
            _ => {}
        }
    }

    /// A server releases the requests of a client's earlier session when the client shows another
    /// session.
    fn update_session(&mut self, directory: &Directory, host: HostId, wire: &WirePacket<'_>) {
        let Some(session) = session(wire.packet) else { return };
        let HostState { sessions, requests, .. } = &mut self.hosts[host as usize];
        if sessions.insert(wire.peer, session) == Some(session) {
            return;
        }
        let of_client = |call: &CallId| directory.call(*call).from == wire.peer;
        for call in requests.iter().copied().filter(of_client).collect::<Vec<_>>() {
            self.change(host, call, Role::Client, |message| message.counts = false);
        }
    }

    /// Packets to a crashed host are void, and other hosts may release its requests.
    fn host_crashed(&mut self, directory: &Directory, dead: HostId) {
        for call in 0..self.messages.len() as CallId {
            let planned = directory.call(call);
            if planned.from == dead {
                self.end(planned.from, call, Role::Server);
                self.end(planned.to, call, Role::Client);
            } else if planned.to == dead {
                // The next incarnation may receive it from the start.
                self.change(dead, call, Role::Client, |message| *message = Message::default());
            }
        }
    }
}

impl Checker for Incoming {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        let host = observation.host;
        match &observation.event {
            HostEvent::Sent(wire) => self.sent(directory, host, wire, observation.at)?,
            HostEvent::Received(wire) => {
                match (wire.call, wire.sender) {
                    (Some(call), Role::Client) => self.client_heard(host, call, observation.at),
                    (Some(call), Role::Server) => {
                        self.messages[call as usize][Role::Server as usize].heard = observation.at;
                    }
                    (None, _) => {}
                }
                self.received(directory, host, wire, observation.at);
            }
            HostEvent::Requested(Some(call), _) => self.end(host, *call, Role::Client),
            HostEvent::Responded(call, _)
            | HostEvent::Failed(call, _)
            | HostEvent::Cancelled(call) => {
                self.end(host, *call, Role::Server);
            }
            HostEvent::Crashed => self.host_crashed(directory, host),
            _ => {}
        }
        Ok(())
    }
}
