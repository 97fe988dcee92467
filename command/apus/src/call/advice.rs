//! Advice: remedies for a failed call, by kind of failure and by the state of the peer.

use std::time::Duration;

use apus::security::HandshakeError;
use apus::{CallError, Execution, FailureKind, Refusal, RpcError};

/// Facts that decide which advice helps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Circumstances {
    /// The latest failed handshake with the peer, if any.
    pub(super) handshake: Option<HandshakeError>,
    /// Duration of the call.
    pub(super) waited: Duration,
    /// Whether the peer has sent anything since this program started.
    pub(super) is_alive: bool,
}

/// Longest call that may have had too little time. Chosen by us: a handler that takes longer is
/// rare, and its caller knows it.
const SHORT: Duration = Duration::from_secs(5);

/// Returns advice for the user; empty if the error itself is sufficient.
pub(super) fn advice(error: &CallError, facts: &Circumstances) -> &'static str {
    let CallError::Failed(RpcError { kind, .. }) = error else { return "" };
    match kind {
        FailureKind::PeerSilent { .. } if facts.is_alive => {
            "It has responded before: check that its process still runs, and the path to it with `apus doctor ADDR`."
        }
        FailureKind::PeerSilent { .. } => UNREACHABLE,
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
        FailureKind::DeadlineExceeded => for_deadline(facts),
        _ => "",
    }
}

const UNREACHABLE: &str = "Check that the host is up, that the port belongs to an apus service, and that every firewall on the way \
     passes its packets (UDP, or IP protocol 146 with --driver raw).";

/// More time helps only against a peer that is alive and had little of it.
fn for_deadline(facts: &Circumstances) -> &'static str {
    match facts {
        Circumstances { is_alive: false, .. } => UNREACHABLE,
        Circumstances { waited, .. } if *waited < SHORT => {
            "Allow more time, for instance `--timeout 10`."
        }
        _ => {
            "The service is alive, and no reply has arrived. `apus top` on its host shows whether it is still at work; \
             `apus doctor ADDR` checks whether long packets arrive."
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: FailureKind, seconds: u64, is_alive: bool) -> &'static str {
        let error = CallError::Failed(RpcError { kind, execution: Execution::Unknown });
        let waited = Duration::from_secs(seconds);
        advice(&error, &Circumstances { waited, is_alive, ..Circumstances::default() })
    }

    #[test]
    fn more_time_is_advised_only_where_it_may_help() {
        let deadline = |seconds, is_alive| of(FailureKind::DeadlineExceeded, seconds, is_alive);
        assert!(deadline(1, true).contains("--timeout 10"));
        for (seconds, is_alive, part) in
            [(75, true, "apus doctor"), (75, false, "firewall"), (0, false, "firewall")]
        {
            let text = deadline(seconds, is_alive);
            assert!(text.contains(part) && !text.contains("--timeout"), "{text}");
        }
    }
}
