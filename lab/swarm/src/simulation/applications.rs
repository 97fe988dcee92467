//! Applications of a host: they make calls, take time to serve requests, cancel calls and abandon
//! requests.
//!
//! Their actions and events are passed to the [`Observer`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use apus_proto::CommandError;
use apus_wire::Role;
use bytes::Bytes;

use super::agenda::{Agenda, Task};
use super::stack::{CallRequest, RpcHandle, Stack, StackEvent};
use crate::attack::Attack;
use crate::call::ServerAction;
use crate::observation::{CallId, HostEvent};
use crate::observer::Observer;
use crate::payload::payload;
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// Length of the response to a hostile host in bytes: about the length of its request. With an
/// application that answers a few bytes with many, any client could fill the link.
const HOSTILE_RESPONSE: usize = 100;

/// The cookie of calls to the hostile host. Planned calls have smaller numbers.
const BAIT: u64 = u64::MAX;

/// The applications of a host.
pub(super) struct Applications {
    host: HostId,
    observer: Rc<RefCell<Observer>>,
    agenda: Agenda,
    /// Calls and replies that the transport has no room for.
    calls: VecDeque<CallId>,
    replies: VecDeque<(RpcHandle, CallId)>,
    /// The attack of another host, if any: it may be among their clients and their servers.
    attack: Option<Attack>,
}

impl Applications {
    pub(super) fn new(host: HostId, observer: Rc<RefCell<Observer>>) -> Self {
        let (attack, baits) = {
            let scenario = &observer.borrow().directory.scenario;
            let own = |(_, caller): &&(Nanos, HostId)| *caller == host;
            let baits: Vec<Nanos> = scenario.baits.iter().filter(own).map(|(at, _)| *at).collect();
            (scenario.attack, baits)
        };
        let mut agenda = Agenda::default();
        for at in baits {
            agenda.put(at, Task::Bait);
        }
        Self { host, observer, agenda, calls: VecDeque::new(), replies: VecDeque::new(), attack }
    }

    /// Makes a call, after the calls that wait for room.
    pub(super) fn submit(&mut self, now: Nanos, stack: &mut Stack, call: CallId) {
        if !self.calls.is_empty() || !self.call(now, stack, call) {
            self.observe(now, HostEvent::Waiting(call));
            self.calls.push_back(call);
        }
    }

    /// Handles an event of the transport.
    pub(super) fn hear(&mut self, now: Nanos, stack: &mut Stack, event: StackEvent) {
        match event {
            StackEvent::Request { rpc, from, id, payload } => {
                self.serve(now, stack, rpc, (from, id), &payload);
            }
            // The hostile host may answer with anything, or not at all.
            StackEvent::Response { cookie: BAIT, payload } => stack.payload_consumed(payload.len()),
            StackEvent::Failed { cookie: BAIT, .. } => {}
            StackEvent::Response { cookie, payload } => {
                stack.payload_consumed(payload.len());
                self.observe(now, HostEvent::Responded(cookie as CallId, &payload));
            }
            StackEvent::Failed { cookie, error } => {
                self.observe(now, HostEvent::Failed(cookie as CallId, error));
            }
            StackEvent::Room => self.retry(now, stack),
            StackEvent::NewPeer(_) | StackEvent::Nothing => {}
        }
    }

    /// Returns when the next task is due.
    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.agenda.next()
    }

    /// Performs the tasks that are due.
    pub(super) fn handle_timeout(&mut self, now: Nanos, stack: &mut Stack) {
        while let Some(task) = self.agenda.take(now) {
            self.perform(now, stack, task);
        }
    }

    /// Schedules the cancellation of all calls.
    pub(super) fn cancel_all(&mut self, now: Nanos, stack: &Stack) {
        for (rpc, server, id) in stack.open_calls() {
            if let Some(call) = self.observer.borrow().directory.find(self.host, server, id) {
                self.agenda.put(now, Task::Cancel { rpc, call });
            }
        }
        for call in std::mem::take(&mut self.calls) {
            self.observe(now, HostEvent::Cancelled(call));
        }
    }

    /// Discards all state: the host has crashed.
    pub(super) fn forget(&mut self) {
        self.calls.clear();
        self.replies.clear();
        self.agenda = Agenda::default();
    }

    fn observe(&self, now: Nanos, event: HostEvent<'_>) {
        self.observer.borrow_mut().observe(now, self.host, event);
    }

    /// Records that a valid command was rejected.
    fn record_rejection(&self, call: CallId, error: &CommandError) {
        self.observer.borrow_mut().record(Err(Violation {
            kind: ViolationKind::Liveness,
            calls: vec![call],
            expected: format!("host {} accepts the command of call {call}", self.host),
            observed: error.to_string(),
        }));
    }

    /// Makes a call; returns `false` for lack of room.
    fn call(&mut self, now: Nanos, stack: &mut Stack, call: CallId) -> bool {
        let (planned, content) = {
            let directory = &self.observer.borrow().directory;
            (*directory.call(call), directory.content(call))
        };
        let request = CallRequest {
            to: planned.to,
            payload: payload(content, Role::Client, planned.request as usize),
            cookie: u64::from(call),
            deadline: planned.deadline,
            idempotent: planned.idempotent,
        };
        match stack.call(now, request) {
            Ok((rpc, id)) => {
                if let Some(id) = id {
                    self.observer.borrow_mut().directory.register(call, id);
                }
                self.observe(now, HostEvent::Called(call));
                if let Some(after) = planned.cancel {
                    self.agenda.put(now + after, Task::Cancel { rpc, call });
                }
                true
            }
            Err(error) if error.is_back_pressure() => false,
            Err(error) => {
                self.record_rejection(call, &error);
                true
            }
        }
    }

    /// Passes a request to the application.
    fn serve(
        &mut self,
        now: Nanos,
        stack: &mut Stack,
        rpc: RpcHandle,
        (from, id): (HostId, Option<u64>),
        request: &Bytes,
    ) {
        let (call, late, service, is_honest) = {
            let directory = &self.observer.borrow().directory;
            let is_honest = directory.scenario.is_honest(from);
            let call = id.and_then(|id| directory.find(from, self.host, id));
            let service = call.map_or(0, |call| directory.call(call).service);
            (call, directory.scenario.consumes_late, service, is_honest)
        };
        // A request from a hostile host's real address is not a planned call.
        let event =
            if is_honest { HostEvent::Requested(call, request) } else { HostEvent::Served(from) };
        self.observe(now, event);
        let taken = late.then_some(request.len());
        if taken.is_none() {
            stack.payload_consumed(request.len());
        }
        let task = Task::ServerAction { rpc, call, taken };
        if service == 0 {
            self.perform(now, stack, task);
        } else {
            self.agenda.put(now + service, task);
        }
    }

    /// Performs a scheduled task of the application.
    fn perform(&mut self, now: Nanos, stack: &mut Stack, task: Task) {
        match task {
            Task::ServerAction { rpc, call, taken } => {
                if let Some(bytes) = taken {
                    stack.payload_consumed(bytes);
                }
                let answer = call.map(|call| self.observer.borrow().directory.call(call).answer);
                match (call, answer) {
                    (Some(call), Some(ServerAction::Reply)) => self.reply(now, stack, rpc, call),
                    // The request of the hostile host. It never acknowledges the response.
                    (None, _) if self.attack.is_some() => {
                        drop(stack.reply(now, rpc, Bytes::from_static(&[b'!'; HOSTILE_RESPONSE])));
                    }
                    _ => self.abandon(now, stack, rpc, call),
                }
            }
            Task::Bait => self.bait(now, stack),
            Task::Cancel { rpc, call } => {
                // It may have ended already.
                if stack.cancel(now, rpc) {
                    self.observe(now, HostEvent::Cancelled(call));
                }
            }
        }
    }

    /// Calls the hostile host. The call ends with the attack at the latest.
    fn bait(&self, now: Nanos, stack: &mut Stack) {
        let Some(attack) = self.attack else { return };
        let request = CallRequest {
            to: attack.host,
            payload: Bytes::from_static(&[b'?'; HOSTILE_RESPONSE]),
            cookie: BAIT,
            deadline: Some(attack.until.saturating_sub(now).max(MICROSECOND)),
            idempotent: false,
        };
        // Without room there is one call less.
        drop(stack.call(now, request));
    }

    fn reply(&mut self, now: Nanos, stack: &mut Stack, rpc: RpcHandle, call: CallId) {
        if !self.replies.is_empty() || !self.try_reply(now, stack, rpc, call) {
            self.replies.push_back((rpc, call));
        }
    }

    /// Replies; returns `false` for lack of room.
    fn try_reply(&mut self, now: Nanos, stack: &mut Stack, rpc: RpcHandle, call: CallId) -> bool {
        let (length, content) = {
            let directory = &self.observer.borrow().directory;
            (directory.call(call).response, directory.content(call))
        };
        let payload = payload(content, Role::Server, length as usize);
        match stack.reply(now, rpc, payload) {
            Ok(()) => self.observe(now, HostEvent::Replied(call)),
            Err(error) if error.is_back_pressure() => return false,
            // The client is gone, or has cancelled the call.
            Err(CommandError::UnknownRpc) => {}
            Err(error) => self.record_rejection(call, &error),
        }
        true
    }

    fn abandon(&mut self, now: Nanos, stack: &mut Stack, rpc: RpcHandle, call: Option<CallId>) {
        match (stack.abandon(now, rpc), call) {
            (Some(true), Some(call)) => self.observe(now, HostEvent::Abandoned(call)),
            // The module cannot abandon a request.
            (None, Some(call)) => self.reply(now, stack, rpc, call),
            // A corrupted packet caused the request; its response is irrelevant.
            (None, None) => drop(stack.reply(now, rpc, Bytes::from_static(b"?"))),
            (Some(_), _) => {}
        }
    }

    /// Repeats the commands that were refused for lack of room.
    fn retry(&mut self, now: Nanos, stack: &mut Stack) {
        while let Some((rpc, call)) = self.replies.pop_front() {
            if !self.try_reply(now, stack, rpc, call) {
                self.replies.push_front((rpc, call));
                break;
            }
        }
        while let Some(call) = self.calls.pop_front() {
            if !self.call(now, stack, call) {
                self.calls.push_front(call);
                break;
            }
        }
    }
}
