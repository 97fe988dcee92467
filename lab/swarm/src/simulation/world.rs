//! World: a scenario on its fabric, with the clock, the calls and the hosts, for the phases.

use std::cell::RefCell;
use std::rc::Rc;

use super::host::{ObservedHost, SimulatedHost};
use super::probes::Probes;
use super::stack::Stack;
use crate::call::PlannedCall;
use crate::ends::Ends;
use crate::observation::CallId;
use crate::observer::Observer;
use crate::scenario::Scenario;
use apus_sim::fabric::Fabric;
use apus_sim::message::{HostId, Message};
use apus_sim::network::Network;
use apus_workload::time::{MILLISECOND, Nanos};

/// Faults end early after this number of packets. Chosen by us: ten times the average of a run.
pub(super) const MAX_FAULTY_PACKETS: u64 = 1_000_000;

/// A scenario on its fabric.
pub(super) struct World<H: SimulatedHost> {
    pub(super) scenario: Scenario,
    pub(super) fabric: Fabric<H>,
    pub(super) observer: Rc<RefCell<Observer>>,
    /// Ends of hosts that are up at the end.
    pub(super) surviving: Vec<HostId>,
    pub(super) ends: Ends,
    pub(super) probes: Probes,
    /// Number of restarts of single processes so far.
    pub(super) restarted: usize,
    /// Maximum number of packets of a wait, in addition to the packets that modules cause by
    /// RESENDs.
    pub(super) max_packets: u64,
}

impl<H: SimulatedHost> World<H> {
    /// Returns the protocol of an end.
    pub(super) fn stack(&self, end: HostId) -> &Stack {
        self.fabric.host(self.ends.host_of(end)).observed(end).stack()
    }

    /// Runs `something` on an end.
    pub(super) fn attend(&mut self, end: HostId, something: impl FnOnce(&mut ObservedHost)) {
        self.fabric.attend(self.ends.host_of(end), |host| host.attend(end, something));
    }

    /// Restarts an end.
    pub(super) fn restart(&mut self, end: HostId) {
        let now = self.fabric.now();
        self.fabric.attend(self.ends.host_of(end), |host| host.restart(end, now));
    }

    pub(super) fn submit(&mut self, number: CallId) {
        let PlannedCall { from, to, request, .. } = self.scenario.calls[number as usize];
        let (from, to) = (self.ends.host_of(from), self.ends.host_of(to));
        let at = self.fabric.now();
        self.fabric.submit(&Message { number, from, to, bytes: request, at });
    }

    /// Returns the surviving ends that run the Linux module, or those that run apus.
    pub(super) fn survivors(&self, run_module: bool) -> Vec<HostId> {
        let modules = &self.scenario.kernel_hosts;
        let is_wanted = |host: &HostId| modules.contains(host) == run_module;
        self.surviving.iter().copied().filter(is_wanted).collect()
    }

    /// Returns the number of calls that have been submitted and have not ended.
    pub(super) fn open(&self) -> usize {
        let waiting: usize = self.fabric.hosts().map(H::waiting_calls).sum();
        self.observer.borrow().liveness.open() as usize + waiting
    }

    pub(super) fn is_over(&self) -> bool {
        self.observer.borrow().is_over()
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        self.fabric.heal();
        if let Some(host) = &mut self.observer.borrow_mut().on_path {
            host.leave();
        }
    }

    pub(super) fn advance_to(&mut self, until: Nanos) {
        if !self.is_over() {
            let until = until.max(self.fabric.now());
            self.fabric.advance(until, &mut |_, _| {});
        }
    }

    /// Advances with faults, and performs the restarts of processes that are due.
    pub(super) fn advance_with_restarts(&mut self, until: Nanos) {
        while let Some((at, end)) = self.scenario.restarts.get(self.restarted).copied()
            && at <= until
        {
            self.advance_with_faults(at);
            self.restarted += 1;
            self.restart(end);
        }
        self.advance_with_faults(until);
    }

    /// Advances like `advance_to`, but ends the faults early after [`MAX_FAULTY_PACKETS`].
    fn advance_with_faults(&mut self, until: Nanos) {
        while self.fabric.now() < until && !self.is_over() {
            if self.observer.borrow().packets > MAX_FAULTY_PACKETS {
                self.heal();
            }
            self.advance_to((self.fabric.now() + MILLISECOND).min(until));
        }
    }
}
