//! Section `[trace]` of a settings file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder::EndpointBuilder;
use crate::trace::{FreezeTriggers, TraceFiles};

/// Triggers that freeze the time trace, and the files that are written then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSettings {
    /// Folder for a file each time a trigger freezes the trace: [`EndpointBuilder::trace_files`].
    /// Empty: no files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Maximum number of files in the folder: [`TraceFiles::at_most`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_files: Option<usize>,
    /// Freeze when a call takes longer, in microseconds: [`FreezeTriggers::slow_rpc`]. 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_rpc_usecs: Option<u64>,
    /// Freeze when a server was restarted: [`FreezeTriggers::restart`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<bool>,
    /// Freeze when a packet is retransmitted: [`FreezeTriggers::lost_packet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packet: Option<bool>,
    /// Ask peers to freeze their traces as well: [`FreezeTriggers::freeze_peers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze_peers: Option<bool>,
    /// Freeze on request of a peer: [`FreezeTriggers::obey_peers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obey_peers: Option<bool>,
}

impl TraceSettings {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds these settings to a builder.
    pub(super) fn apply<E>(&self, builder: EndpointBuilder<E>) -> EndpointBuilder<E> {
        let builder = builder.freeze_triggers(self.triggers());
        match self.files() {
            Some(files) => builder.trace_files(files),
            None => builder,
        }
    }

    fn triggers(&self) -> FreezeTriggers {
        let yes = |option: Option<bool>| option.unwrap_or(false);
        let triggers = FreezeTriggers::new()
            .restart(yes(self.restart))
            .lost_packet(yes(self.lost_packet))
            .freeze_peers(yes(self.freeze_peers))
            .obey_peers(yes(self.obey_peers));
        match self.slow_rpc_usecs {
            None | Some(0) => triggers,
            Some(usecs) => triggers.slow_rpc(Duration::from_micros(usecs)),
        }
    }

    fn files(&self) -> Option<TraceFiles> {
        let folder = self.folder.as_ref().filter(|folder| !folder.is_empty())?;
        Some(TraceFiles::new(folder).at_most(self.max_files.unwrap_or(TraceFiles::AT_MOST)))
    }
}
