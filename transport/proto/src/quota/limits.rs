//! The limits of a budget: in all, for one host, and for long messages.

use crate::limits::SHORT_SHARE;

/// The room of a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    /// In all.
    all: u64,
    /// For one host.
    per_host: u64,
    /// What long messages may use in all, at least one of the longest.
    long: u64,
}

/// Whether a message may use all of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// All of it.
    Short,
    /// All but the part that is left to short messages.
    Long,
}

/// The limit that a message would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The room in all.
    All,
    /// The room of its host.
    Host,
}

impl Quota {
    /// Room for `all`, of which one host may have `per_host`. An eighth of both is left to short
    /// messages, except that one message of the length `longest` has room.
    pub(crate) fn new(all: u64, per_host: u64, longest: u64) -> Self {
        Self { all, per_host: per_host.min(all), long: without_short(all).max(longest) }
    }

    /// Room for `all`, of which one host may have half. There are no long ones.
    pub(crate) const fn of_equals(all: u64) -> Self {
        Self { all, per_host: all.div_ceil(2), long: all }
    }

    /// What messages of this size may use in all.
    pub(crate) const fn most(&self, size: Size) -> u64 {
        match size {
            Size::Short => self.all,
            Size::Long => self.long,
        }
    }

    /// What messages of this size may use of one host's room.
    pub(crate) const fn most_of_host(&self, size: Size) -> u64 {
        match size {
            Size::Short => self.per_host,
            Size::Long => without_short(self.per_host),
        }
    }

    /// Checks that `more` fits to `used`, of which `of_host` is its host's. One message of a host
    /// has room, whatever the host's limit is.
    pub(crate) const fn check(
        &self,
        used: u64,
        of_host: u64,
        more: u64,
        size: Size,
    ) -> Result<(), Excess> {
        if of_host > 0 && of_host + more > self.most_of_host(size) {
            Err(Excess::Host)
        } else if used + more > self.most(size) {
            Err(Excess::All)
        } else {
            Ok(())
        }
    }
}

/// The part of `all` that long messages may use.
const fn without_short(all: u64) -> u64 {
    all - all / SHORT_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_leave_an_eighth_in_all_and_of_each_host() {
        let quota = Quota::new(800, 400, 100);
        assert_eq!(quota.check(699, 0, 1, Size::Long), Ok(()));
        assert_eq!(quota.check(700, 0, 1, Size::Long), Err(Excess::All));
        assert_eq!(quota.check(700, 0, 100, Size::Short), Ok(()));
        assert_eq!(quota.check(350, 350, 1, Size::Long), Err(Excess::Host));
        assert_eq!(quota.check(350, 350, 50, Size::Short), Ok(()));
        assert_eq!(quota.check(350, 350, 51, Size::Short), Err(Excess::Host));
    }

    #[test]
    fn one_message_always_has_room() {
        let quota = Quota::new(100, 10, 100);
        assert_eq!(quota.check(0, 0, 100, Size::Long), Ok(()));
        assert_eq!(quota.check(1, 1, 10, Size::Long), Err(Excess::Host));
        assert_eq!(Quota::of_equals(1).most_of_host(Size::Short), 1);
    }
}
