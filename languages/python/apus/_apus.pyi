"""The compiled part of the package; use it through `apus`."""

from collections.abc import Iterable
from types import TracebackType
from typing import TypeAlias, final

from typing_extensions import Buffer, Self, Unpack

from .errors import ApusError
from .settings import Settings

__version__: str

Payload: TypeAlias = Buffer | list[Buffer] | tuple[Buffer, ...]
"""A message to send: a bytes-like object, or several, which are sent as one message without being
joined."""

@final
class Address:
    """The address of an endpoint: hashable, and equal to the same address."""

    @property
    def ip(self) -> str:
        """The IP address as text."""

    @property
    def port(self) -> int:
        """The port."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def resolve(address: str) -> Address:
    """Resolves an address such as `inventory:4000`, or `[fe80::7%eth0]:4000` with the interface of a
    link-local address. Raises `AddressError`."""

@final
class Message:
    """Received bytes: a bytes-like object that owns the message without a copy.

    It is accepted wherever a bytes-like object is: `memoryview(message)`, `file.write(message)`,
    `numpy.frombuffer(message, ...)`, `str(message, "utf-8")`, another call. `bytes(message)`
    copies. It is equal to `bytes` with the same content, and has their hash.
    """

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Completion:
    """The outcome of a call sent with `Endpoint.send`."""

    @property
    def cookie(self) -> int:
        """The number passed to `send`."""

    @property
    def response(self) -> Message | None:
        """The response; `None` if the call failed."""

    @property
    def error(self) -> ApusError | None:
        """The reason why the call failed; `None` if it succeeded."""

    def result(self) -> Message:
        """Returns the response, or raises the error."""

@final
class Request:
    """A received request, to be answered once. If it is garbage-collected without a reply, its
    client gets an error that states this. A traceback or a finished task may keep it for long:
    `with request:` drops an unanswered request at the end of the block."""

    @property
    def payload(self) -> Message:
        """The client's message."""

    @property
    def peer(self) -> Address:
        """The client's address."""

    def reply(self, response: Payload) -> None:
        """Sends the response, which may be empty. Waits for room if a limit is reached.

        Raises `ClientGone` if the client no longer waits, which is not the server's fault, and
        `MessageTooLarge` if the response is longer than `max_message`: then the request may be
        replied to again, and if it is not, its client learns the reason.
        """

    def abandon(self) -> None:
        """Drops the request now: its client gets an error that states this. Does nothing in a child
        of `os.fork`: the request is the parent's."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

def reply_all(replies: list[tuple[Request, Payload]]) -> int:
    """Sends the responses of several requests, which is cheaper than one by one. Returns the number
    of clients that no longer wait."""

@final
class Endpoint:
    """Client and server in one: sends requests to any number of peers and serves theirs.

    Any number of threads may use it at the same time. It is closed at the end of a `with` block and
    when it is garbage-collected. Iterating over it yields requests until it is closed. Waiting
    functions handle signals, such as Ctrl-C, within 50 ms, and do not hold the GIL.
    """

    @staticmethod
    def bind(address: str, **settings: Unpack[Settings]) -> Endpoint:
        """Opens an endpoint that serves requests at `address`, such as `"0.0.0.0:4000"`; port 0
        selects a free port. Raises `AddressError`, `OpenError` or `OptionsError`."""

    @staticmethod
    def client(**settings: Unpack[Settings]) -> Endpoint:
        """Opens an endpoint at a free port that does not serve requests."""

    @staticmethod
    def _with_descriptors(address: str | None, settings: Settings) -> Endpoint: ...
    @property
    def address(self) -> Address:
        """The address of the socket."""

    def call(
        self, to: Address | str, request: Payload, *, timeout: float | None = None, idempotent: bool = False
    ) -> Message:
        """Sends a request and waits for the response.

        `to` is an `Address` or text with an IP address and a port; resolve names once, with
        `resolve`. `timeout` is in seconds; `None` means the endpoint's `call_timeout_msecs`, a
        minute by default; 0 fails at once, and nothing is sent; infinity means no limit. An `idempotent` request may be executed twice and survives a restart of
        the server. Raises `CallError`; its `execution` states whether the request may have been
        executed.
        """

    def send(
        self,
        to: Address | str,
        request: Payload,
        cookie: int = 0,
        *,
        timeout: float | None = None,
        idempotent: bool = False,
        wait_for_room: bool = True,
    ) -> int:
        """Sends a request without waiting for the response: `recv_completions` returns the outcome,
        with `cookie`. Returns the number of the call, for `cancel`.

        Waits for room if a limit is reached, unless `wait_for_room` is false: then it raises
        `NoRoom`.
        """

    def send_many(
        self,
        to: Address | str,
        requests: Iterable[Payload],
        first_cookie: int = 0,
        *,
        timeout: float | None = None,
        idempotent: bool = False,
    ) -> int:
        """Sends several requests together, which is cheaper than one by one. Their cookies count
        from `first_cookie`. Returns the number of sent requests, in order: fewer if a limit is
        reached."""

    def cancel(self, call: int) -> bool:
        """Cancels a sent call. Its completion will not be received; the server may have executed
        the request. Returns false if the call has ended already."""

    def recv_completions(self, limit: int = 64, timeout: float | None = None) -> list[Completion]:
        """Waits until any sent call has ended, and returns up to `limit` completions; none if
        `timeout` seconds pass first. 0 does not wait. Raises `ClosedError`."""

    def recv_request(self, timeout: float | None = None) -> Request | None:
        """Waits for a request; `None` if `timeout` seconds pass first. Raises `ClosedError`."""

    def recv_requests(self, limit: int = 64, timeout: float | None = None) -> list[Request]:
        """Waits for a request, and returns up to `limit` available requests; none if `timeout`
        seconds pass first. Raises `ClosedError`."""

    def drain(self, timeout: float) -> bool:
        """Waits until the peers have acknowledged all messages, for example after the last reply.
        Returns whether they did within `timeout` seconds."""

    def metrics(self) -> dict[str, int]:
        """Returns all counters and gauges by name; docs/metrics.md describes them."""

    def close(self) -> None:
        """Shuts the endpoint down: outstanding calls fail, requests are refused, and waiting
        threads get `ClosedError`. Does nothing in a child of `os.fork`: the endpoint is the
        parent's."""

    def _completion_descriptor(self) -> int: ...
    def _request_descriptor(self) -> int: ...
    def _state(self) -> str: ...
    def _call_timeout(self) -> float: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Request: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

