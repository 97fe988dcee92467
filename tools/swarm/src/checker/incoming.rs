//! Do granted bytes under way stay within `max_incoming`?
//!
//! GRANT-5: a GRANT, the oldest message's share included, never raises the sum of what is granted and has not
//! come above `max_incoming`; GRANT-7: each GRANT raises its message's limit. What is reckoned here is never
//! more than the core's sum: a message counts from the first GRANT for it, not at all after its bytes were
//! asked for again (GRANT-10) until it is granted once more, and not after it may have ended.

use std::collections::{BTreeSet, HashMap};

use apus_wire::{Body, Role};
use foldhash::fast::FixedState;

use super::Checker;
use super::order::session;
use super::ranges::Ranges;
use crate::directory::Directory;
use crate::scenario::max_incoming;
use crate::seen::{CallId, Seen, What, Wire};
use crate::violation::{Kind, Violation};
use apus_sim::message::HostId;

/// The incoming messages of all calls, and what each host has on its way.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Request and response of each call.
    messages: Vec<[Message; 2]>,
    hosts: Vec<Host>,
    limit: u64,
}

/// What a host has on its way.
#[derive(Debug, Default)]
struct Host {
    /// Granted and not received.
    under_way: u64,
    /// Requests that count.
    requests: BTreeSet<CallId>,
    /// The session that each client has shown last.
    shown: HashMap<HostId, u32, FixedState>,
}

/// A message, as its receiver may know it.
#[derive(Clone, Debug, Default)]
struct Message {
    received: Ranges,
    granted: u32,
    /// Whether it counts.
    counts: bool,
    /// Whether it has ended, so that what is still said about it means nothing.
    ended: bool,
}

impl Message {
    const fn outstanding(&self) -> u64 {
        if self.counts { self.granted.saturating_sub(self.received.bytes()) as u64 } else { 0 }
    }
}

impl Incoming {
    pub(crate) fn new(directory: &Directory) -> Self {
        let scenario = &directory.scenario;
        Self {
            messages: vec![Default::default(); scenario.calls.len()],
            hosts: (0..scenario.hosts()).map(|_| Host::default()).collect(),
            limit: max_incoming(scenario),
        }
    }

    /// Changes a message, and the sum with it.
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
        host.under_way = host.under_way + message.outstanding() - before.0;
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
        wire: &Wire<'_>,
        offset: u32,
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
        Violation::unless(raises, Kind::Incoming, call, || {
            (
                format!(
                    "a GRANT that allows the {sender:?} of call {call} more than {before} bytes"
                ),
                format!("one up to {offset}"),
            )
        })?;
        // A request of a session that its client has left is let go bit by bit, and may be granted until then.
        let shown = self.hosts[host as usize].shown.get(&wire.peer).copied();
        let current = shown.zip(session(wire.packet)).is_none_or(|(shown, named)| shown == named);
        self.change(host, call, sender, |message| {
            message.granted = offset.min(length);
            message.counts = sender == Role::Server || current;
        });
        let (sum, limit) = (self.hosts[host as usize].under_way, self.limit);
        Violation::unless(sum <= limit, Kind::Incoming, call, || {
            (
                format!("at most {limit} bytes granted and not received at host {host}"),
                format!("{sum}, after a GRANT up to {offset} for call {call}"),
            )
        })
    }

    fn sent(
        &mut self,
        directory: &Directory,
        host: HostId,
        wire: &Wire<'_>,
    ) -> Result<(), Violation> {
        let Some(call) = wire.call else { return Ok(()) };
        match &wire.packet.body {
            Body::Grant(grant) => self.granted(directory, host, call, wire, grant.offset)?,
            // Its sender may be silent, and may have lost what it knew of the message.
            Body::Resend(_) => {
                self.change(host, call, wire.sender.peer(), |message| message.counts = false);
            }
            _ => {}
        }
        Ok(())
    }

    fn received(&mut self, directory: &Directory, host: HostId, wire: &Wire<'_>) {
        if wire.sender == Role::Client {
            self.shown(directory, host, wire);
        }
        let server_of = |id| directory.find(wire.peer, host, id);
        match &wire.packet.body {
            Body::Data(data, payload) => {
                if let Some(call) = wire.call {
                    let end = data.offset + payload.len() as u32;
                    self.change(host, call, wire.sender, |message| {
                        message.received.insert(data.offset, end);
                    });
                }
                if let Some(call) = data.ack.and_then(|ack| server_of(ack.client_id)) {
                    self.end(host, call, Role::Client);
                }
            }
            // The client does not want these calls any more.
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

    /// What a server holds of an earlier session of its client is let go when the client shows another one.
    fn shown(&mut self, directory: &Directory, host: HostId, wire: &Wire<'_>) {
        let Some(session) = session(wire.packet) else { return };
        let Host { shown, requests, .. } = &mut self.hosts[host as usize];
        if shown.insert(wire.peer, session) == Some(session) {
            return;
        }
        let of_client = |call: &CallId| directory.call(*call).from == wire.peer;
        for call in requests.iter().copied().filter(of_client).collect::<Vec<_>>() {
            self.change(host, call, Role::Client, |message| message.counts = false);
        }
    }

    /// What a dead host was sent means nothing any more, and its requests may be let go anywhere.
    fn died(&mut self, directory: &Directory, dead: HostId) {
        for call in 0..self.messages.len() as CallId {
            let planned = directory.call(call);
            if planned.from == dead {
                self.end(planned.from, call, Role::Server);
                self.end(planned.to, call, Role::Client);
            } else if planned.to == dead {
                // Its next life may be sent it from the start.
                self.change(dead, call, Role::Client, |message| *message = Message::default());
            }
        }
    }
}

impl Checker for Incoming {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        let host = seen.host;
        match &seen.what {
            What::Sent(wire) => self.sent(directory, host, wire)?,
            What::Received(wire) => self.received(directory, host, wire),
            What::Requested(Some(call), _) => self.end(host, *call, Role::Client),
            What::Responded(call, _) | What::Failed(call, _) | What::Cancelled(call) => {
                self.end(host, *call, Role::Server);
            }
            What::Crashed => self.died(directory, host),
            _ => {}
        }
        Ok(())
    }
}
