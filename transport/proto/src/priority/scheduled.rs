//! The levels of granted bytes.

/// Level for the message of rank `rank` (0: fewest missing bytes) among `active` ones, with
/// `levels` levels for scheduled packets.
///
/// If fewer messages are active than levels exist, the lowest ones are used, so that a new and
/// shorter message finds a free level above them and overtakes at once (HM `homa_grant.c`
/// `homa_grant_priority`, PRIO-9).
pub(crate) const fn scheduled_level(rank: usize, active: usize, levels: u8) -> u8 {
    let used = if active < levels as usize { active } else { levels as usize };
    used.saturating_sub(1).saturating_sub(rank) as u8
}

/// Level for the oldest message's share, in addition to its rank, with `levels` levels for
/// scheduled packets: the one above them, which is the lowest that unscheduled packets use.
///
/// Chosen by us. The kernel takes the second-highest level (HM `homa_grant.c`
/// `homa_grant_check_fifo`), where most short messages are: each then waits behind a grant of
/// 50,000 bytes, which is 16 µs at 25 Gbit/s and 8 ms at 50 Mbit/s. The oldest message is starved
/// by other scheduled packets, and this level is above those.
pub(crate) const fn oldest_level(levels: u8) -> u8 {
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRIO-9, HM `homa_grant.c` `homa_grant_priority`.
    #[test]
    fn the_lowest_levels_are_used_first() {
        assert_eq!(scheduled_level(0, 1, 4), 0);
        assert_eq!([0, 1].map(|rank| scheduled_level(rank, 2, 4)), [1, 0]);
        let all = [0, 1, 2, 3, 4, 5].map(|rank| scheduled_level(rank, 6, 4));
        assert_eq!(all, [3, 2, 1, 0, 0, 0]);
        assert_eq!(scheduled_level(0, 3, 0), 0, "no level of their own: share the lowest");
    }
}
