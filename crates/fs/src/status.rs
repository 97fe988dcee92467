//! Status: what a service or a mount says about itself to `apus fs status`.
//!
//! Other processes of the same user ask for it through [`apus::introspection`], as `apus metrics` does.

use std::net::SocketAddr;

use apus::introspection::{self, Process, Published};
use apus_fs_core::client::ClientStatus;
use serde::{Deserialize, Serialize};

/// Name of the request.
const REQUEST: &str = "fs";
/// Its description.
const ABOUT: &str = "what is served or mounted, as JSON";

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It serves a directory.
    Server,
    /// It mounts a served directory.
    Mount,
}

/// A service or a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What the process does.
    pub role: Role,
    /// Its id.
    pub pid: u32,
    /// Where it listens, or the server of the mount.
    pub address: SocketAddr,
    /// The directory that is served, or on which is mounted.
    pub path: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// The state of a mount.
    pub mount: Option<MountStatus>,
}

/// The state of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MountStatus {
    /// Whether the server responds.
    pub is_live: bool,
    /// Nodes in the cache.
    pub nodes: u64,
    /// Shared leases.
    pub shared: u64,
    /// Exclusive leases.
    pub exclusive: u64,
    /// Bytes of files in the cache.
    pub cached_bytes: u64,
    /// Batches of changes that are not at the server.
    pub waiting_batches: u64,
    /// Bytes of files that are not at the server.
    pub waiting_bytes: u64,
    /// Operations that have not ended.
    pub pending: u64,
    /// Calls that the server has not answered.
    pub outstanding: u64,
    /// Leases that the server wants back, and does not have yet.
    pub recalls_pending: u64,
    /// Operations since the mount was made.
    pub operations: u64,
    /// Calls to the server since then.
    pub calls: u64,
    /// Batches that were sent since then.
    pub batches: u64,
    /// Batches that the server refused since then.
    pub batches_refused: u64,
    /// Leases that the server wanted back since then.
    pub recalls: u64,
    /// Calls since then for bytes that no program waited for yet.
    pub read_ahead: u64,
}

impl MountStatus {
    /// Returns what a client says of itself.
    pub(crate) fn of(client: &ClientStatus) -> Self {
        Self {
            is_live: client.is_live,
            nodes: client.nodes,
            shared: client.shared,
            exclusive: client.exclusive,
            cached_bytes: client.cached_bytes,
            waiting_batches: client.waiting_batches,
            waiting_bytes: client.waiting_bytes,
            pending: client.pending,
            outstanding: client.outstanding,
            recalls_pending: client.recalls_pending,
            operations: client.operations,
            calls: client.calls,
            batches: client.batches,
            batches_refused: client.batches_refused,
            recalls: client.recalls,
            read_ahead: client.read_ahead,
        }
    }
}

/// Responds to requests for a status, until it is dropped.
#[derive(Debug)]
pub(crate) struct StatusService {
    _published: Published,
}

impl StatusService {
    /// Responds with a status that never changes.
    pub(crate) fn fixed(status: &Status) -> Self {
        let response = serde_json::to_vec(status).map_err(|error| error.to_string());
        Self { _published: introspection::publish(REQUEST, ABOUT, move || response.clone()) }
    }

    /// Responds with what `status` returns, which runs in another thread.
    pub(crate) fn asking(
        status: impl Fn() -> Result<Status, String> + Send + Sync + 'static,
    ) -> Self {
        let respond = move || serde_json::to_vec(&status()?).map_err(|error| error.to_string());
        Self { _published: introspection::publish(REQUEST, ABOUT, respond) }
    }
}

/// Returns the services and mounts of this user, and for root also those of others in the same folder, in the order of their
/// process ids.
///
/// # Errors
///
/// The folder of the processes' sockets cannot be read or trusted.
pub fn all() -> Result<Vec<Status>, introspection::Error> {
    // Other processes have endpoints, too, and refuse the request.
    let ask = |process: Process| serde_json::from_slice(&process.request(REQUEST).ok()?).ok();
    Ok(introspection::processes()?.into_iter().filter_map(ask).collect())
}

/// Returns the status of one process.
///
/// # Errors
///
/// The process has no endpoint, does not answer, or neither serves nor mounts a directory.
pub fn of(pid: u32) -> Result<Status, introspection::Error> {
    let response = Process::new(pid).request(REQUEST)?;
    let invalid = |error: serde_json::Error| introspection::Error::InvalidResponse {
        pid,
        message: error.to_string(),
    };
    serde_json::from_slice(&response).map_err(invalid)
}
