//! RPC filters of reports.

use serde::Serialize;

use crate::merge::{MergedTraces, TracedRpc};
use apus_trace::Side;

/// Conditions on an RPC. A condition on an unknown property is satisfied, except for `min_us`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RpcFilter {
    /// Minimum length of the longer message, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    /// Maximum length of the longer message, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Minimum round trip in microseconds. An RPC that has not completed does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_us: Option<u64>,
    /// Part of one of its two addresses, for instance `10.0.0.2` or `:4000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// RPC id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

impl RpcFilter {
    /// Returns whether an RPC matches.
    #[must_use]
    pub fn matches(&self, merged: &MergedTraces, rpc: &TracedRpc) -> bool {
        let length = [Side::Client, Side::Server].into_iter().filter_map(|it| rpc.length(it)).max();
        let addresses = merged.associations[rpc.association].addresses;
        let is_at = |part: &String| {
            [addresses.endpoint, addresses.address].iter().any(|at| at.to_string().contains(part))
        };
        self.min_bytes.is_none_or(|min| length.is_none_or(|length| length >= min))
            && self.max_bytes.is_none_or(|max| length.is_none_or(|length| length <= max))
            && self.min_us.is_none_or(|min| rtt_micros(rpc) >= Some(min))
            && self.peer.as_ref().is_none_or(is_at)
            && self.id.is_none_or(|id| id & !1 == rpc.id)
    }

    /// Returns the matching RPCs.
    pub fn rpcs<'a>(&'a self, merged: &'a MergedTraces) -> impl Iterator<Item = &'a TracedRpc> {
        merged.rpcs.iter().filter(|rpc| self.matches(merged, rpc))
    }
}

fn rtt_micros(rpc: &TracedRpc) -> Option<u64> {
    u64::try_from(rpc.rtt()? / 1_000).ok()
}
