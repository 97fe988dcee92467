//! Options, identifier and completion of a call.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use crate::engine::core::Deadline;
use crate::engine::state::{EndedCall, Key};
use crate::engine::tracer::stage;
use apus_proto::Payload;
use apus_trace::Event;

/// Options of a call. By default a call fails after the endpoint's
/// [timeout](crate::EndpointBuilder::call_timeout), 60 s, is executed at most once, and waits for
/// room.
///
/// ```
/// use apus::CallOptions;
/// use std::time::Duration;
///
/// let options = CallOptions::new().timeout(Duration::from_millis(5)).idempotent(true);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct CallOptions {
    pub(crate) deadline: Deadline,
    pub(crate) idempotent: bool,
    pub(crate) no_wait: bool,
}

impl CallOptions {
    /// Returns the default options.
    pub const fn new() -> Self {
        Self { deadline: Deadline::Endpoint, idempotent: false, no_wait: false }
    }

    /// Sets the time of failure for a call that has not completed, instead of the endpoint's
    /// [timeout](crate::EndpointBuilder::call_timeout). Waiting for room to send counts.
    ///
    /// If the deadline has passed, the call fails at once with
    /// [`FailureKind::DeadlineExceeded`](crate::FailureKind::DeadlineExceeded): it is not executed,
    /// and nothing is sent.
    pub const fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Deadline::At(at);
        self
    }

    /// Sets the [deadline](CallOptions::deadline) to `time` from now; a call with
    /// [`Duration::ZERO`] fails at once. [`Duration::MAX`] means no
    /// deadline: the call ends when the server replies, ends or becomes unreachable, however long
    /// that takes.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.deadline = match time {
            Duration::MAX => Deadline::Never,
            _ => Instant::now().checked_add(time).map_or(Deadline::Never, Deadline::At),
        };
        self
    }

    /// Declares that executing the request twice is harmless. The call then survives a restart of
    /// the server; otherwise it fails. The default is `false`.
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets whether the call fails at once with a
    /// [back-pressure](crate::CallError::is_back_pressure) error, instead of waiting, when a limit
    /// of the configuration is reached. The default is `false`.
    pub const fn no_wait(mut self, no_wait: bool) -> Self {
        self.no_wait = no_wait;
        self
    }
}

/// A call that is sent together with others by [`Endpoint::send_many`](crate::Endpoint::send_many).
#[derive(Clone, Debug)]
pub struct OutgoingCall {
    /// The server.
    pub to: SocketAddr,
    /// The request.
    pub request: Payload,
    /// Returned with the outcome of the call: [`Completion::cookie`].
    pub cookie: u64,
}

/// Identifies a call that was sent, for [`EndpointHandle::cancel`](crate::EndpointHandle::cancel).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(crate) key: Key,
    /// Index of the shard that makes the call.
    pub(crate) shard: u16,
}

impl CallId {
    /// Bits of a slot's number; the shard has the bits above it. 2^25 calls of one shard at a time
    /// are twice what `max_client_rpcs` can allow, and there are at most 128 shards:
    /// [`Shards::MAX`](crate::Shards::MAX) that serve, and as many that call.
    const SLOT_BITS: u32 = 25;

    /// Returns the id as a number, for interfaces that pass no Rust types. Ids of one endpoint
    /// differ for four billion calls.
    #[must_use]
    pub const fn to_bits(self) -> NonZeroU64 {
        // The last of all slots is never in use: the table would have 33 million calls.
        let shard = (self.shard as u64) << Self::SLOT_BITS;
        NonZeroU64::MIN.saturating_add(self.key.cookie() | shard)
    }

    /// Returns the id that [`CallId::to_bits`] returned this number for. An id that the endpoint
    /// never had names no call.
    #[must_use]
    pub const fn from_bits(bits: NonZeroU64) -> Self {
        let bits = bits.get() - 1;
        let shard = ((bits & 0xffff_ffff) >> Self::SLOT_BITS) as u16;
        Self { key: Key::from_cookie(bits ^ (shard as u64) << Self::SLOT_BITS), shard }
    }
}

/// The outcome of a call that was sent with [`Endpoint::send`](crate::Endpoint::send).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The cookie that was given to `send`.
    pub cookie: u64,
    /// The response, or the reason why the call failed.
    pub result: Result<bytes::Bytes, apus_proto::RpcError>,
}

impl From<EndedCall> for Completion {
    /// Hands the completion to the application, which ends the call in the time trace.
    #[inline]
    fn from(EndedCall { cookie, result, rpc }: EndedCall) -> Self {
        stage(rpc, Event::Returned, result.as_ref().map_or(0, bytes::Bytes::len));
        Self { cookie, result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_as_a_number() {
        for serial in [0_u64, 7, u64::from(u32::MAX)] {
            for (slot, shard) in [(0, 0), (3, 1), ((1 << 25) - 2, 127)] {
                let id = CallId { key: Key::from_cookie(serial << 32 | slot), shard };
                assert_eq!(CallId::from_bits(id.to_bits()), id);
            }
        }
    }
}
