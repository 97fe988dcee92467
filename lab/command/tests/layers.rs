//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[
    ("", &["network", "bench", "demo", "fabric", "fs", "lab", "sim", "command_line"]),
    ("bench", &["hosts", "network", "contest", "cluster", "sweep", "rpc"]),
    ("fabric", &["hosts", "up", "down", "exec", "show"]),
    ("fs", &["check"]),
    ("sim", &["merge", "run", "check"]),
];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
