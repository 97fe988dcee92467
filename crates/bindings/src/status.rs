//! The outcome of a function as a number.

/// The outcome of a function. The numbers are part of the C interface: they never change, and new
/// ones may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub enum Status {
    /// The function has done what it is for.
    Ok = 0,

    /// The server or its host did not answer, although it was asked again.
    PeerSilent = 1,
    /// No process has the port at the server's host.
    PortClosed = 2,
    /// The server's host does not speak Homa (raw IP only).
    ProtocolUnreachable = 3,
    /// There is no route to the server's host, or it does not answer.
    HostUnreachable = 4,
    /// The firewall of this host drops all packets to the server.
    NotPermitted = 5,
    /// The server was restarted during the call.
    PeerRestarted = 6,
    /// The server has finished the call, and its response is lost.
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
    /// The server takes no calls from this version of apus.
    ClientTooOld = 13,
    /// The request is empty, and the server's version of apus takes no empty messages.
    PeerTooOld = 14,
    /// The response is longer than this endpoint accepts.
    ResponseTooLarge = 15,
    /// The server's process, on this host, ended or closed its endpoint.
    PeerEnded = 16,
    /// The server, on this host, broke the protocol of shared memory.
    ProtocolBroken = 17,
    /// The deadline passed.
    DeadlineExceeded = 18,
    /// The call was cancelled.
    Cancelled = 19,
    /// This endpoint was shut down during the call.
    ShutDown = 20,

    /// The message is longer than `max_message`. Nothing was sent.
    MessageTooLarge = 32,
    /// The message is empty, and the kernel profile has no empty messages. Nothing was sent.
    EmptyMessage = 33,
    /// A limit is reached, and the caller did not want to wait. Nothing was sent; it may succeed later.
    NoRoom = 34,
    /// The endpoint is closed. Nothing was sent.
    Closed = 35,
    /// The endpoint's socket failed for good. Nothing was sent; a new endpoint is needed.
    DriverFailed = 36,
    /// The client does not wait for the reply any more.
    ClientGone = 37,

    /// The address cannot be resolved.
    AddressUnresolved = 48,
    /// The socket cannot be opened, or the system refused a thread or a descriptor.
    OpenFailed = 49,
    /// The options are not valid.
    InvalidOptions = 50,

    /// An argument is not valid, such as a null pointer. Nothing was done.
    InvalidArgument = 64,
    /// The endpoint was opened without descriptors.
    NoDescriptors = 65,
    /// apus failed in a way that is a mistake of its own. The endpoint may be unusable.
    Internal = 66,
    /// A failure that this interface has no number for; the text tells more.
    Other = 67,
}
