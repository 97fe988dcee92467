"""Exceptions of apus. Exceptions of calls state whether the request was executed."""

import enum


class Execution(enum.Enum):
    """Whether the request of a failed call was executed."""

    NOT_EXECUTED = "not executed"
    """The server did not execute the request and never will: calling again is safe."""

    EXECUTED = "executed"
    """The server executed the request, and the response is lost."""

    UNKNOWN = "unknown"
    """Unknown. Calling again may execute the request a second time."""


class ApusError(Exception):
    """The base of all exceptions of apus."""

    def __init__(
        self, text: str, kind: str = "other", execution: Execution = Execution.NOT_EXECUTED
    ) -> None:
        super().__init__(text)
        self.kind = kind
        """The kind of error, such as `"deadline_exceeded"`; docs/python.md has the list."""
        self.execution = execution
        """Whether the request was executed; `NOT_EXECUTED` for operations other than calls."""


class CallError(ApusError):
    """A call failed."""


class Unreachable(CallError, ConnectionError):
    """The server's host or process does not answer or does not exist."""


class PeerLost(CallError, ConnectionError):
    """The server ended, was restarted, or has lost the response."""


class Refused(CallError):
    """The server refused the request, or this endpoint the response."""


class Overloaded(Refused):
    """The server has more requests than it can serve. The request was not executed."""


class Untrusted(CallError):
    """One of the two ends refuses the identity of the other. The request was not executed."""


class DeadlineExceeded(CallError, TimeoutError):
    """The timeout of the call passed."""


class Cancelled(CallError):
    """The call was cancelled."""


class MessageTooLarge(CallError, ValueError):
    """The message is longer than `max_message`. It was not sent."""


class NoRoom(CallError):
    """A limit is reached, and the caller does not wait. The message was not sent; a later attempt
    may succeed."""


class ClosedError(CallError):
    """The endpoint is closed, or was closed during the call."""


class WrongLoop(ApusError, RuntimeError):
    """An endpoint of `apus.aio` was used in another event loop than its own. Nothing was sent."""


class ReplyError(ApusError):
    """A reply could not be sent."""


class ClientGone(ReplyError):
    """The client no longer waits for the reply."""


class AddressError(ApusError, OSError):
    """An address cannot be resolved or is malformed."""


class OpenError(ApusError, OSError):
    """An endpoint cannot be opened."""


class OptionsError(ApusError, ValueError):
    """The options of an endpoint are invalid."""


_CLASSES: dict[str, type[ApusError]] = {
    "peer_silent": Unreachable,
    "port_closed": Unreachable,
    "protocol_unreachable": Unreachable,
    "host_unreachable": Unreachable,
    "not_permitted": Unreachable,
    "peer_restarted": PeerLost,
    "response_lost": PeerLost,
    "peer_ended": PeerLost,
    "protocol_broken": PeerLost,
    "overloaded": Overloaded,
    "request_too_large": Refused,
    "not_serving": Refused,
    "peer_shutting_down": Refused,
    "abandoned": Refused,
    "client_too_old": Refused,
    "peer_too_old": Refused,
    "response_too_large": Refused,
    "deadline_exceeded": DeadlineExceeded,
    "cancelled": Cancelled,
    "shut_down": ClosedError,
    "untrusted": Untrusted,
    "message_too_large": MessageTooLarge,
    "empty_message": CallError,
    "no_room": NoRoom,
    "closed": ClosedError,
    "driver_failed": ClosedError,
    "client_gone": ClientGone,
    "address_unresolved": AddressError,
    "open_failed": OpenError,
    "invalid_options": OptionsError,
    "invalid_argument": ReplyError,
}


def _make(kind: str, execution: str, text: str) -> ApusError:
    """Returns the exception of a failure of the compiled part."""
    return _CLASSES.get(kind, CallError)(text, kind, Execution(execution))
