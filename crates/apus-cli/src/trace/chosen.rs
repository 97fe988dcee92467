//! Which RPCs is a report about?

use apus_trace::report::Filter;
use clap::Args;

/// All of them, but for those that are not these.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// Only RPCs whose longer message has at least so many bytes
    #[arg(long, value_name = "BYTES")]
    min_bytes: Option<u64>,
    /// Only RPCs whose longer message has at most so many bytes
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Only RPCs that took at least so many microseconds
    #[arg(long, value_name = "MICROSECONDS")]
    min_us: Option<u64>,
    /// Only RPCs with this in one of their addresses, like `10.0.0.2` or `:4000`
    #[arg(long, value_name = "PART")]
    peer: Option<String>,
    /// Only the RPC with this id
    #[arg(long, value_name = "RPC")]
    id: Option<u64>,
}

impl Chosen {
    /// The same for apus-trace; if nothing is said, only RPCs of so many bytes at most.
    pub(super) fn filter(&self, usual_max_bytes: Option<u64>) -> Filter {
        let Self { min_bytes, max_bytes, min_us, peer, id } = self;
        let said = min_bytes.is_some() || max_bytes.is_some() || id.is_some();
        Filter {
            min_bytes: *min_bytes,
            max_bytes: if said { *max_bytes } else { usual_max_bytes },
            min_us: *min_us,
            peer: peer.clone(),
            id: *id,
        }
    }
}
