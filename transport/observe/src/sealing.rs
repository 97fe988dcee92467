//! Names and meanings of the counters of sealed packets.
//!
//! `apus-seal` counts; the names are here, so that readers of counters need no cryptography. A test
//! of `apus` compares.

use apus_proto::Metadata;

/// Counters of an endpoint with sealed packets, in the order of their reporting.
pub const SEALING: &[Metadata] = &[
    Metadata { name: "seal_handshakes_begun", help: &["Handshakes that this end has begun."] },
    Metadata {
        name: "seal_handshakes_as_client",
        help: &["Handshakes that this end has completed as client."],
    },
    Metadata {
        name: "seal_handshakes_as_server",
        help: &["Handshakes that this end has completed as server."],
    },
    Metadata {
        name: "seal_handshakes_resumed",
        help: &["Completed handshakes that resumed an earlier one."],
    },
    Metadata {
        name: "seal_cookies_sent",
        help: &["Clients that were asked to come again with a cookie."],
    },
    Metadata {
        name: "seal_hellos_dropped",
        help: &[
            "First packets of handshakes that were dropped for lack of room, or because there were too many in a second.",
        ],
    },
    Metadata { name: "seal_packets_opened", help: &["Packets that were opened."] },
    Metadata { name: "seal_packets_sealed", help: &["Packets that were sealed."] },
    Metadata {
        name: "seal_replays",
        help: &["Packets that were dropped because their number had been used."],
    },
    Metadata {
        name: "seal_late",
        help: &[
            "Packets that were dropped because they came late: their peer uses newer keys, and their session has ended.",
        ],
    },
    Metadata {
        name: "seal_forgeries",
        help: &["Packets that were dropped because their tag was wrong."],
    },
    Metadata {
        name: "seal_without_key",
        help: &["Packets that were dropped because there is no key for their sender."],
    },
    Metadata { name: "seal_clear_packets", help: &["Packets in the clear, which were dropped."] },
    Metadata {
        name: "seal_unsent",
        help: &["Outgoing packets that were not sent for lack of a key."],
    },
    Metadata { name: "seal_no_keys_sent", help: &["NO_KEY packets that were sent."] },
    Metadata {
        name: "seal_no_keys_believed",
        help: &["NO_KEY packets that led to a new handshake."],
    },
    Metadata {
        name: "seal_rekeys",
        help: &["Keys that were replaced by the next generation, for sealing."],
    },
    Metadata {
        name: "seal_peers_revoked",
        help: &["Peers that were removed because they are not trusted any more."],
    },
    Metadata {
        name: "seal_failures_expired",
        help: &["Handshakes that failed because of an expired certificate."],
    },
    Metadata {
        name: "seal_failures_not_yet_valid",
        help: &[
            "Handshakes that failed because of a certificate that is not valid yet: a clock is wrong.",
        ],
    },
    Metadata {
        name: "seal_failures_unknown_ca",
        help: &["Handshakes that failed because of a certificate of another CA."],
    },
    Metadata {
        name: "seal_failures_name_mismatch",
        help: &[
            "Handshakes that failed because of a certificate without the address that was called.",
        ],
    },
    Metadata {
        name: "seal_failures_not_allowed",
        help: &[
            "Handshakes that failed because of an identity that is not on the allow list, here or at the peer.",
        ],
    },
    Metadata {
        name: "seal_failures_unknown_key",
        help: &["Handshakes that failed because of a key that is not in the list."],
    },
    Metadata {
        name: "seal_failures_revoked",
        help: &["Handshakes that failed because of a revoked certificate."],
    },
    Metadata {
        name: "seal_failures_bad_certificate",
        help: &["Handshakes that failed because of a damaged certificate, or one for another use."],
    },
    Metadata {
        name: "seal_failures_no_certificate",
        help: &["Handshakes that failed because of a peer that shows no certificate."],
    },
    Metadata {
        name: "seal_failures_incompatible",
        help: &["Handshakes that failed because of nothing in common: another mode, for example."],
    },
    Metadata {
        name: "seal_failures_protocol",
        help: &["Handshakes that failed because of damaged messages."],
    },
    Metadata {
        name: "seal_failures_timeout",
        help: &["Handshakes that failed because of no answer."],
    },
    Metadata {
        name: "seal_failures_overloaded",
        help: &["Handshakes that failed because of too many handshakes or peers at the other end."],
    },
    Metadata {
        name: "seal_failures_internal",
        help: &["Handshakes that failed because of the cryptographic library."],
    },
];
