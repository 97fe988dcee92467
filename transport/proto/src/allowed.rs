//! Numbers that a peer has stated, bounded by what this endpoint has allowed.
//!
//! Any field of a packet may be a lie. A number that affects only its own RPC is harmless; a number
//! that enters a sum over several peers must not count with more than its sender was allowed. Such
//! sums take [`Allowed`] numbers only, and there is no way to make one without its bound (BAD-11).

/// A number that a peer has stated, at most what this endpoint has allowed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Allowed(u32);

impl Allowed {
    /// Nothing: the share of a message that counts no more.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the number `stated` by a peer that was allowed `bound`.
    pub(crate) const fn at_most(stated: u32, bound: u32) -> Self {
        Self(if stated < bound { stated } else { bound })
    }

    /// Returns the number.
    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number as a term of a sum.
    pub(crate) const fn term(self) -> u64 {
        self.0 as u64
    }
}
