//! Waits for the end of calls and the arrival of packets, with limits on time and packets.

use super::host::SimulatedHost;
use super::stack::Stack;
use super::world::World;
use crate::checker::memory;
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

impl<H: SimulatedHost> World<H> {
    /// Second phase: every call ends. After unnoticed corruption a peer may delay a call forever;
    /// then it must be cancellable.
    pub(super) fn expect_calls_to_end(&mut self) {
        // A loss may delay many calls in sequence, so wait as long as calls end. Requests that a
        // module has abandoned are granted as well, and end only after a RESEND for them, so that a
        // thousand calls may take a thousand resend intervals.
        loop {
            let (before, most) = (self.open(), self.most_packets());
            self.wait(self.time_limit(), most, |world| world.open() == 0 || world.open() < before);
            if self.open() == 0 || self.open() == before {
                break;
            }
        }
        let now = self.fabric.now();
        if self.scenario.has_unnoticed_corruption() {
            for host in self.surviving.clone() {
                self.attend(host, |end| end.cancel_all(now));
            }
        }
        let result = {
            let observer = self.observer.borrow();
            observer.liveness.check_ends(&observer.directory, now)
        };
        let result = result.map_err(|violation| self.describe_open_call(violation));
        self.observer.borrow_mut().record(result);
    }

    /// Waits until no packet is in flight, not even a delayed one, and no host waits for an
    /// acknowledgment.
    pub(super) fn drain(&mut self) {
        let late = self.scenario.faults.late_by + self.scenario.faults.spike_of;
        self.wait(late + self.time_limit(), self.most_packets(), |world| {
            let is_clear = |host: &HostId| match world.stack(*host) {
                Stack::Apus(transport, _) => memory::is_clear(&transport.live()),
                Stack::Kernel(module) => world.retained_rpcs(module).is_empty(),
            };
            world.fabric.under_way() == 0 && world.surviving.iter().all(is_clear)
        });
    }

    /// Advances until `done`, or until `bound` has passed, or `most` packets were sent.
    fn wait(&mut self, bound: Nanos, most: u64, done: impl Fn(&Self) -> bool) {
        let end = self.fabric.now() + bound;
        let mut step = MILLISECOND;
        while !self.is_over() && !done(self) && self.fabric.now() < end {
            if self.observer.borrow().packets > most {
                // The open calls will not end; the caller reports them.
                return;
            }
            self.advance_to((self.fabric.now() + step).min(end));
            step = (step * 2).min(100 * MILLISECOND);
        }
    }

    /// Returns the number of packets that ends a wait starting now. In each tick until then,
    /// modules send a RESEND for each of their RPCs and get a reply, regardless of apus: a request
    /// that waits for grants costs a RESEND and a BUSY every 5 ms (HM `homa_timer.c`
    /// `homa_timer_check_rpc`).
    fn most_packets(&self) -> u64 {
        let modules = self.surviving.iter().filter_map(|host| self.stack(*host).kernel());
        let asked_about: usize = modules.map(|module| module.live().count()).sum();
        let asked = 2 * asked_about as u64 * (self.time_limit() / MILLISECOND);
        self.observer.borrow().packets + self.max_packets + asked
    }

    /// Returns the time until at least one call must end without faults: silent peers time out,
    /// lost bytes are requested again, and all bytes of the run pass one link several times.
    fn time_limit(&self) -> Nanos {
        let config = &self.scenario.config;
        let bytes: u64 =
            self.scenario.calls.iter().map(|call| u64::from(call.request + call.response)).sum();
        let processing: Nanos = self
            .scenario
            .calls
            .iter()
            .map(|call| 2 * self.scenario.processing_time(call, call.to))
            .sum();
        let transfer = self.scenario.fabric.topology.host_rate.time(bytes).max(processing);
        let acks = config.need_ack_limit() * 100 * MILLISECOND;
        4 * config.timeout_usecs() * MICROSECOND + 20 * transfer + acks + 2 * SECOND
    }
}
