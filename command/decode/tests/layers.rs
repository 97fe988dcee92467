//! The import order of this crate's modules.

use apus_testbed::layers::{Layer, violations};

const ORDER: &[Layer<'_>] = &[
    (
        "",
        &[
            "error",
            "capture_file",
            "frame",
            "datagram",
            "offload",
            "message",
            "note",
            "packet",
            "rpc",
            "unseal",
            "decoder",
            "description",
            "filter",
            "json",
            "summary",
        ],
    ),
    ("capture_file", &["clock", "reader"]),
    ("unseal", &["key_log", "direction"]),
];

#[test]
fn modules_form_layers() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
