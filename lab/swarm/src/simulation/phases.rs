//! Phases of a run.

use super::host::{ObservedHost, SimulatedHost};
use super::probes::{Probes, SINGLE_CALLS};
use super::world::World;
use crate::observation::CallId;
use apus_sim::fabric::Buffers;
use apus_workload::time::{Nanos, SECOND};

/// Time from the start of a host with the Linux module to its first call, at least.
const REBOOT: Nanos = 2 * SECOND;

/// Time for which the host of a closed socket is silent: longer than a server asks (RPC-14).
const CLOSED: Nanos = SECOND / 2;

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
        self.restart_modules(REBOOT);
        self.repeat_single_calls();
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
    fn restart_modules(&mut self, down: Nanos) {
        if self.scenario.kernel_hosts.is_empty() {
            return;
        }
        for module in self.survivors(true) {
            self.restart(module);
        }
        self.advance_to(self.fabric.now() + down);
    }

    /// Lets each module make a single call in two lives, and the same one in both (AMO-10). The
    /// sockets of the first life are closed before their calls are acked, which ICMP reports to the
    /// servers. In half of the runs the next life starts so early that only RESENDs show it.
    fn repeat_single_calls(&mut self) {
        if self.scenario.kernel_hosts.is_empty() {
            return;
        }
        self.probe(SINGLE_CALLS[0]);
        let (now, modules) = (self.fabric.now(), self.survivors(true));
        for module in &modules {
            self.attend(*module, ObservedHost::close_sockets);
        }
        for server in self.survivors(false) {
            for module in &modules {
                self.attend(server, |end| end.learn_closed_port(now, *module));
            }
        }
        self.advance_to(now + CLOSED);
        let is_early = self.scenario.seed.is_multiple_of(2);
        self.restart_modules(if is_early { 0 } else { REBOOT });
        self.probe(SINGLE_CALLS[1]);
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
