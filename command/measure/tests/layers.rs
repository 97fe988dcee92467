//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[
    (
        "",
        &[
            "clock",
            "error",
            "machine",
            "repeat",
            "program",
            "process",
            "plan",
            "meter",
            "ping_pong",
            "exchange",
        ],
    ),
    ("machine", &["cores", "cpu_ticks", "background_load", "pm_qos", "process_memory"]),
    ("repeat", &["interference"]),
    (
        "process",
        &[
            "protocol",
            "stop",
            "clock_offset",
            "control",
            "handle",
            "member",
            "crew",
            "agent",
            "relay",
            "spawner",
        ],
    ),
    ("exchange", &["path", "endpoint", "engine_counters", "client", "server", "sides", "pair"]),
];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
