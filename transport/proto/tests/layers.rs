//! The layers of the core: which module may import which, and no circle of files.
//!
//! A module is a folder of `src`, or a file beside the folders. The table is in order, the lowest
//! first: a module imports only modules above it in the table, so that no import goes upward and no
//! circle of modules exists. Methods would be a way around it: the methods of a type are defined in
//! the module of the type.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;
use std::collections::BTreeSet;

/// Modules, the lowest first, with the modules that they import.
const LAYERS: &[(&str, &[&str])] = &[
    ("histogram", &[]),
    ("ranges", &[]),
    ("slots", &[]),
    ("time", &[]),
    ("secret", &[]),
    ("neighbours", &["time"]),
    ("unread_bounds", &["time"]),
    ("limits", &[]),
    ("config", &[]),
    ("drop_reason", &[]),
    ("extent", &[]),
    ("message", &["ranges", "time", "limits", "extent"]),
    ("error", &["message"]),
    ("rpc_key", &[]),
    ("peer", &["ranges", "time", "secret", "limits", "config", "extent", "rpc_key"]),
    ("datagram", &["peer"]),
    ("metrics", &["histogram", "time", "drop_reason", "error", "peer"]),
    ("rpc", &["slots", "time", "message", "error", "rpc_key", "peer"]),
    ("event", &["error", "rpc_key", "peer"]),
    ("budget", &["time", "limits", "config", "extent", "message", "error", "peer", "event"]),
    ("probe", &["limits", "drop_reason", "error", "rpc_key", "peer"]),
    ("observation", &["time", "rpc_key", "metrics", "rpc", "event", "probe"]),
    ("priority", &["histogram", "time", "neighbours", "config", "extent", "peer"]),
    (
        "grant",
        &["time", "limits", "config", "message", "rpc_key", "peer", "metrics", "rpc", "budget"],
    ),
    ("inbound", &["time", "config", "message", "metrics", "budget", "priority", "grant"]),
    ("timer", &["time", "limits", "config", "error", "rpc_key", "peer", "rpc"]),
    ("protocol", &["time", "config", "rpc_key", "rpc", "timer"]),
    (
        "tx",
        &[
            "time",
            "limits",
            "config",
            "drop_reason",
            "message",
            "rpc_key",
            "peer",
            "rpc",
            "budget",
            "probe",
            "observation",
            "priority",
            "grant",
            "inbound",
            "protocol",
        ],
    ),
    (
        "lifecycle",
        &[
            "drop_reason",
            "message",
            "error",
            "rpc_key",
            "peer",
            "rpc",
            "event",
            "probe",
            "observation",
            "inbound",
            "protocol",
            "tx",
        ],
    ),
    (
        "expiry",
        &[
            "time",
            "limits",
            "error",
            "rpc_key",
            "peer",
            "rpc",
            "inbound",
            "timer",
            "protocol",
            "tx",
            "lifecycle",
        ],
    ),
    (
        "rx",
        &[
            "time",
            "drop_reason",
            "message",
            "error",
            "rpc_key",
            "peer",
            "datagram",
            "rpc",
            "event",
            "budget",
            "probe",
            "priority",
            "inbound",
            "timer",
            "protocol",
            "tx",
            "lifecycle",
        ],
    ),
    (
        "transport",
        &[
            "time",
            "secret",
            "neighbours",
            "limits",
            "config",
            "extent",
            "message",
            "error",
            "rpc_key",
            "peer",
            "datagram",
            "metrics",
            "rpc",
            "event",
            "probe",
            "observation",
            "inbound",
            "timer",
            "protocol",
            "tx",
            "lifecycle",
            "expiry",
            "rx",
        ],
    ),
];

#[test]
fn modules_import_what_the_table_allows() {
    let sources = Modules::read();
    let mut wrong = Vec::new();
    let mut used: BTreeSet<(&str, String)> = BTreeSet::new();
    for (index, (module, allowed)) in LAYERS.iter().enumerate() {
        for target in *allowed {
            if !LAYERS[..index].iter().any(|(lower, _)| lower == target) {
                wrong.push(format!(
                    "the table lets {module} import {target}, which is not below it"
                ));
            }
        }
    }
    for file in sources.names().filter(|file| !file.is_empty()) {
        let module = top(file);
        let Some((module, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{module} is in no layer"));
            continue;
        };
        for target in sources.uses_of(file) {
            let target = top(&target);
            if target == *module {
                continue;
            }
            if !allowed.contains(&target) {
                wrong.push(format!("{file} imports {target}, which the table does not allow"));
            }
            used.insert((module, target.to_owned()));
        }
    }
    for (module, allowed) in LAYERS {
        for target in *allowed {
            if !used.contains(&(module, (*target).to_owned())) {
                wrong.push(format!("the table lets {module} import {target}, but it does not"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_circle_of_files() {
    let sources = Modules::read();
    let edges: usize = sources.names().map(|file| sources.uses_of(file).len()).sum();
    assert!(edges > 100, "imports are not found: {edges}");
    assert_eq!(sources.circle(), None);
}

#[test]
fn methods_are_defined_in_the_module_of_their_type() {
    let sources = Modules::read();
    let types: Vec<(&str, &str)> = sources
        .names()
        .flat_map(|file| sources.types_of(file).into_iter().map(move |name| (file, name)))
        .collect();
    let mut wrong = Vec::new();
    for file in sources.names() {
        for name in sources.types_with_methods(file) {
            let mut homes = types.iter().filter(|(_, other)| *other == name).peekable();
            if homes.peek().is_some() && !homes.any(|(home, _)| top(home) == top(file)) {
                wrong.push(format!("{file} gives methods to {name} of another module"));
            }
        }
    }
    assert!(types.len() > 50, "types are not found: {}", types.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The module of a file: the first part of its path.
fn top(file: &str) -> &str {
    file.split("::").next().unwrap_or(file)
}
