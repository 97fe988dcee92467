//! The import order of this crate's modules.

use apus_testbed::layers::{Layer, violations};

const ORDER: &[Layer<'_>] = &[
    (
        "",
        &[
            "call",
            "observation",
            "payload",
            "scenario",
            "directory",
            "violation",
            "checker",
            "event_log",
            "generator",
            "observer",
            "panic_hook",
            "simulation",
            "seed",
            "swarm",
        ],
    ),
    (
        "checker",
        &[
            "contract",
            "ranges",
            "amplification",
            "content",
            "execution",
            "order",
            "incoming",
            "liveness",
            "memory",
            "permission",
            "recovery",
        ],
    ),
    (
        "generator",
        &[
            "random",
            "config",
            "fabric",
            "faults",
            "kernel",
            "sizes",
            "load",
            "sharing",
            "outages",
            "processors",
            "overload",
        ],
    ),
    ("simulation", &["stack", "agenda", "datagrams", "host", "run"]),
];

#[test]
fn modules_form_layers() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
