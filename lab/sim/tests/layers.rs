//! The modules of the crate form layers: no upward import and no circle.

use std::path::Path;

use apus_testbed::layers::{Layer, violations};

/// The modules of each folder, from the lowest layer to the highest.
const ORDER: &[Layer<'_>] = &[
    (
        "",
        &[
            "message",
            "packet",
            "topology",
            "network",
            "kernel",
            "host",
            "dctcp",
            "sird",
            "processor",
            "fault",
            "fabric",
            "oracle",
            "published",
            "experiment",
            "preset",
            "text",
        ],
    ),
    ("host", &["interface", "address", "spray", "frame", "apus", "module", "processes"]),
    (
        "kernel",
        &[
            "objection",
            "incoming",
            "outgoing",
            "parameters",
            "peer",
            "rpc",
            "event",
            "packet",
            "module",
            "grants",
            "tx",
            "timer",
            "rx",
        ],
    ),
    (
        "dctcp",
        &[
            "config",
            "connection_info",
            "segment",
            "reassembly",
            "acks",
            "fraction",
            "rtt",
            "scoreboard",
            "rack",
            "usage",
            "window",
            "sender",
            "connection",
            "fair_queue",
            "host",
        ],
    ),
    ("dctcp::sender", &["state", "timer", "half", "on_timer", "recovery", "on_ack"]),
    ("sird", &["config", "segment", "sender_limit", "incoming", "outgoing", "host"]),
    ("processor", &["costs", "settings", "socket", "stalls", "host"]),
    ("fault", &["burst", "counters", "outages", "settings", "injector"]),
    (
        "fabric",
        &[
            "settings",
            "packets",
            "queue",
            "route",
            "port",
            "event",
            "event_queue",
            "division",
            "mail",
            "barrier",
            "counts",
            "model",
            "measurement",
            "fault_events",
            "regions",
        ],
    ),
    ("oracle", &["rank", "wait_queues", "schedule"]),
    ("published", &["scheme", "queue_length", "setup", "slowdown", "sustainable_load"]),
    ("experiment", &["backlog", "message_rate", "recovery", "load", "slowdown", "measurement"]),
];

#[test]
fn modules_form_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(violations(&src, ORDER), [""; 0]);
}
