//! The session that a call belongs to.

/// In which session the server may execute a call. Changes once, when the server offers the first
/// one, and afterwards only if the call is idempotent (AMO-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The server has not offered one yet.
    None,
    /// This session.
    Session(u64),
    /// This session, after another one: the call's fate in an earlier life of the server is
    /// unknown, whatever the present one reports.
    Moved(u64),
}

impl Binding {
    /// The binding of a new call to a server with this session.
    pub(crate) const fn new(session: Option<u64>) -> Self {
        match session {
            Some(session) => Self::Session(session),
            None => Self::None,
        }
    }

    /// The session, if the call is bound to one.
    pub(crate) const fn session(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Session(session) | Self::Moved(session) => Some(session),
        }
    }

    /// Whether the call has moved to another session.
    pub(crate) const fn is_moved(self) -> bool {
        matches!(self, Self::Moved(_))
    }
}
