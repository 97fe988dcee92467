//! The errors that the core reports.

use crate::message::Payload;
use apus_wire::Refusal;

/// Whether a failed call's request has been executed by the server.
///
/// Requirement `AMO-5`: every failed call states one of these, and never a wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Execution {
    /// The server did not execute the request and never will. Calling again is safe.
    NotExecuted,
    /// The server executed the request, but the response is lost.
    Executed,
    /// It is not known. Calling again may execute the request a second time.
    Unknown,
}

impl Execution {
    /// Returns the execution that a server's refusal states.
    #[must_use]
    pub const fn stated_by(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ResponseTooLarge => Self::Executed,
            _ if refusal.is_before_execution() => Self::NotExecuted,
            _ => Self::Unknown,
        }
    }
}

impl std::fmt::Display for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotExecuted => "the request was not executed",
            Self::Executed => "the request was executed, its response is lost",
            Self::Unknown => "the request may have been executed",
        })
    }
}

/// Why a call failed, and whether its request was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{kind}; {execution}")]
pub struct RpcError {
    /// The kind of failure.
    pub kind: FailureKind,
    /// Whether the request may have been executed.
    pub execution: Execution,
}

/// The kinds of failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FailureKind {
    /// The peer did not answer, not even to repeated requests.
    #[error("peer silent for {silent_ms} ms after {resends} resends")]
    PeerSilent {
        /// Milliseconds since the last sign of life.
        silent_ms: u32,
        /// RESENDs sent in that time.
        resends: u32,
    },
    /// The peer's host answered that the port is closed.
    #[error("port closed at the peer")]
    PortClosed,
    /// The peer's host does not run the protocol (raw IP only).
    #[error("the peer's host does not speak Homa")]
    ProtocolUnreachable,
    /// No route to the peer's host exists, or it does not answer.
    #[error("no such host, or no route to it")]
    HostUnreachable,
    /// This host's firewall, or its full table of connections, drops all packets to the peer.
    #[error(
        "this host's firewall, or its full table of connections, drops all packets to the peer"
    )]
    NotPermitted,
    /// Key agreement with the peer failed: one end refuses the identity of the other. The endpoint
    /// knows the cause.
    #[error("the peer refuses this host's identity, or is refused itself")]
    Untrusted,
    /// The server has been restarted, or has forgotten this client, since the call was sent.
    #[error("the server was restarted during the call")]
    PeerRestarted,
    /// The server has finished the call and no longer has its response.
    #[error("the server has finished the call, and its response did not arrive")]
    ResponseLost,
    /// The server refused the request.
    #[error("the server refused: {}", refusal_text(.0))]
    Refused(Refusal),
    /// The request is empty, and the server's version of apus drops empty messages. A request of
    /// one byte arrives.
    #[error("the request is empty, and the server's version of apus takes no empty messages")]
    PeerTooOld,
    /// The response is longer than `max_message` here.
    #[error("the response has {length} bytes, max_message is {limit} here")]
    ResponseTooLarge {
        /// Length of the response in bytes.
        length: u32,
        /// The limit.
        limit: u64,
    },
    /// The peer's process ended, or closed its endpoint. Reported only for calls to a peer of the
    /// same host; over the network, one of the kinds above is reported instead.
    #[error("the peer's process ended, or closed its endpoint")]
    PeerEnded,
    /// The peer broke the protocol of the memory that it shares with this host's endpoints.
    #[error("the peer broke the protocol of shared memory")]
    ProtocolBroken,
    /// The deadline of the call passed.
    #[error("deadline exceeded")]
    DeadlineExceeded,
    /// The caller cancelled the call.
    #[error("cancelled")]
    Cancelled,
    /// This endpoint was shut down.
    #[error("endpoint shut down")]
    ShutDown,
}

impl FailureKind {
    /// The names of all kinds in metrics (OpenTelemetry's `error.type`).
    pub const NAMES: [&'static str; 16] = [
        "peer_silent",
        "port_closed",
        "protocol_unreachable",
        "host_unreachable",
        "not_permitted",
        "peer_restarted",
        "response_lost",
        "refused",
        "response_too_large",
        "peer_ended",
        "protocol_broken",
        "deadline_exceeded",
        "cancelled",
        "shut_down",
        "peer_too_old",
        "untrusted",
    ];

    /// Returns the name in metrics, without the figures that the kind holds.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Returns the position in [`FailureKind::NAMES`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::PeerSilent { .. } => 0,
            Self::PortClosed => 1,
            Self::ProtocolUnreachable => 2,
            Self::HostUnreachable => 3,
            Self::NotPermitted => 4,
            Self::PeerRestarted => 5,
            Self::ResponseLost => 6,
            Self::Refused(_) => 7,
            Self::ResponseTooLarge { .. } => 8,
            Self::PeerEnded => 9,
            Self::ProtocolBroken => 10,
            Self::DeadlineExceeded => 11,
            Self::Cancelled => 12,
            Self::ShutDown => 13,
            Self::PeerTooOld => 14,
            Self::Untrusted => 15,
        }
    }
}

const fn refusal_text(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Overloaded => "overloaded",
        Refusal::TooLarge => "request longer than it accepts",
        Refusal::NotServing => "not serving requests",
        Refusal::ShuttingDown => "shutting down",
        Refusal::Abandoned => "its application dropped the request without a reply",
        Refusal::ClientTooOld => "it is a later version, which takes no calls from this one",
        Refusal::ResponseTooLarge => "its response is longer than max_message allows it to send",
    }
}

/// A rejected command: an error of the caller, or a limit set by the caller. The state is
/// unchanged. Requirement `BAD-9`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The message is empty, and messages of the kernel profile have at least one byte.
    #[error("the message is empty; in the kernel profile, messages have at least one byte")]
    EmptyMessage,
    /// The message is longer than `max_message`.
    #[error("the message has {length} bytes, max_message is {limit}")]
    TooLarge {
        /// Length of the message in bytes.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many bytes wait to be sent or acknowledged; try again after `Event::Room`.
    #[error("{limit} is reached; wait until earlier messages have left")]
    SendFull {
        /// The parameter that sets the limit.
        limit: &'static str,
    },
    /// Too many calls are live (CAP-2); try again after `Event::Room`.
    #[error("max_client_rpcs is reached; wait until earlier calls have ended")]
    TooManyRpcs,
    /// No further peer can be known (CAP-5); try again after `Event::Room`.
    #[error("max_peers is reached and none is idle; wait or raise it")]
    TooManyPeers,
    /// The RPC has ended. For a reply: the client disappeared or cancelled the call.
    #[error("the RPC has ended")]
    UnknownRpc,
    /// The destination is a multicast or a broadcast address.
    #[error("the destination is no address of a host")]
    NoHost,
    /// The destination is a link-local address without an interface.
    #[error("a link-local address needs %interface, such as [fe80::1%eth0]:4000")]
    NeedsInterface,
    /// The command makes no sense for the RPC, such as a second reply.
    #[error("not possible in the RPC's state")]
    WrongState,
    /// The endpoint was shut down.
    #[error("endpoint shut down")]
    ShutDown,
}

impl CommandError {
    /// Returns whether waiting for `Event::Room` and trying again may help.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        matches!(self, Self::SendFull { .. } | Self::TooManyRpcs | Self::TooManyPeers)
    }
}

/// A call or a reply that was not accepted, with its payload.
///
/// The state is unchanged: the payload may be sent again, for example after `Event::Room` if the
/// reason is [back-pressure](CommandError::is_back_pressure).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Rejected {
    /// Why the message was not accepted.
    pub reason: CommandError,
    /// The message.
    pub payload: Payload,
}
