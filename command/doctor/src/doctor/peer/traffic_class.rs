//! Traffic classes of the priority levels.

use apus_proto::Config;

/// Bits of the traffic class for congestion marks: RFC 3168.
const ECN: u8 = 0b11;

/// Returns the traffic classes of the priority levels, the lowest first.
pub(super) fn classes() -> [u8; 8] {
    Config::default().priority_map().map(|level| level << 5)
}

/// Removes the congestion marks from a traffic class.
pub(super) const fn without_ecn(class: u8) -> u8 {
    class & !ECN
}
