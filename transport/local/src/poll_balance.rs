//! Balance between polls of the network and of shared memory.

/// Decides when to poll the network and the sockets of local peers. Its unit is the cost of an
/// unsuccessful peek into shared memory, about 10 ns.
#[derive(Debug, Default)]
pub struct PollBalance {
    /// Cost of the peeks since the network was polled.
    spent: u32,
    /// Number of consecutive unsuccessful peeks after which the network is polled as often as
    /// shared memory.
    warm: u32,
    /// Polls of the network since the sockets of local peers were polled.
    network_polls: u32,
}

impl PollBalance {
    /// Cost of peeks between two polls of the network. Chosen by us: about 10 µs, so that these
    /// polls take 3 % of the time, and a peer on the network waits for less than twice as long as
    /// for an idle host.
    const LIMIT: u32 = 1024;
    /// Cost of a record: a third of a microsecond.
    const RECORD: u32 = 32;
    /// Polls of the network per poll of the sockets of local peers. Those report new and killed
    /// peers, and cost a hundredth of the polls of the network at this rate.
    const POLLS_PER_SOCKET_POLL: u32 = 64;

    /// Returns whether to poll the network; then it counts as polled.
    #[must_use]
    pub const fn take_network_due(&mut self) -> bool {
        let due = self.warm == 0 || self.spent >= Self::LIMIT;
        if due {
            self.spent = 0;
        }
        due
    }

    /// Has the network polled in the next pass.
    pub const fn expect_network(&mut self) {
        self.spent = Self::LIMIT;
    }

    /// Returns whether to poll the sockets of local peers together with this poll of the network.
    #[must_use]
    pub const fn take_sockets_due(&mut self) -> bool {
        self.network_polls = (self.network_polls + 1) % Self::POLLS_PER_SOCKET_POLL;
        self.network_polls == 0
    }

    /// Notes that a peek into shared memory has found `records`.
    pub fn note_records(&mut self, records: usize) {
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_add(records.saturating_mul(Self::RECORD).max(1));
        self.warm = if records > 0 { Self::LIMIT } else { self.warm.saturating_sub(1) };
    }
}

#[cfg(all(test, not(apus_local_loom)))]
mod tests {
    use super::*;

    /// Returns the number of peeks between two polls of the network, if each finds `records`.
    fn between(balance: &mut PollBalance, records: usize) -> u32 {
        for peeks in 0.. {
            if balance.take_network_due() {
                return peeks;
            }
            balance.note_records(records);
        }
        unreachable!("the network is polled at some time")
    }

    #[test]
    fn the_network_is_polled_in_each_pass_unless_messages_come_through_memory() {
        let mut balance = PollBalance::default();
        balance.note_records(0);
        assert_eq!(between(&mut balance, 0), 0);
        balance.note_records(1);
        assert_eq!(between(&mut balance, 1), 31);
        assert_eq!(between(&mut balance, 64), 1, "a full ring does not keep the network away");
        let quiet = between(&mut balance, 0);
        assert!((900..=1024).contains(&quiet), "{quiet}");
        assert_eq!(between(&mut balance, 0), 0, "nothing came for as long");
    }

    #[test]
    fn a_network_that_is_expected_is_polled_next() {
        let mut balance = PollBalance::default();
        balance.note_records(1);
        balance.expect_network();
        assert_eq!(between(&mut balance, 1), 0, "RECEIVE-1");
        assert_eq!(between(&mut balance, 1), 32, "once");
    }

    #[test]
    fn sockets_are_polled_at_intervals() {
        let mut balance = PollBalance::default();
        let polls = (0..640).filter(|_| balance.take_sockets_due()).count();
        assert_eq!(polls, 10);
    }
}
