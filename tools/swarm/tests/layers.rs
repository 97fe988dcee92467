//! The import order of this crate's modules.

use apus_testbed::layers::{Layer, violations};

const ORDER: &[Layer<'_>] = &[
    (
        "",
        &[
            "address",
            "attack",
            "call",
            "observation",
            "payload",
            "scenario",
            "directory",
            "violation",
            "checker",
            "event_log",
            "generator",
            "attacker",
            "observer",
            "panic_hook",
            "simulation",
            "seed",
            "files",
            "swarm",
        ],
    ),
    (
        "checker",
        &[
            "contract",
            "ranges",
            "session",
            "amplification",
            "content",
            "cutoffs",
            "execution",
            "order",
            "incoming",
            "liveness",
            "memory",
            "permission",
            "recovery",
            "undisturbed",
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
            "hostile",
        ],
    ),
    (
        "attacker",
        &[
            "abilities",
            "contract",
            "public",
            "taps",
            "forge",
            "prediction",
            "off_path",
            "informed",
            "on_link",
            "client",
        ],
    ),
    ("simulation", &["stack", "agenda", "datagrams", "envelope", "host", "hostile_host", "run"]),
];

#[test]
fn modules_form_layers() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
