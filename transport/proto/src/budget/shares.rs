//! The shares of the receive budget: limits for short messages, long messages, and one host.

use crate::config::Config;
use crate::limits::SHORT_SHARE;
use crate::message::Claim;

/// Longest message that counts as short: a peer may send it without a GRANT.
pub(super) fn unscheduled_window(config: &Config) -> u64 {
    config.unsched_bytes().max(config.unsched_bytes_max())
}

/// The part of the budget that long messages may use (ROOM-3): one of the longest messages fits.
pub(super) fn long_limit(config: &Config) -> u64 {
    let all = config.max_receive_bytes();
    (all - all / SHORT_SHARE).max(config.max_message())
}

/// The part of the budget that messages of one host may use (ROOM-3).
pub(super) const fn host_share(config: &Config, claim: Claim) -> u64 {
    let all = config.max_receive_bytes_per_host();
    match claim {
        Claim::Short => all,
        Claim::Long | Claim::Assured => all - all / SHORT_SHARE,
    }
}
