//! At which level do granted bytes travel?

/// Level for the message of rank `rank` (0: fewest missing bytes) among `active` ones, with
/// `levels` levels for scheduled packets.
///
/// When fewer messages are active than there are levels, the lowest ones are used, so that a new and
/// shorter message finds a free level above them and overtakes at once (row G-7, PRIO-9).
pub(crate) const fn scheduled_level(rank: usize, active: usize, levels: u8) -> u8 {
    let used = if active < levels as usize { active } else { levels as usize };
    used.saturating_sub(1).saturating_sub(rank) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRIO-9, row G-7.
    #[test]
    fn the_lowest_levels_are_used_first() {
        assert_eq!(scheduled_level(0, 1, 4), 0);
        assert_eq!([0, 1].map(|rank| scheduled_level(rank, 2, 4)), [1, 0]);
        let all = [0, 1, 2, 3, 4, 5].map(|rank| scheduled_level(rank, 6, 4));
        assert_eq!(all, [3, 2, 1, 0, 0, 0]);
        assert_eq!(scheduled_level(0, 3, 0), 0, "no level of their own: share the lowest");
    }
}
