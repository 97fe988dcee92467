//! Directory: the planned calls, by position and by id.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::call::PlannedCall;
use super::ends::Ends;
use super::observation::CallId;
use super::scenario::Scenario;
use apus_sim::message::HostId;

/// State shared by all checkers: the plan, the ids on the wire, and the incarnations of hosts.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) scenario: Scenario,
    pub(crate) ends: Ends,
    by_id: HashMap<(HostId, HostId, u64), CallId, FixedState>,
    incarnations: Vec<u32>,
}

impl Directory {
    /// Creates a directory without ids.
    pub(crate) fn new(scenario: Scenario) -> Self {
        let ends = scenario.ends();
        let incarnations = vec![0; ends.count() as usize];
        Self { scenario, ends, by_id: HashMap::default(), incarnations }
    }

    /// Returns a planned call.
    pub(crate) fn call(&self, call: CallId) -> &PlannedCall {
        &self.scenario.calls[call as usize]
    }

    /// Returns the call that determines the bytes of this call's messages.
    pub(crate) fn content(&self, call: CallId) -> CallId {
        self.call(call).repeats.unwrap_or(call)
    }

    /// Records the id of a call on the wire.
    pub(crate) fn register(&mut self, call: CallId, id: u64) {
        let PlannedCall { from, to, .. } = *self.call(call);
        self.by_id.insert((from, to, id), call);
    }

    /// Returns the call with this id between a client and a server.
    pub(crate) fn find(&self, client: HostId, server: HostId, id: u64) -> Option<CallId> {
        self.by_id.get(&(client, server, id)).copied()
    }

    /// Returns the number of crashes of a host.
    pub(crate) fn incarnation(&self, host: HostId) -> u32 {
        self.incarnations[host as usize]
    }

    /// Returns whether a host runs the Linux module.
    pub(crate) fn runs_module(&self, host: HostId) -> bool {
        self.scenario.kernel_hosts.contains(&host)
    }

    /// Returns whether an end reports the room of its socket, if it can determine it.
    pub(crate) fn states_room(&self, host: HostId) -> bool {
        let sharing = self.scenario.sharing.as_ref();
        sharing.is_none_or(|sharing| !sharing.older_hosts.contains(&self.ends.host_of(host)))
    }

    /// Records a crash of a host.
    pub(crate) fn host_crashed(&mut self, host: HostId) {
        self.incarnations[host as usize] += 1;
    }
}
