//! Which call is a packet about, and what did the call look like?

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::call::Call;
use super::scenario::Scenario;
use super::seen::CallId;
use apus_sim::message::HostId;

/// What all checkers know: the plan, which call has which id on the wire, and how often hosts have died.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) scenario: Scenario,
    by_id: HashMap<(HostId, HostId, u64), CallId, FixedState>,
    lives: Vec<u32>,
}

impl Directory {
    /// Nothing has been called yet.
    pub(crate) fn new(scenario: Scenario) -> Self {
        let lives = vec![0; scenario.hosts() as usize];
        Self { scenario, by_id: HashMap::default(), lives }
    }

    /// The call, as it was planned.
    pub(crate) fn call(&self, call: CallId) -> &Call {
        &self.scenario.calls[call as usize]
    }

    /// Notes under which id a call travels.
    pub(crate) fn name(&mut self, call: CallId, id: u64) {
        let Call { from, to, .. } = *self.call(call);
        self.by_id.insert((from, to, id), call);
    }

    /// The call between a client and a server with this id.
    pub(crate) fn find(&self, client: HostId, server: HostId, id: u64) -> Option<CallId> {
        self.by_id.get(&(client, server, id)).copied()
    }

    /// How often a host has died.
    pub(crate) fn life(&self, host: HostId) -> u32 {
        self.lives[host as usize]
    }

    /// Whether a host runs the Linux module.
    pub(crate) fn runs_module(&self, host: HostId) -> bool {
        self.scenario.kernel_hosts.contains(&host)
    }

    pub(crate) fn died(&mut self, host: HostId) {
        self.lives[host as usize] += 1;
    }
}
