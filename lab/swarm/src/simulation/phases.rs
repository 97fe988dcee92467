//! Phases of a run.

use super::host::SimulatedHost;
use super::probes::Probes;
use super::world::World;
use crate::observation::CallId;
use apus_sim::fabric::Buffers;
use apus_workload::time::{Nanos, SECOND};

/// Time from the start of a host with the Linux module to its first call, at least.
const REBOOT: Nanos = 2 * SECOND;

impl<H: SimulatedHost> World<H> {
    pub(super) fn run(&mut self) {
        if let Some(attack) = self.scenario.attack {
            // Neither a message nor a packet triggers its start.
            self.fabric.attend(attack.host, |_| {});
        }
        for (_, caller) in self.scenario.baits.clone() {
            self.fabric.attend(caller, |_| {});
        }
        self.load();
        self.advance_with_restarts(self.scenario.heal_at);
        self.heal();
        self.expect_calls_to_end();
        self.drain();
        self.observer.borrow_mut().check_resends();
        self.restart_modules();
        self.probe(0);
        self.probe(1);
        self.drain();
        self.expect_no_state(false);
        self.expect_peers_dropped();
        self.probe(2);
        self.depart();
    }

    /// Makes all planned calls, with faults.
    fn load(&mut self) {
        for call in 0..self.probes.first {
            let at = self.scenario.calls[call as usize].at;
            self.advance_with_restarts(at);
            if self.is_over() {
                return;
            }
            self.submit(call);
        }
    }

    /// Makes the probes of a round, and waits for their end.
    fn probe(&mut self, round: CallId) {
        let Probes { first, of_a_round } = self.probes;
        for call in 0..of_a_round {
            self.submit(first + round * of_a_round + call);
        }
        self.expect_calls_to_end();
    }

    /// Restarts the hosts that run the Linux module: they count their calls from 2, and servers
    /// that were not restarted execute them nevertheless (AMO-10), so the following probes succeed.
    /// Until then modules request acks from each other, and the socket of a slow processor fills
    /// with these packets; it is lost with the host.
    fn restart_modules(&mut self) {
        if self.scenario.kernel_hosts.is_empty() {
            return;
        }
        for module in self.survivors(true) {
            self.restart(module);
        }
        self.advance_to(self.fabric.now() + REBOOT);
    }

    /// Ends the endpoints of apus as soon as their last calls have ended: they leave no state in
    /// the modules, which would request acks from them forever (RPC-18). Where packets may be lost,
    /// no endpoint would remain to send them again.
    fn depart(&mut self) {
        let buffers = self.scenario.fabric.buffers == Buffers::PerPort(u64::MAX);
        if self.scenario.kernel_hosts.is_empty() || !buffers || self.scenario.processors.is_some() {
            return;
        }
        let now = self.fabric.now();
        for host in self.survivors(false) {
            self.attend(host, |end| end.depart(now));
        }
        self.drain();
        self.expect_no_state(false);
    }
}
