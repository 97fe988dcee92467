//! Constants shared by client and server: windows, sizes of parts, and timeouts of streams.

use std::time::Duration;

/// Maximum bytes of parts that are sent together in one message. Chosen by us: about the size of a
/// burst of packets, so that a part neither takes a packet of its own nor delays the next one.
pub(crate) const PART: usize = 65_536;

/// Maximum bytes of one message of a stream: longer pieces of a body are split. Chosen by us: far
/// below `max_message`, and long enough that a message's own costs do not matter.
pub(crate) const LONGEST_PART: usize = 1 << 20;

/// PULLs and PUSHes that a client keeps outstanding per stream: its credit. Chosen by us: with two,
/// a stream waits for a round trip per part whenever its reader pauses; more would only hold
/// memory.
pub(crate) const WINDOW: usize = 4;

/// Steps of a stream that a server accepts ahead of the expected one. A client that respects
/// [`WINDOW`] never reaches this limit.
pub(crate) const MAX_AHEAD: u32 = 64;

/// Time until a server answers a PULL with an empty part, so that each side can tell that the other
/// is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Time without a PULL until a server ends a stream: three times the longest gap of a live client.
pub(crate) const STREAM_IDLE: Duration = Duration::from_secs(60);

/// Timeout of a stream's first PULL, which a client sends as soon as the stream has a name. A
/// client that has ended by then cannot cancel the stream.
pub(crate) const FIRST_PULL: Duration = Duration::from_secs(5);

/// Time for which a client retries to cancel a stream.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
