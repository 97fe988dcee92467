//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[(
    "",
    &[
        "failure",
        "output",
        "destination",
        "files",
        "experiment",
        "configuration",
        "driver",
        "definitions",
        "generated",
        "exit",
        "program",
        "signals",
        "testing",
    ],
)];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
