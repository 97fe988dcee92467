//! Which RPCs is a report about?

use serde::Serialize;

use crate::merge::{Call, Merged};
use apus_trace::Side;

/// What an RPC has to be. Of what is not known about it, nothing is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Filter {
    /// The longer of its messages has so many bytes at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    /// The longer of its messages has so many bytes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// It took so many microseconds at least; one that has not ended did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_us: Option<u64>,
    /// A part of one of its addresses, like `10.0.0.2` or `:4000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

impl Filter {
    /// Whether the report is about this RPC.
    #[must_use]
    pub fn admits(&self, merged: &Merged, call: &Call) -> bool {
        let length =
            [Side::Client, Side::Server].into_iter().filter_map(|it| call.length(it)).max();
        let addresses = merged.ways[call.way].addresses;
        let is_at = |part: &String| {
            [addresses.endpoint, addresses.address].iter().any(|at| at.to_string().contains(part))
        };
        self.min_bytes.is_none_or(|min| length.is_none_or(|length| length >= min))
            && self.max_bytes.is_none_or(|max| length.is_none_or(|length| length <= max))
            && self.min_us.is_none_or(|min| took_micros(call) >= Some(min))
            && self.peer.as_ref().is_none_or(is_at)
            && self.id.is_none_or(|id| id & !1 == call.id)
    }

    /// The RPCs that it is about.
    pub fn calls<'a>(&'a self, merged: &'a Merged) -> impl Iterator<Item = &'a Call> {
        merged.calls.iter().filter(|call| self.admits(merged, call))
    }
}

fn took_micros(call: &Call) -> Option<u64> {
    u64::try_from(call.rtt()? / 1_000).ok()
}
