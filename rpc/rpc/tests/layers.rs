//! Layers of `apus-rpc`: imports point downward, and no files import each other in a circle.

#[path = "../../../transport/apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, and the modules that each may import.
const ALLOWED: [(&str, &[&str]); 19] = [
    ("byte_str", &[]),
    ("code", &[]),
    ("trace_context", &[]),
    ("limits", &[]),
    ("pieces", &[]),
    ("metadata", &["byte_str"]),
    ("context", &["trace_context"]),
    ("status", &["code", "metadata"]),
    ("envelope", &["byte_str", "code", "metadata", "status", "trace_context"]),
    ("body", &["code", "metadata", "pieces", "status"]),
    ("message", &["body", "byte_str", "metadata", "trace_context"]),
    ("handler", &["message", "status"]),
    (
        "client",
        &[
            "body", "code", "context", "envelope", "handler", "limits", "message", "metadata",
            "pieces", "status",
        ],
    ),
    (
        "server",
        &[
            "body", "code", "context", "envelope", "handler", "limits", "message", "metadata",
            "pieces", "status",
        ],
    ),
    ("typed", &["body", "byte_str", "code", "message", "metadata", "status"]),
    ("notifications", &["message", "status", "typed"]),
    ("layers", &["code", "handler", "message", "status"]),
    ("balance", &["client", "code", "handler", "message", "server", "status"]),
    ("telemetry", &["code", "context", "handler", "message", "status", "trace_context"]),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
