//! The granted bytes that are on their way, over all messages.

/// Granted and not received bytes, bounded by `max_incoming` (HM `homa_grant.c` `homa_grant_try_send`, GRANT-5).
#[derive(Debug)]
pub(super) struct Backlog {
    bytes: u64,
    limit: u64,
}

impl Backlog {
    pub(super) const fn new(limit: u64) -> Self {
        Self { bytes: 0, limit }
    }

    pub(super) const fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// A message that counted with `old` bytes counts with `new` from now on.
    pub(super) fn change(&mut self, old: u32, new: u32) {
        debug_assert!(self.bytes >= u64::from(old), "GRANTER-2");
        self.bytes = self.bytes - u64::from(old) + u64::from(new);
    }

    /// Bytes that may be granted now (GRANTER-3). Unscheduled bytes and senders that wake up count but are
    /// not asked, so that the backlog may lie above the limit for a while.
    pub(super) fn room(&self) -> u32 {
        u32::try_from(self.limit.saturating_sub(self.bytes)).unwrap_or(u32::MAX)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
