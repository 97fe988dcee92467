//! Remaining state: the state that hosts may still have when all calls have ended.

use super::host::SimulatedHost;
use super::stack::{Stack, host_of};
use super::world::World;
use crate::checker::memory;
use crate::scenario::Scenario;
use apus_sim::fabric::Buffers;
use apus_sim::fault::{self, Outages};
use apus_sim::kernel::{Module, ModuleRpcKey};
use apus_workload::time::SECOND;

impl<H: SimulatedHost> World<H> {
    pub(super) fn expect_no_state(&mut self, peers_too: bool) {
        for host in &self.surviving {
            let result = match self.stack(*host) {
                Stack::Apus(transport, _) => memory::check(*host, &transport.live(), peers_too),
                Stack::Kernel(module) => {
                    let retained = self.retained_rpcs(module);
                    let description =
                        retained.iter().map(|name| format!("{name:?}: {}", module.describe(*name)));
                    memory::check_module(*host, &description.collect::<Vec<_>>())
                }
            };
            self.observer.borrow_mut().record(result);
        }
    }

    /// Checks that peers are dropped, if that happens within a minute.
    pub(super) fn expect_peers_dropped(&mut self) {
        let idle = self.scenario.config.peer_idle_secs_max();
        if idle <= 60 {
            self.advance_to(self.fabric.now() + (idle + 5) * SECOND);
            self.expect_no_state(true);
        }
    }

    /// Returns the RPCs that a module keeps on behalf of hosts that are up and run apus. RPCs with
    /// other hosts never end (HM `homa_timer.c` `homa_timer_check_rpc`), nor do RPCs that wait for
    /// grants of a client whose notice of cancellation was lost.
    pub(super) fn retained_rpcs(&self, module: &Module) -> Vec<ModuleRpcKey> {
        let ends = |name: &ModuleRpcKey| {
            let peer = host_of(name.peer);
            let runs_apus = !self.scenario.kernel_hosts.contains(&peer);
            let excused = !self.is_lossless() && module.waits_for_grants(*name);
            runs_apus && self.surviving.contains(&peer) && !excused
        };
        module.live().filter(ends).collect()
    }

    /// Returns whether every packet arrives.
    fn is_lossless(&self) -> bool {
        let Scenario { faults, outages, fabric, .. } = &self.scenario;
        *faults == fault::Settings::default()
            && *outages == Outages::default()
            && fabric.buffers == Buffers::PerPort(u64::MAX)
            && self.scenario.processors.is_none()
    }
}
