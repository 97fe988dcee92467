//! The outcome of a function as a number.

use std::ffi::CStr;

/// The outcome of a function. The numbers are part of the C interface: they never change, and new
/// ones may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub enum Status {
    /// The function succeeded.
    Ok = 0,

    /// The server or its host did not answer, even after repetitions.
    PeerSilent = 1,
    /// No process has the port at the server's host.
    PortClosed = 2,
    /// The server's host does not support Homa (raw IP only).
    ProtocolUnreachable = 3,
    /// There is no route to the server's host, or it does not answer.
    HostUnreachable = 4,
    /// The firewall of this host drops all packets to the server.
    NotPermitted = 5,
    /// The server was restarted during the call.
    PeerRestarted = 6,
    /// The server executed the call, but its response is lost.
    ResponseLost = 7,
    /// The server has more requests than it can serve, and refused this one.
    Overloaded = 8,
    /// The request is longer than the server accepts.
    RequestTooLarge = 9,
    /// The peer does not serve requests.
    NotServing = 10,
    /// The server is shutting down.
    PeerShuttingDown = 11,
    /// The server's application dropped the request without a reply.
    Abandoned = 12,
    /// The server accepts no calls from this version of apus.
    ClientTooOld = 13,
    /// The request is empty, and the server's version of apus accepts no empty messages.
    PeerTooOld = 14,
    /// The response is longer than this endpoint accepts.
    ResponseTooLarge = 15,
    /// The server's process, on this host, ended or closed its endpoint.
    PeerEnded = 16,
    /// The server, on this host, violated the shared-memory protocol.
    ProtocolBroken = 17,
    /// The deadline passed.
    DeadlineExceeded = 18,
    /// The call was cancelled.
    Cancelled = 19,
    /// This endpoint was shut down during the call.
    ShutDown = 20,
    /// No keys could be agreed on with the server: one of the two ends refuses the other's
    /// identity.
    Untrusted = 21,

    /// The message is longer than `max_message`. It was not sent.
    MessageTooLarge = 32,
    /// The message is empty, and the kernel profile has no empty messages. It was not sent.
    EmptyMessage = 33,
    /// A limit is reached, and the caller does not wait. The message was not sent; a later attempt
    /// may succeed.
    NoRoom = 34,
    /// The endpoint is closed. The message was not sent.
    Closed = 35,
    /// The endpoint's socket failed permanently. The message was not sent; a new endpoint is
    /// needed.
    DriverFailed = 36,
    /// The client no longer waits for the reply.
    ClientGone = 37,

    /// The address cannot be resolved.
    AddressUnresolved = 48,
    /// The socket cannot be opened, or the system refused a thread or a descriptor.
    OpenFailed = 49,
    /// The options are invalid.
    InvalidOptions = 50,

    /// An argument is invalid, such as a null pointer. The function had no effect.
    InvalidArgument = 64,
    /// The endpoint was opened without descriptors.
    NoDescriptors = 65,
    /// A bug in apus. The endpoint may be unusable.
    Internal = 66,
    /// A failure without a number in this interface; see the text.
    Other = 67,
}

impl Status {
    /// Every status with its name.
    pub const ALL: &'static [(Self, &'static CStr)] = &[
        (Self::Ok, c"ok"),
        (Self::PeerSilent, c"peer_silent"),
        (Self::PortClosed, c"port_closed"),
        (Self::ProtocolUnreachable, c"protocol_unreachable"),
        (Self::HostUnreachable, c"host_unreachable"),
        (Self::NotPermitted, c"not_permitted"),
        (Self::PeerRestarted, c"peer_restarted"),
        (Self::ResponseLost, c"response_lost"),
        (Self::Overloaded, c"overloaded"),
        (Self::RequestTooLarge, c"request_too_large"),
        (Self::NotServing, c"not_serving"),
        (Self::PeerShuttingDown, c"peer_shutting_down"),
        (Self::Abandoned, c"abandoned"),
        (Self::ClientTooOld, c"client_too_old"),
        (Self::PeerTooOld, c"peer_too_old"),
        (Self::ResponseTooLarge, c"response_too_large"),
        (Self::PeerEnded, c"peer_ended"),
        (Self::ProtocolBroken, c"protocol_broken"),
        (Self::DeadlineExceeded, c"deadline_exceeded"),
        (Self::Cancelled, c"cancelled"),
        (Self::ShutDown, c"shut_down"),
        (Self::Untrusted, c"untrusted"),
        (Self::MessageTooLarge, c"message_too_large"),
        (Self::EmptyMessage, c"empty_message"),
        (Self::NoRoom, c"no_room"),
        (Self::Closed, c"closed"),
        (Self::DriverFailed, c"driver_failed"),
        (Self::ClientGone, c"client_gone"),
        (Self::AddressUnresolved, c"address_unresolved"),
        (Self::OpenFailed, c"open_failed"),
        (Self::InvalidOptions, c"invalid_options"),
        (Self::InvalidArgument, c"invalid_argument"),
        (Self::NoDescriptors, c"no_descriptors"),
        (Self::Internal, c"internal"),
        (Self::Other, c"other"),
    ];

    /// Returns the name, such as `deadline_exceeded`.
    ///
    /// # Panics
    ///
    /// Unreachable: a test checks that each status has a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let (_, name) = Self::ALL.iter().find(|(status, _)| *status == self).expect("a name");
        name.to_str().expect("names are ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_name_of_its_own() {
        let source = include_str!("status.rs");
        let defined = source.lines().filter(|line| line.contains(" = ") && line.ends_with(','));
        assert_eq!(Status::ALL.len(), defined.count());
        let names: std::collections::BTreeSet<_> =
            Status::ALL.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), Status::ALL.len());
        for (status, name) in Status::ALL {
            assert_eq!(status.name(), name.to_str().unwrap());
        }
    }
}
