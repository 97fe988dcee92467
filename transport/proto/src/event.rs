//! Events from the core to the application.

use crate::error::RpcError;
use crate::peer::Address;
use crate::rpc::RpcKey;
use bytes::Bytes;

/// An event for the application, or for the engine on its behalf.
// The discriminant is a word. Hidden in the two spare bytes of an address, it would split every
// copy of an event into pieces of odd sizes, which costs store-forwarding stalls (lab/log,
// 2026-11-21).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u64)]
pub enum Event {
    /// A request has arrived. Answer it with [`crate::Transport::reply`] or drop it with
    /// [`crate::Transport::abandon`]. The bytes of `payload` count as received until
    /// [`crate::Transport::payload_consumed`].
    Request {
        /// Names the RPC in the answer.
        rpc: RpcKey,
        /// The client's address.
        from: Address,
        /// The whole request, or its first bytes if only they are kept
        /// ([`crate::Transport::set_payload_prefix`]).
        payload: Bytes,
    },
    /// A call has completed. The bytes of `payload` count as received until
    /// [`crate::Transport::payload_consumed`].
    Response {
        /// The call; it has ended.
        rpc: RpcKey,
        /// The cookie of the call.
        cookie: u64,
        /// The whole response, or its first bytes if only they are kept
        /// ([`crate::Transport::set_payload_prefix`]).
        payload: Bytes,
    },
    /// A call has failed.
    Failed {
        /// The call; it has ended.
        rpc: RpcKey,
        /// The cookie of the call.
        cookie: u64,
        /// Why, and whether the request may have been executed.
        error: RpcError,
    },
    /// A request that the application has, and whose client it watches
    /// ([`crate::Transport::watch_client`]), has ended: its client has gone, or has cancelled the
    /// call.
    ClientGone {
        /// The request; it has ended.
        rpc: RpcKey,
    },
    /// A peer has become known: its packet limit is set with
    /// [`crate::Transport::set_packet_limit`]. Until then packets to it are of a safe size.
    NewPeer(Address),
    /// A command was refused for lack of room ([`crate::CommandError::is_back_pressure`]), and room
    /// exists now.
    Room,
}
