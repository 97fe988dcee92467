//! The backlog: granted bytes in flight, over all messages.

/// Granted and not received bytes, bounded by `max_incoming` (HM `homa_grant.c`
/// `homa_grant_try_send`, GRANT-5).
#[derive(Debug)]
pub(super) struct Backlog {
    bytes: u64,
    limit: u64,
    /// Bytes in flight to other transports that share `max_incoming`.
    elsewhere: u64,
    /// Number of transports that share `max_incoming`, this one included.
    sharers: u64,
}

impl Backlog {
    pub(super) const fn new(limit: u64) -> Self {
        Self { bytes: 0, limit, elsewhere: 0, sharers: 1 }
    }

    /// Sets the number of transports that share `max_incoming`, and the bytes in flight to the
    /// others (GRANT-14).
    pub(super) const fn share(&mut self, sharers: u64, elsewhere: u64) {
        self.sharers = sharers;
        self.elsewhere = elsewhere;
    }

    pub(super) const fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// A message that counted with `old` bytes counts with `new` from now on.
    pub(super) fn change(&mut self, old: u32, new: u32) {
        debug_assert!(self.bytes >= u64::from(old), "GRANTER-2");
        self.bytes = self.bytes - u64::from(old) + u64::from(new);
    }

    /// Bytes that may be granted now (GRANTER-3). Unscheduled bytes and senders that wake up count
    /// without a check, so the backlog may exceed the limit for a while.
    ///
    /// A transport that shares the limit may always grant its part, and at least `step`: it is not
    /// notified when the others have fewer bytes in flight, so a message without a GRANT would wait
    /// forever (GRANT-14).
    pub(super) fn room(&self, step: u32) -> u32 {
        let shared = self.limit.saturating_sub(self.elsewhere);
        let part = (self.limit / self.sharers).max(u64::from(step)).min(self.limit);
        u32::try_from(shared.max(part).saturating_sub(self.bytes)).unwrap_or(u32::MAX)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GRANT-14.
    #[test]
    fn what_others_have_on_the_way_leaves_less_room_but_never_less_than_a_part() {
        let mut backlog = Backlog::new(80_000);
        backlog.change(0, 10_000);
        assert_eq!(backlog.room(10_000), 70_000);
        backlog.share(4, 30_000);
        assert_eq!(backlog.room(10_000), 40_000);
        backlog.share(4, 90_000);
        assert_eq!(backlog.room(10_000), 10_000, "a quarter");
        backlog.share(16, 90_000);
        assert_eq!(backlog.room(10_000), 0, "a step, of which all is on the way");
        backlog.change(10_000, 0);
        assert_eq!(backlog.room(10_000), 10_000, "a step");
    }
}
