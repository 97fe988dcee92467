//! Reasons for a server to refuse a request.

/// Reason of a refusal, in the `sequence` field of an RPC_UNKNOWN packet that has
/// [`crate::Flags::REFUSED`] set. Udp profile only.
///
/// Chosen by us, because the kernel's protocol cannot express refusals: its clients wait for the
/// silence timeout. Requirement `WIRE-23`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Refusal {
    /// The server has no room for another RPC. Not executed.
    Overloaded = 1,
    /// The request is longer than the server accepts. Not executed.
    TooLarge = 2,
    /// The endpoint does not accept requests. Not executed.
    NotServing = 3,
    /// The endpoint is closing. Not executed.
    ShuttingDown = 4,
    /// The server application took the request and dropped it without a reply. May have been
    /// executed.
    Abandoned = 5,
    /// The client's version does not support 48-bit sessions ([`crate::Features::LONG_SESSIONS`]).
    /// Not executed, but such clients do not have this reason, and read it as
    /// [`Refusal::Abandoned`].
    ClientTooOld = 6,
    /// The server's application replied with a message that is longer than its endpoint sends.
    /// Executed. Clients that do not have this reason read it as [`Refusal::Abandoned`].
    ResponseTooLarge = 7,
}

impl Refusal {
    /// All reasons, in the order of their values.
    pub const ALL: [Self; 7] = [
        Self::Overloaded,
        Self::TooLarge,
        Self::NotServing,
        Self::ShuttingDown,
        Self::Abandoned,
        Self::ClientTooOld,
        Self::ResponseTooLarge,
    ];

    /// Returns the reason with this value on the wire. Unknown values become
    /// [`Refusal::Abandoned`], the safest one: it makes no promise about execution.
    #[must_use]
    pub const fn from_wire(value: u32) -> Self {
        match value {
            1 => Self::Overloaded,
            2 => Self::TooLarge,
            3 => Self::NotServing,
            4 => Self::ShuttingDown,
            6 => Self::ClientTooOld,
            7 => Self::ResponseTooLarge,
            _ => Self::Abandoned,
        }
    }

    /// Returns whether the refusing server guarantees that the request was not executed.
    #[must_use]
    pub const fn is_before_execution(self) -> bool {
        !matches!(self, Self::Abandoned | Self::ResponseTooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_reasons_promise_nothing() {
        for reason in Refusal::ALL {
            assert_eq!(Refusal::from_wire(reason as u32), reason);
        }
        assert!(!Refusal::from_wire(0).is_before_execution());
        assert!(!Refusal::from_wire(77).is_before_execution());
        assert!(!Refusal::ResponseTooLarge.is_before_execution());
    }
}
