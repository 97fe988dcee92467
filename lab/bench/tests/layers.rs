//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[
    ("", &["keys", "shared_words", "contender", "baseline", "apus", "transport", "load"]),
    ("apus", &["exchange", "pair", "receive_mode", "sealed_apus", "sharded", "traced_apus"]),
    (
        "baseline",
        &[
            "waiter",
            "stream",
            "tcp",
            "tls",
            "udp",
            "udp_gso",
            "udp_gso_echo",
            "unix",
            "cache_lines",
        ],
    ),
    ("baseline::stream", &["buffer_pool", "frames", "send_mode", "client", "server"]),
    ("baseline::tcp", &["socket"]),
    ("baseline::tls", &["session"]),
    ("baseline::unix", &["socket"]),
    ("transport", &["work", "interface", "apus", "tcp"]),
    ("transport::tcp", &["outbox", "readiness", "connection", "client", "server", "spec", "node"]),
    ("load", &["idle", "in_flight", "closed_loop", "open_loop", "unloaded_rtt"]),
];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
