//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[
    ("", &["layers", "launcher", "packet_socket", "fabric", "delay", "launch"]),
    ("delay", &["checksum", "line", "report", "router"]),
    (
        "fabric",
        &[
            "error",
            "spec",
            "identity",
            "tool",
            "holder",
            "router_path",
            "isolated_host",
            "layout",
            "wiring",
            "shaping",
            "loss",
            "counters",
            "network",
            "persistent",
        ],
    ),
    ("fabric::persistent", &["state", "owner"]),
    (
        "launch",
        &[
            "host_port",
            "hosts",
            "ssh",
            "ranks_error",
            "rendezvous",
            "ranks",
            "handshake",
            "node",
            "registry",
            "coordinator",
            "role",
        ],
    ),
];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
