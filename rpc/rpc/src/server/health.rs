//! The health of a server, and the method that reports it.

/// The method that every server answers without a handler, even while it drains: one byte, the
/// number of its [`Health`].
pub const HEALTH_METHOD: &str = "apus.Health/check";

/// Whether a server accepts calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Health {
    /// New calls are accepted.
    Ready = 0,
    /// The server is starting, or a dependency is unavailable: new calls are refused, and may be
    /// sent elsewhere.
    NotReady = 1,
    /// The server is about to end: running calls are served, new calls are refused and may be sent
    /// elsewhere.
    Draining = 2,
}

impl Health {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the health with this number. Numbers of later versions count as
    /// [`Health::NotReady`].
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Ready,
            2 => Self::Draining,
            _ => Self::NotReady,
        }
    }
}
