//! Events of a world.

use apus_fs_core::client::{ClientCall, Invalidation, NotifyToken, OpToken};
use apus_fs_core::server::CallbackToken;
use bytes::Bytes;

use crate::history::MountId;
use crate::scenario::Fault;

/// Something that happens at some time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A request reaches the server.
    Request { call: u64, bytes: Bytes },
    /// A response reaches its client.
    Response { call: u64, bytes: Bytes },
    /// A client's transport gives a call up.
    CallFailed { call: u64 },
    /// A callback reaches a client.
    Callback { callback: u64, bytes: Bytes },
    /// Its response reaches the server.
    Answer { callback: u64, bytes: Bytes },
    /// The server's transport gives a callback up.
    CallbackFailed { callback: u64 },
    /// A client's kernel has dropped the notified items.
    Notified { host: usize, mount: MountId, notification: NotifyToken, items: Vec<Invalidation> },
    /// A client's deadline.
    ClientWake { host: usize, mount: MountId },
    /// The server's deadline, or the end of a burst.
    ServerWake { life: u32 },
    /// A signal arrives at a process that waits for an operation.
    Interrupt { host: usize, mount: MountId, token: OpToken },
    /// An application continues.
    Application { host: usize, mount: MountId, thread: usize },
    /// A disturbance starts.
    Fault(Fault),
    /// The server starts again.
    ServerStart,
    /// A client mounts again.
    ClientStart { host: usize },
    /// A paused client continues.
    Resume { host: usize, mount: MountId },
    /// Applications end, and all disturbances, too.
    Closing,
}

/// A call of a client that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) host: usize,
    pub(super) mount: MountId,
    pub(super) call: ClientCall,
    /// It is in the hands of this life of the server.
    pub(super) at_server: Option<u32>,
}

/// A callback of the server that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callback {
    pub(super) host: usize,
    pub(super) mount: MountId,
    pub(super) life: u32,
    pub(super) callback: CallbackToken,
}
