//! Status: the state that a service or a mount reports to `apus fs status`.
//!
//! Other processes of the same user request it through [`apus::introspection`], as `apus metrics`
//! does.

use std::net::SocketAddr;

use apus::introspection::{self, Process, Published, Query};
pub use apus_fs_core::client::ClientStatus;
use serde::{Deserialize, Serialize};

/// Name of the request.
const REQUEST: &str = "fs";
/// Its description.
const ABOUT: &str = "what is served or mounted, as JSON";

/// Role of a process.
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
    /// Role of the process.
    pub role: Role,
    /// Its id.
    pub pid: u32,
    /// Listening address, or the server of the mount.
    pub address: SocketAddr,
    /// The served directory, or the mount point.
    pub path: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// The state of a mount.
    pub mount: Option<ClientStatus>,
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

    /// Responds with the result of `status`, which runs in another thread.
    pub(crate) fn asking(
        status: impl Fn() -> Result<Status, String> + Send + Sync + 'static,
    ) -> Self {
        let respond = move || serde_json::to_vec(&status()?).map_err(|error| error.to_string());
        Self { _published: introspection::publish(REQUEST, ABOUT, respond) }
    }
}

/// The services and mounts of a host, and the processes that may be some.
#[derive(Debug, Default)]
pub struct Statuses {
    /// The services and mounts, in the order of their process ids.
    pub found: Vec<Status>,
    /// The processes with endpoints that did not respond: they are stopped, for example.
    pub silent: Vec<introspection::Error>,
}

/// Returns the services and mounts of this user, and for root also those of other users in the same
/// folder. Silent processes delay the others by a second at most.
///
/// # Errors
///
/// The folder of the processes' sockets cannot be read or trusted.
pub fn all() -> Result<Statuses, introspection::Error> {
    let mut statuses = Statuses::default();
    for response in Query::json(REQUEST).all(&introspection::processes()?) {
        match response {
            Ok(status) => statuses.found.push(status),
            Err(error @ introspection::Error::Unresponsive { .. }) => statuses.silent.push(error),
            // Other processes have endpoints, too, and refuse the request.
            Err(_) => {}
        }
    }
    Ok(statuses)
}

/// Returns the status of one process.
///
/// # Errors
///
/// The process has no endpoint, does not answer, or neither serves nor mounts a directory.
pub fn of(pid: u32) -> Result<Status, introspection::Error> {
    Query::json(REQUEST).of(&Process::new(pid))
}
