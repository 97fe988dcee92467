//! Numbers that client and server share: windows, sizes of parts, and times of streams.

use std::time::Duration;

/// Bytes up to which parts that are available together travel in one message. Chosen by us: about as much as a burst of
/// packets has, so that a part is neither a packet of its own nor delays the next one.
pub(crate) const PART: usize = 65_536;

/// PULLs and PUSHes of a stream that a client keeps outstanding: its credit. Chosen by us: with two, a stream waits for
/// a round trip per part whenever its reader pauses; more only hold memory.
pub(crate) const WINDOW: usize = 4;

/// Steps of a stream that a server accepts ahead of the one that it expects. A client that keeps to [`WINDOW`] never
/// reaches it.
pub(crate) const MAX_AHEAD: u32 = 64;

/// Time after which a server answers a PULL with an empty part, so that both sides know that the other one lives.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Time without a PULL after which a server ends a stream: three times what a living client lets pass.
pub(crate) const STREAM_IDLE: Duration = Duration::from_secs(60);

/// Time for the first PULL of a stream, which a client sends as soon as it knows the stream: a client that is gone by then
/// cannot cancel it.
pub(crate) const FIRST_PULL: Duration = Duration::from_secs(5);

/// Time for which a client tries to tell a server that it wants nothing more of a stream.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
