//! Arguments that select the RPCs of a report.

use apus_traces::report::RpcFilter;
use clap::Args;

/// Conditions that an RPC must meet; without any, all RPCs do.
#[derive(Debug, Args)]
pub(super) struct FilterArguments {
    /// Only RPCs whose longer message has at least this many bytes
    #[arg(long, value_name = "BYTES")]
    min_bytes: Option<u64>,
    /// Only RPCs whose longer message has at most this many bytes
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Only RPCs that took at least this many microseconds
    #[arg(long, value_name = "MICROSECONDS")]
    min_us: Option<u64>,
    /// Only RPCs with this text in one of their addresses, such as `10.0.0.2` or `:4000`
    #[arg(long, value_name = "PART")]
    peer: Option<String>,
    /// Only the RPC with this id
    #[arg(long, value_name = "RPC")]
    id: Option<u64>,
}

impl FilterArguments {
    /// Returns the filter. `default_max_bytes` applies unless the arguments select sizes or an id.
    pub(super) fn filter(&self, default_max_bytes: Option<u64>) -> RpcFilter {
        let Self { min_bytes, max_bytes, min_us, peer, id } = self;
        let selected = min_bytes.is_some() || max_bytes.is_some() || id.is_some();
        RpcFilter {
            min_bytes: *min_bytes,
            max_bytes: if selected { *max_bytes } else { default_max_bytes },
            min_us: *min_us,
            peer: peer.clone(),
            id: *id,
        }
    }
}
