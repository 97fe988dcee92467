//! The import order of this crate's modules.

use apus_testbed::layers::{Layer, violations};

const ORDER: &[Layer<'_>] = &[
    ("", &["doctor", "tune"]),
    (
        "doctor",
        &[
            "finding",
            "host",
            "measure",
            "buffers",
            "cores",
            "driver",
            "groups",
            "endpoints",
            "interface",
            "keys",
            "load",
            "power",
            "peer",
            "report",
            "advice",
        ],
    ),
    ("doctor::measure", &["burst", "pace", "segments", "stall", "wakeup"]),
    (
        "doctor::peer",
        &["traffic_class", "packet", "socket", "client", "listener", "path", "service"],
    ),
    ("tune", &["options", "evidence", "config_file", "setting", "search"]),
];

#[test]
fn modules_form_layers() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
