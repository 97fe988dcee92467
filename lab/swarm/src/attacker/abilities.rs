//! What attackers try, as far as the protocol has a defence against it.

/// Whether a client announces long messages and does not send them.
pub(super) const CLAIMS: bool = true;

/// Whether a client never acknowledges responses, so that servers keep them: RPCs and bytes to send, until it has been
/// asked a few times.
pub(super) const HOARDS_RESPONSES: bool = true;

/// Endpoints of a client.
pub(super) const ALIASES: u16 = 2_000;
