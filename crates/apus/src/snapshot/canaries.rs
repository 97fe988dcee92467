//! Which counters should stay at zero?

/// A counter that should not move, and what it means if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Its name.
    pub name: &'static str,
    /// What has happened, and what to do.
    pub meaning: &'static str,
}

const fn canary(name: &'static str, meaning: &'static str) -> Canary {
    Canary { name, meaning }
}

/// All of them (metrics.py of the kernel module has such a list; reference 4).
pub const CANARIES: &[Canary] = &[
    canary("spurious_wakeups", "threads were woken for nothing: a fault of apus"),
    canary("rpc_timeouts", "peers were silent for so long that calls were given up"),
    canary("need_acks_exhausted", "clients vanished without acknowledging a response"),
    canary(
        "ack_overflows",
        "acks had to leave alone: too many calls to one peer between two requests",
    ),
    canary("peers_restarted", "servers were restarted during calls"),
    canary("driver_datagrams_overflowed", "the socket's buffer was full: raise net.core.rmem_max"),
    canary(
        "driver_datagrams_cut",
        "datagrams were cut short: something on the path merges too much",
    ),
    canary("driver_packets_dropped", "packets were handed over without room: a fault of apus"),
    canary(
        "driver_packets_refused",
        "the system refused packets: no route, a firewall, no such host",
    ),
    canary("driver_segmentation_refused", "segmentation offload failed: packets went one by one"),
    canary(
        "packets_dropped.short_packets",
        "packets shorter than their header: not apus's, or broken",
    ),
    canary(
        "packets_dropped.unknown_packet_types",
        "packets of no known type: not apus's, or newer",
    ),
    canary("packets_dropped.unknown_versions", "peers speak another version of the protocol"),
    canary(
        "packets_dropped.malformed",
        "packets that contradict themselves: not apus's, or broken",
    ),
    canary("packets_dropped.wrong_port", "packets for another port: a peer has the wrong address"),
    canary("packets_dropped.length_mismatches", "packets disagree about their message's length"),
    canary(
        "packets_dropped.too_many_gaps",
        "messages arrived in too many pieces: the network reorders a lot",
    ),
    canary(
        "packets_dropped.no_buffers",
        "no room for messages: the application is slow, or raise max_receive_bytes",
    ),
    canary("packets_dropped.wrong_role", "packets from the wrong end of a call: a faulty peer"),
    canary("packets_dropped.too_many_peers", "more peers than max_peers: raise it"),
    canary(
        "packets_dropped.too_many_unconfirmed",
        "too many new clients at once, or forged addresses",
    ),
    canary("packets_dropped.control_queue_full", "answers were not sent: the sender is stuck"),
];
