//! Route: whether the calls went through shared memory or over the network, and why.

use std::net::{SocketAddr, UdpSocket};

use apus::Settings;
use apus::security::Plaintext;
use apus_report::result::{Figure, Row};
use serde_json::json;

use crate::path::Path;
use apus_command_line::driver::Driver;

/// Properties of the endpoint that keep its calls from shared memory, or do not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permission {
    driver: Driver,
    path: Path,
    /// Whether the configuration allows it.
    is_configured: bool,
    /// Whether packets are sealed and shared memory is not allowed beside them.
    is_sealed: bool,
    /// Whether the endpoint offers it.
    has_local_path: bool,
}

impl Permission {
    pub(super) fn new(driver: Driver, path: Path, settings: &Settings, has_path: bool) -> Self {
        let security = settings.security.as_ref();
        Self {
            driver,
            path,
            is_configured: settings.local != Some(false),
            is_sealed: security.is_some_and(|it| it.plaintext != Plaintext::LocalOnly),
            has_local_path: has_path,
        }
    }
}

/// The paths of the calls that have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// `memory`, or the driver that carried all calls.
    path: &'static str,
    /// Number of calls through shared memory.
    memory_calls: u64,
    /// The reason why no call went through shared memory; empty if one did.
    why_not_memory: &'static str,
}

impl Route {
    /// Returns the route of calls to `peer`, `memory_calls` of which went through shared memory.
    pub(super) fn new(permission: &Permission, peer: SocketAddr, memory_calls: u64) -> Self {
        let network = match permission.driver {
            Driver::Udp => "udp",
            Driver::Raw => "raw",
        };
        let path = if memory_calls > 0 { "memory" } else { network };
        let why_not_memory = if memory_calls > 0 { "" } else { reason(permission, peer) };
        Self { path, memory_calls, why_not_memory }
    }

    /// Adds the route to the result.
    pub(super) fn add_to(&self, row: Row) -> Row {
        let Self { path, memory_calls, why_not_memory } = self;
        let row = row
            .with("path", Figure::Detail(json!(path)))
            .with("memory_calls", Figure::Detail(json!(memory_calls)));
        if why_not_memory.is_empty() {
            return row;
        }
        row.with("why_not_memory", Figure::Detail(json!(why_not_memory)))
    }
}

fn reason(permission: &Permission, peer: SocketAddr) -> &'static str {
    // An address that a socket can bind is one of this host.
    let is_here = |ip| UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok();
    match permission {
        Permission { driver: Driver::Raw, .. } => "--driver raw carries every call",
        Permission { path: Path::Udp, .. } => "--path udp was given",
        Permission { is_configured: false, .. } => "the configuration has `local = false`",
        Permission { is_sealed: true, .. } => {
            "packets are sealed, and the configuration does not have `plaintext = \"local-only\"`"
        }
        Permission { has_local_path: false, .. } => {
            "the system refuses a prerequisite; `apus doctor` names it"
        }
        _ if !is_here(peer.ip().to_canonical()) => "the peer is on another host",
        _ => {
            "the first calls use the network while both ends connect; or the service does not use shared memory, belongs \
             to another user, or is in another network namespace"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ([u8; 4], u16) = ([127, 0, 0, 1], 4000);
    const FREE: Permission = Permission {
        driver: Driver::Udp,
        path: Path::Auto,
        is_configured: true,
        is_sealed: false,
        has_local_path: true,
    };

    #[test]
    fn each_reason_is_named() {
        // An address for documentation: RFC 5737.
        let elsewhere = ([192, 0, 2, 1], 4000);
        for (permission, peer, part) in [
            (Permission { driver: Driver::Raw, ..FREE }, HERE, "--driver raw"),
            (Permission { path: Path::Udp, ..FREE }, HERE, "--path udp"),
            (Permission { is_configured: false, ..FREE }, HERE, "local = false"),
            (Permission { is_sealed: true, ..FREE }, HERE, "sealed"),
            (Permission { has_local_path: false, ..FREE }, HERE, "apus doctor"),
            (FREE, elsewhere, "another host"),
            (FREE, HERE, "the first calls"),
        ] {
            let route = Route::new(&permission, peer.into(), 0);
            assert!(route.why_not_memory.contains(part), "{route:?}");
            assert_ne!(route.path, "memory");
        }
        let route = Route::new(&FREE, HERE.into(), 3);
        assert_eq!((route.path, route.memory_calls, route.why_not_memory), ("memory", 3, ""));
    }

    #[test]
    fn the_configuration_decides() {
        let sealed = |text: &str| {
            let settings = text.parse().unwrap();
            Permission::new(Driver::Udp, Path::Auto, &settings, true).is_sealed
        };
        assert!(!sealed(""));
        assert!(sealed("[security]\nmode = 'secret'\nsecret = '/s'"));
        assert!(!sealed("[security]\nmode = 'secret'\nsecret = '/s'\nplaintext = 'local-only'"));
    }
}
