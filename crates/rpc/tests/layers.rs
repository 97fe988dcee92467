//! Layers of `apus-rpc`: imports go downward only, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, and what each may import.
const ALLOWED: [(&str, &[&str]); 16] = [
    ("byte_str", &[]),
    ("code", &[]),
    ("trace_context", &[]),
    ("limits", &[]),
    ("metadata", &["byte_str"]),
    ("context", &["trace_context"]),
    ("status", &["code", "metadata"]),
    ("envelope", &["byte_str", "code", "metadata", "status", "trace_context"]),
    ("body", &["code", "metadata", "status"]),
    ("message", &["body", "byte_str", "metadata", "trace_context"]),
    ("handler", &["message", "status"]),
    (
        "client",
        &[
            "body", "code", "context", "envelope", "handler", "limits", "message", "metadata",
            "status",
        ],
    ),
    (
        "server",
        &[
            "body", "code", "context", "envelope", "handler", "limits", "message", "metadata",
            "status",
        ],
    ),
    ("typed", &["body", "byte_str", "code", "message", "metadata", "status"]),
    ("layers", &["code", "handler", "message", "status"]),
    ("balance", &["client", "code", "handler", "message", "server", "status"]),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
