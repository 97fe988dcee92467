//! Canaries: counters that should stay at zero, with the meaning of other values.

/// A counter that should stay at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Name of the counter.
    pub name: &'static str,
    /// Meaning of a value other than zero, and the remedy.
    pub meaning: &'static str,
}

const fn canary(name: &'static str, meaning: &'static str) -> Canary {
    Canary { name, meaning }
}

/// All canaries (HM `util/metrics.py` has such a list).
pub const CANARIES: &[Canary] = &[
    canary("spurious_wakeups", "threads were woken without a message: a bug in apus"),
    canary(
        "resent_discards",
        "retransmissions arrived that were not needed: peers take queueing for loss; see `apus doctor`",
    ),
    canary("rpc_timeouts", "peers were silent until calls were given up"),
    canary(
        "unreachable_refuted",
        "peers answered although the network reported them unreachable: forged ICMP, or a route that was missing for a moment",
    ),
    canary(
        "sends_not_permitted",
        "this host's firewall or its full table of connections dropped packets: see `nft list ruleset`, net.netfilter.nf_conntrack_max",
    ),
    canary("need_acks_exhausted", "clients vanished without acknowledging a response"),
    canary(
        "ack_overflows",
        "acks left in packets of their own: too many calls to one peer between two requests",
    ),
    canary("peers_restarted", "servers were restarted during calls"),
    canary(
        "local_names_taken",
        "another process holds the endpoint's name for peers of this host: see `apus doctor`",
    ),
    canary(
        "local_impostors",
        "a process holds a peer's name on this host and not its UDP socket: see `apus doctor`",
    ),
    canary("driver_datagrams_overflowed", "the socket's buffer was full: raise net.core.rmem_max"),
    canary(
        "driver_datagrams_cut",
        "datagrams were truncated: something on the path merges too much",
    ),
    canary(
        "driver_packets_dropped",
        "packets were passed to the driver without room: a bug in apus",
    ),
    canary(
        "driver_packets_refused",
        "the system refused packets: no route, a firewall, no such host",
    ),
    canary(
        "driver_segmentation_refused",
        "segmentation offload failed: packets were sent one by one",
    ),
    canary(
        "packets_dropped.short_packets",
        "packets shorter than their header: not from apus, or corrupt",
    ),
    canary(
        "packets_dropped.unknown_packet_types",
        "packets of unknown type: not from apus, or from a newer version",
    ),
    canary("packets_dropped.unknown_versions", "peers speak another version of the protocol"),
    canary(
        "packets_dropped.malformed",
        "packets that contradict themselves: not from apus, or corrupt",
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
        "packets_dropped.host_peers",
        "a host has more clients than max_peers_per_host, all busy: an attack, or raise it",
    ),
    canary(
        "packets_dropped.host_rpcs",
        "a host has more requests than max_server_rpcs_per_host: an attack, or raise it",
    ),
    canary(
        "packets_dropped.host_bytes",
        "a host sends more at a time than max_receive_bytes_per_host: an attack, or raise it",
    ),
    canary(
        "packets_dropped.host_responses",
        "a host takes few of its responses, and half of max_send_bytes waits for it: an attack",
    ),
    canary(
        "packets_dropped.unanswered",
        "senders without a session got no answer: a flood, or raise unproven_answers_per_ms",
    ),
    canary(
        "packets_dropped.client_too_old",
        "clients of a version without sessions of 48 bits: upgrade them",
    ),
    canary(
        "packets_dropped.control_queue_full",
        "control packets were not sent: the sender is stuck",
    ),
];
