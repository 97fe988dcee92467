//! What does a file say of time traces?

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder::EndpointBuilder;
use crate::trace::{FreezeTriggers, TraceFiles};

/// What freezes the time trace, and which files that leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSettings {
    /// Where files go when the trace freezes by itself: [`EndpointBuilder::trace_files`]. Nowhere if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// How many files that may hold: [`TraceFiles::at_most`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_files: Option<usize>,
    /// [`FreezeTriggers::slow_rpc`], in microseconds; 0: however long it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_rpc_usecs: Option<u64>,
    /// [`FreezeTriggers::restart`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<bool>,
    /// [`FreezeTriggers::lost_packet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packet: Option<bool>,
    /// [`FreezeTriggers::freeze_peers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell_peers: Option<bool>,
    /// [`FreezeTriggers::obey_peers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heed_peers: Option<bool>,
}

impl TraceSettings {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same for an endpoint.
    pub(super) fn apply(&self, builder: EndpointBuilder) -> EndpointBuilder {
        let builder = builder.freeze_triggers(self.triggers());
        match self.files() {
            Some(files) => builder.trace_files(files),
            None => builder,
        }
    }

    fn triggers(&self) -> FreezeTriggers {
        let yes = |said: Option<bool>| said.unwrap_or(false);
        let triggers = FreezeTriggers::new()
            .restart(yes(self.restart))
            .lost_packet(yes(self.lost_packet))
            .freeze_peers(yes(self.tell_peers))
            .obey_peers(yes(self.heed_peers));
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
