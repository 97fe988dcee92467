//! The backlog: granted bytes in flight, over all messages.

use super::by_host::ByHost;
use crate::allowed::Allowed;
use crate::peer::HostId;

/// Granted and not received bytes, bounded by `max_incoming` (HM `homa_grant.c`
/// `homa_grant_try_send`, GRANT-5, GRANT-21).
#[derive(Debug)]
pub(super) struct Backlog {
    bytes: ByHost,
    limit: u64,
    /// Bytes in flight to other transports that share `max_incoming`.
    elsewhere: u64,
    /// Number of transports that share `max_incoming`, this one included.
    sharers: u64,
}

impl Backlog {
    pub(super) fn new(limit: u64) -> Self {
        Self { bytes: ByHost::new(limit), limit, elsewhere: 0, sharers: 1 }
    }

    /// Sets the number of transports that share `max_incoming`, and the bytes in flight to the
    /// others (GRANT-14).
    pub(super) const fn share(&mut self, sharers: u64, elsewhere: u64) {
        self.sharers = sharers;
        self.elsewhere = elsewhere;
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.bytes.set_limit(limit);
    }

    /// A message of `host` that counted with `old` bytes counts with `new` from now on.
    pub(super) fn change(&mut self, host: HostId, old: Allowed, new: Allowed) {
        self.bytes.change(host, old, new);
    }

    /// Makes `host` doubtful, or trusts it again (GRANT-21).
    pub(super) fn doubt(&mut self, host: HostId, is_doubtful: bool) {
        self.bytes.doubt(host, is_doubtful);
    }

    /// Bytes that may be granted to `host` now (GRANTER-3). Unscheduled bytes and senders that wake
    /// up count without a check, so the backlog may exceed the limit for a while.
    ///
    /// A transport that shares the limit may always grant its part, and at least `step`: it is not
    /// notified when the others have fewer bytes in flight, so a message without a GRANT would wait
    /// forever (GRANT-14).
    pub(super) fn room(&self, host: HostId, step: u32) -> u32 {
        let shared = self.limit.saturating_sub(self.elsewhere);
        let part = (self.limit / self.sharers).max(u64::from(step)).min(self.limit);
        let used = self.bytes.for_host(host);
        u32::try_from(shared.max(part).saturating_sub(used)).unwrap_or(u32::MAX)
    }

    /// Bytes of all hosts.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes.all()
    }

    /// The part of them that counts for other transports.
    pub(super) const fn published(&self) -> u64 {
        self.bytes.counted()
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_host::tests::{bytes, hosts};
    use super::*;

    /// GRANT-14.
    #[test]
    fn what_others_have_on_the_way_leaves_less_room_but_never_less_than_a_part() {
        let [host] = hosts();
        let mut backlog = Backlog::new(80_000);
        backlog.change(host, Allowed::NONE, bytes(10_000));
        assert_eq!(backlog.room(host, 10_000), 70_000);
        backlog.share(4, 30_000);
        assert_eq!(backlog.room(host, 10_000), 40_000);
        backlog.share(4, 90_000);
        assert_eq!(backlog.room(host, 10_000), 10_000, "a quarter");
        backlog.share(16, 90_000);
        assert_eq!(backlog.room(host, 10_000), 0, "a step, of which all is on the way");
        backlog.change(host, bytes(10_000), Allowed::NONE);
        assert_eq!(backlog.room(host, 10_000), 10_000, "a step");
    }

    /// GRANT-21.
    #[test]
    fn a_doubtful_host_that_holds_all_leaves_half_to_others() {
        let [one, other] = hosts();
        let mut backlog = Backlog::new(80_000);
        backlog.change(one, Allowed::NONE, bytes(80_000));
        assert_eq!([one, other].map(|host| backlog.room(host, 1_000)), [0, 0]);
        backlog.doubt(one, true);
        assert_eq!([one, other].map(|host| backlog.room(host, 1_000)), [0, 40_000]);
        backlog.change(other, Allowed::NONE, bytes(40_000));
        assert_eq!([one, other].map(|host| backlog.room(host, 1_000)), [0, 0]);
    }
}
