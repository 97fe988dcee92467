//! Cutoffs checker: a host uses only cutoffs that their owner has announced to it.
//!
//! Requirements PRIO-6, PRIO-14. DATA repeats the version of the cutoffs that its sender knows, 0 if it knows none.

use std::collections::HashSet;

use apus_wire::Body;
use foldhash::fast::FixedState;

use super::contract::Checker;
use crate::directory::Directory;
use crate::observation::{HostEvent, Observation, WirePacket};
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;

/// All announcements: owner, the host that it sent them to, version.
#[derive(Debug, Default)]
pub(crate) struct CutoffsChecker {
    announced: HashSet<(HostId, HostId, u16), FixedState>,
}

impl CutoffsChecker {
    fn sent(
        &mut self,
        directory: &Directory,
        host: HostId,
        wire: &WirePacket<'_>,
    ) -> Result<(), Violation> {
        match &wire.packet.body {
            Body::Cutoffs(cutoffs) => {
                self.announced.insert((host, wire.peer, cutoffs.version));
                Ok(())
            }
            // What modules and a hostile host announce in their own names is not noted.
            Body::Data(data, _)
                if data.cutoff_version != 0
                    && !directory.runs_module(wire.peer)
                    && directory.scenario.is_honest(wire.peer) =>
            {
                let version = data.cutoff_version;
                let is_known = self.announced.contains(&(wire.peer, host, version));
                Violation::unless(is_known, ViolationKind::Permission, wire.call, || {
                    (
                        format!(
                            "host {host} uses cutoffs that host {} has announced (PRIO-14)",
                            wire.peer
                        ),
                        format!("version {version}, which it has not"),
                    )
                })
            }
            _ => Ok(()),
        }
    }
}

impl Checker for CutoffsChecker {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match &observation.event {
            HostEvent::Sent(wire) => self.sent(directory, observation.host, wire),
            _ => Ok(()),
        }
    }
}
