//! Settings of a mount.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use apus::PollMode;
use apus_fs_core::client::Lost;

/// Returns the directory where programs of this user keep persistent state. Source: Filesystem
/// Hierarchy Standard, `/var/lib`; XDG Base Directory Specification, `XDG_STATE_HOME`.
fn state_directory() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return "/var/lib/apus".into();
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    // Last resort for a user without a home: files in the temporary folder last for a while.
    state.or_else(home).unwrap_or_else(std::env::temp_dir).join("apus")
}

/// Settings of a mount.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// The server.
    pub server: SocketAddr,
    /// Name of the export; empty for the export without a name.
    pub export: String,
    /// The server as the table of mounts shows it, such as `HOST:PORT/NAME`.
    pub source: String,
    /// Mount point: an existing directory.
    pub path: PathBuf,
    /// Changes are refused.
    pub read_only: bool,
    /// Users other than the mounting user have access. For a user without privileges,
    /// `/etc/fuse.conf` must permit that.
    pub allow_other: bool,
    /// Result of operations while the server does not respond.
    pub lost: Lost,
    /// Folder for changes that can never reach the server; each loss gets a separate directory
    /// (FS-14).
    pub lost_changes: PathBuf,
    /// Strategy of waiting for work.
    pub poll: PollMode,
    /// Sealing of packets; `None` if they are in the clear.
    #[cfg(feature = "tls")]
    pub security: Option<apus::security::Security>,
    /// Time for the server to respond for the first time.
    pub first_response: Duration,
}

impl MountSettings {
    /// Returns the usual settings: writable, for all users if root mounts, waiting for a lost
    /// server, and 10 s for its first response. Lost changes are kept in
    /// `/var/lib/apus/lost-changes` by root, and in `~/.local/state/apus/lost-changes` by others.
    #[must_use]
    pub fn new(server: SocketAddr, path: PathBuf) -> Self {
        Self {
            server,
            export: String::new(),
            source: server.to_string(),
            path,
            read_only: false,
            allow_other: rustix::process::geteuid().is_root(),
            lost: Lost::Wait,
            lost_changes: state_directory().join("lost-changes"),
            poll: PollMode::default(),
            #[cfg(feature = "tls")]
            security: None,
            first_response: Duration::from_secs(10),
        }
    }
}
