//! The import order of this crate's modules.

use apus_testbed::layers::{Layer, violations};

const ORDER: &[Layer<'_>] = &[
    ("", &["merge", "report", "perfetto", "view"]),
    ("merge", &["clock_domains", "associations", "rpcs", "clock_offset", "clocks"]),
    ("perfetto", &["rows", "nesting", "schema", "writer"]),
    (
        "report",
        &[
            "distribution",
            "filter",
            "intervals",
            "thread_records",
            "stages",
            "cores",
            "delays",
            "grants",
            "handoffs",
            "losses",
            "rpcs",
            "rtt",
            "timeline",
            "files",
            "scenario",
        ],
    ),
    (
        "view",
        &[
            "cells",
            "origin",
            "report_view",
            "cores",
            "delays",
            "grants",
            "handoffs",
            "losses",
            "rpcs",
            "rtt",
            "timeline",
            "files",
        ],
    ),
];

#[test]
fn modules_form_layers() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
