//! Description of a call that has not ended, for a report: its state at both ends.

use apus_wire::Role;

use super::host::SimulatedHost;
use super::stack::Stack;
use super::world::World;
use crate::call::PlannedCall;
use crate::observation::CallId;
use crate::violation::Violation;
use apus_sim::kernel::{Module, ModuleRpcKey};
use apus_sim::message::HostId;

impl<H: SimulatedHost> World<H> {
    /// Adds the state of an open call at both ends to a violation.
    pub(super) fn describe_open_call(&self, mut violation: Violation) -> Violation {
        let Some(call) = violation.calls.first() else { return violation };
        let PlannedCall { from, to, .. } = self.scenario.calls[*call as usize];
        for (host, other) in [(from, to), (to, from)] {
            let stack = self.stack(host);
            let Stack::Apus(transport, view) = stack else {
                let description =
                    stack.kernel().map(|module| self.describe_module(module, host, other, *call));
                violation.observed += &format!("\n             host {host}: {description:?}");
                continue;
            };
            let observer = self.observer.borrow();
            let mine = transport.info().into_iter().find(|info| {
                let ends = if info.role == Role::Client { (host, other) } else { (other, host) };
                view.at(info.peer) == other
                    && observer.directory.find(ends.0, ends.1, info.id) == Some(*call)
            });
            let live = transport.metrics().live;
            violation.observed += &format!("\n             host {host}: {mine:?}, {live:?}");
        }
        violation
    }

    /// Describes the state of a call with `other` in the module of `host`.
    fn describe_module(
        &self,
        module: &Module,
        host: HostId,
        other: HostId,
        call: CallId,
    ) -> String {
        let observer = self.observer.borrow();
        let is_match = |name: &ModuleRpcKey| {
            let ends = if name.role == Role::Client { (host, other) } else { (other, host) };
            observer.directory.find(ends.0, ends.1, name.id) == Some(call)
        };
        let mine = module.live().find(is_match).map(|name| module.describe(name));
        format!("Linux module, {} RPCs, {}", module.live().count(), mine.unwrap_or_default())
    }
}
