//! Techniques of attackers, limited to those that the protocol defends against.

/// Whether a client announces long messages and does not send them.
pub(super) const CLAIMS: bool = true;

/// Whether a client never acknowledges responses, so that servers keep them (RPCs and bytes to
/// send) until a few requests for an acknowledgment have failed.
pub(super) const HOARDS_RESPONSES: bool = true;

/// Endpoints of a client.
pub(super) const ALIASES: u16 = 2_000;
