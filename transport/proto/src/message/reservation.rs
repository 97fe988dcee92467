//! The room that an incoming message has in the receive budget.

/// The bytes reserved for an incoming message: at least those that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// Number of its positions.
    pub(crate) positions: u32,
    /// How the rest of it gets room.
    pub(crate) claim: Claim,
}

/// How a message that is being received gets room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is short: a part of the budget is left to it and its like.
    Short,
    /// It is long, and gets room as it is granted.
    Long,
    /// It is long, and the room up to its end is kept for it.
    Assured,
}

impl Reservation {
    /// No room yet.
    pub(crate) const NONE: Self = Self { positions: 0, claim: Claim::Long };
}
