//! A call failed: what to do about it?

use apus::{CallError, FailReason, Outcome, Refusal, RpcError};

/// What whoever made the call can do; empty if the error itself says everything.
pub(super) fn advice(error: &CallError) -> &'static str {
    match error {
        CallError::Failed(RpcError { reason, .. }) => after(reason),
        _ => "",
    }
}

const fn after(reason: &FailReason) -> &'static str {
    match reason {
        FailReason::PeerSilent { .. } => {
            "Is the host up, does the port belong to an apus service, and does every firewall between \
             let its packets pass (UDP, or with --driver raw IP protocol 146)?"
        }
        FailReason::PortClosed => "Start a service there, `apus serve ADDR` for instance.",
        FailReason::HostUnreachable => {
            "Check the address, and the way to it with `ip route get HOST`."
        }
        FailReason::NotPermitted => "Look at the firewall rules of this host.",
        FailReason::PeerRestarted => "Call again if executing the request twice does no harm.",
        FailReason::Refused(refusal) => after_refusal(*refusal),
        FailReason::DeadlineExceeded => "Allow more time: `--timeout 10`, for instance.",
        _ => "",
    }
}

const fn after_refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Overloaded => "Call again later.",
        Refusal::TooLarge => "Send less: `--size 100`, for instance.",
        Refusal::NotServing => "That port belongs to a client; call a service.",
        Refusal::ShuttingDown => "Call again when the service is back.",
        Refusal::Abandoned => "The service's own log may say why.",
    }
}

/// An outcome in the words of `--json`.
pub(super) const fn outcome(error: &CallError) -> &'static str {
    match error.outcome() {
        Outcome::NotExecuted => "not executed",
        Outcome::Executed => "executed",
        Outcome::Unknown => "unknown",
    }
}
