//! Advice: remedies for a failed call, by kind of failure.

use apus::security::HandshakeError;
use apus::{CallError, Execution, FailureKind, Refusal, RpcError};

/// Returns advice for the user; empty if the error itself is sufficient. `handshake` is the latest
/// failed handshake with the peer, if any.
pub(super) fn advice(error: &CallError, handshake: Option<HandshakeError>) -> String {
    let CallError::Failed(RpcError { kind, .. }) = error else { return String::new() };
    match (kind, handshake) {
        (FailureKind::Untrusted, Some(cause)) => {
            format!("Cause: {cause}. `apus keys show` shows the keys of each host.")
        }
        _ => for_kind(kind).to_owned(),
    }
}

const fn for_kind(kind: &FailureKind) -> &'static str {
    match kind {
        FailureKind::PeerSilent { .. } => {
            "Check that the host is up, that the port belongs to an apus service, and that every firewall on the way \
             passes its packets (UDP, or IP protocol 146 with --driver raw)."
        }
        FailureKind::PortClosed => "Start a service there, for instance with `apus serve ADDR`.",
        FailureKind::HostUnreachable => {
            "Check the address, and the route to it with `ip route get HOST`."
        }
        FailureKind::NotPermitted => {
            "Check the firewall rules of this host, and net.netfilter.nf_conntrack_max."
        }
        FailureKind::PeerRestarted => "Call again if executing the request twice does no harm.",
        FailureKind::Untrusted => {
            "Compare the keys of both hosts: `apus keys show`, and the table [security] of their configurations."
        }
        FailureKind::PeerTooOld => "Upgrade the service, or send at least one byte.",
        FailureKind::Refused(refusal) => for_refusal(*refusal),
        FailureKind::DeadlineExceeded => "Allow more time, for instance `--timeout 10`.",
        _ => "",
    }
}

const fn for_refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Overloaded => "Call again later.",
        Refusal::TooLarge => "Send less, for instance `--size 100`.",
        Refusal::NotServing => "That port belongs to a client; call a service.",
        Refusal::ShuttingDown => "Call again when the service is back.",
        Refusal::Abandoned => "The service's own log may say why.",
        Refusal::ClientTooOld => "Upgrade this program.",
        Refusal::ResponseTooLarge => "Ask for less, or for several parts.",
    }
}

/// Returns whether the request was executed, as worded in `--json`.
pub(super) const fn execution(error: &CallError) -> &'static str {
    match error.execution() {
        Execution::NotExecuted => "not executed",
        Execution::Executed => "executed",
        Execution::Unknown => "unknown",
    }
}
