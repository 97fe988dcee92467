"""A message transport with low tail latency: Homa in user space over UDP.

An `Endpoint` sends requests and serves them. There are no connections. Each request and each
response is a message of 0 bytes to 64 MB. A request is executed at most once, and a failed call
states whether it was.

    import apus, threading

    server = apus.Endpoint.bind("127.0.0.1:0")

    def serve():
        for request in server:
            request.reply(bytes(request.payload).upper())

    threading.Thread(target=serve, daemon=True).start()

    with apus.Endpoint.client() as client:
        assert client.call(server.address, b"hello") == b"HELLO"

`apus.aio` is the asyncio version. `python -m apus demo` measures it on this machine.
"""

from ._apus import (
    Address,
    Completion,
    Endpoint,
    Message,
    Request,
    __version__,
    reply_all,
    resolve,
)
from .errors import (
    AddressError,
    ApusError,
    CallError,
    Cancelled,
    ClientGone,
    ClosedError,
    DeadlineExceeded,
    Execution,
    MessageTooLarge,
    NoRoom,
    OpenError,
    OptionsError,
    Overloaded,
    PeerLost,
    Refused,
    ReplyError,
    Unreachable,
    Untrusted,
    WrongLoop,
)

__all__ = [
    "Address",
    "AddressError",
    "ApusError",
    "CallError",
    "Cancelled",
    "ClientGone",
    "ClosedError",
    "Completion",
    "DeadlineExceeded",
    "Endpoint",
    "Execution",
    "Message",
    "MessageTooLarge",
    "NoRoom",
    "OpenError",
    "OptionsError",
    "Overloaded",
    "PeerLost",
    "Refused",
    "ReplyError",
    "Request",
    "Unreachable",
    "Untrusted",
    "WrongLoop",
    "__version__",
    "reply_all",
    "resolve",
]
