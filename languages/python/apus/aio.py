"""Endpoints for asyncio.

The engine runs in a separate thread, outside of the GIL. The event loop polls the engine's
descriptors and takes available messages in batches: a call is a future, not a task.

    async with await apus.aio.Endpoint.client() as client:
        response = await client.call("10.0.0.7:4000", b"hello", timeout=1.0)
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ._apus import Address, Endpoint as _Endpoint, Message, Request
from .errors import ApusError, ClosedError, NoRoom, WrongLoop

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._apus import Payload
    from .settings import Settings

__all__ = ["Endpoint"]

_BATCH = 256
"""Completions that the event loop takes before other callbacks run."""

_RETRY = 0.001
"""Seconds until a call without room is retried if no other call has ended by then."""


_T = TypeVar("_T")


class Endpoint:
    """Client and server in one, for asyncio. It belongs to the event loop that opened it, and is
    closed at the end of an `async with` block. In another loop its methods raise `WrongLoop`, and
    send nothing."""

    def __init__(self, endpoint: _Endpoint) -> None:
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, asyncio.Future[Message]] = {}
        self._next_cookie = 0
        self._room: asyncio.Event = asyncio.Event()
        self._requests: deque[Request] = deque()
        self._receivers: deque[asyncio.Future[None]] = deque()
        self._polls_requests = False
        self._closed: ApusError | None = None
        self._loop.add_reader(endpoint._completion_descriptor(), self._on_completions)

    @classmethod
    async def bind(cls, address: str, **settings: Unpack[Settings]) -> Self:
        """Opens an endpoint that serves requests at `address`, such as `"0.0.0.0:4000"`; port 0
        selects a free port. `poll` and `engine` have no effect. Raises `AddressError`, `OpenError`
        or `OptionsError`."""
        return cls(await _in_thread(lambda: _Endpoint._with_descriptors(address, settings)))

    @classmethod
    async def client(cls, **settings: Unpack[Settings]) -> Self:
        """Opens an endpoint at a free port that does not serve requests."""
        return cls(await _in_thread(lambda: _Endpoint._with_descriptors(None, settings)))

    @property
    def address(self) -> Address:
        """The address of the socket."""
        return self._endpoint.address

    async def call(
        self, to: Address | str, request: Payload, *, timeout: float | None = None, idempotent: bool = False
    ) -> Message:
        """Sends a request and waits for the response. Cancelling the task cancels the call.

        `to` is an `Address` or text with an IP address and a port; resolve names once, with
        `apus.resolve`. `timeout` is in seconds; `None` means the endpoint's `call_timeout_msecs`, a
        minute by default; 0 fails at once, and nothing is sent; infinity means no limit. Raises `CallError`; its `execution` states whether the request may have
        been executed.
        """
        self._check_loop()
        cookie = self._next_cookie
        self._next_cookie = cookie + 1
        future: asyncio.Future[Message] = self._loop.create_future()
        self._calls[cookie] = future
        end: float | None = None
        left = timeout
        try:
            while True:
                try:
                    call = self._endpoint.send(
                        to, request, cookie, timeout=left, idempotent=idempotent, wait_for_room=False
                    )
                    break
                except NoRoom:
                    # The wait for room counts.
                    if end is None:
                        limit = self._endpoint._call_timeout() if timeout is None else timeout
                        end = self._loop.time() + limit
                    await self._wait_for_room()
                    left = max(end - self._loop.time(), 0)
            try:
                return await future
            except asyncio.CancelledError:
                if self._closed is None:
                    self._endpoint.cancel(call)
                raise
        finally:
            del self._calls[cookie]

    async def recv_request(self) -> Request:
        """Waits for a request. Raises `ClosedError`."""
        self._check_loop()
        while not self._requests:
            await self._wait_for_requests()
        return self._requests.popleft()

    async def recv_requests(self, limit: int = 64) -> list[Request]:
        """Waits for a request, and returns up to `limit` available requests. Raises
        `ClosedError`."""
        if limit < 1:
            raise ValueError("limit is at least 1")
        self._check_loop()
        while not self._requests:
            await self._wait_for_requests(limit)
        return [self._requests.popleft() for _ in range(min(limit, len(self._requests)))]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Request:
        """Waits for the next request; the iteration ends when the endpoint is closed."""
        try:
            return await self.recv_request()
        except ClosedError:
            raise StopAsyncIteration from None

    async def drain(self, timeout: float) -> bool:
        """Waits until the peers have acknowledged all messages, for example after the last reply.
        Returns whether they did within `timeout` seconds."""
        self._check_loop()
        return await _in_thread(lambda: self._endpoint.drain(timeout))

    def metrics(self) -> dict[str, int]:
        """Returns all counters and gauges by name; docs/metrics.md describes them."""
        return self._endpoint.metrics()

    def close(self) -> None:
        """Shuts the endpoint down: outstanding calls fail, requests are refused, and waiting tasks
        get `ClosedError`. Also works after the end of the loop."""
        if self._closed is not None:
            return
        if self._loop.is_closed():
            self._closed = ClosedError("the endpoint was shut down", "closed")
            self._endpoint.close()
            return
        if asyncio._get_running_loop() is not None:
            self._check_loop()
        self._endpoint.close()
        self._on_completions()
        self._end(ClosedError("the endpoint was shut down", "closed"))

    def __repr__(self) -> str:
        return f"<apus.aio.Endpoint {self.address} {self._endpoint._state()}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_loop(self) -> None:
        """Checks that the caller runs in the endpoint's loop."""
        if asyncio.get_running_loop() is not self._loop:
            raise WrongLoop(
                "the endpoint belongs to the event loop that opened it: open one in this loop", "wrong_loop"
            )

    def _on_completions(self) -> None:
        """Takes completions; the event loop calls it when the descriptor is readable."""
        try:
            completions = self._endpoint.recv_completions(_BATCH, 0)
        except ApusError as closed:
            self._end(closed)
            return
        calls = self._calls
        for completion in completions:
            future = calls.get(completion.cookie)
            # It was cancelled while its completion was pending.
            if future is None or future.done():
                continue
            error = completion.error
            if error is None:
                future.set_result(completion.response)  # type: ignore[arg-type]
            else:
                future.set_exception(error)
        if completions:
            self._room.set()

    async def _wait_for_room(self) -> None:
        """Waits until a call has ended, but only briefly, since calls of other endpoints make room
        as well."""
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), _RETRY)
        except TimeoutError:
            pass

    async def _wait_for_requests(self, limit: int = 64) -> None:
        """Takes available requests, or waits until some may be available."""
        if self._closed is not None:
            raise self._closed
        # Only as many as requested: the rest stays with the engine, which refuses the newest under
        # overload.
        self._requests += self._endpoint.recv_requests(limit, 0)
        if self._requests:
            return
        if not self._polls_requests:
            self._polls_requests = True
            self._loop.add_reader(self._endpoint._request_descriptor(), self._on_requests)
        receiver: asyncio.Future[None] = self._loop.create_future()
        self._receivers.append(receiver)
        await receiver

    def _on_requests(self) -> None:
        """Wakes a receiver, which takes the requests; the event loop calls it when the descriptor
        is readable."""
        while self._receivers:
            receiver = self._receivers.popleft()
            if not receiver.done():
                receiver.set_result(None)
                break
        if not self._receivers:
            # Without a receiver the descriptor is not polled.
            self._polls_requests = False
            self._loop.remove_reader(self._endpoint._request_descriptor())

    def _end(self, error: ApusError) -> None:
        """Fails all waiting futures."""
        if self._closed is not None:
            return
        self._closed = error
        _remove_readers(self._loop, self._endpoint)
        for future in self._calls.values():
            if not future.done():
                future.set_exception(error)
        for receiver in self._receivers:
            if not receiver.done():
                receiver.set_exception(error)


async def _in_thread(function: Callable[[], _T]) -> _T:
    """Runs a function that waits. If the task is cancelled, the function ends in its thread, for
    which neither the loop nor the interpreter waits."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def end(result: _T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result: _T | None = None
        error: BaseException | None = None
        try:
            result = function()
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(end, result, error)
        except RuntimeError:
            pass  # The loop is closed.

    threading.Thread(target=run, name="apus", daemon=True).start()
    return await future


def _remove_readers(loop: asyncio.AbstractEventLoop, endpoint: _Endpoint) -> None:
    # In a child of a fork the loop is the parent's, and so are the descriptors.
    with contextlib.suppress(ClosedError):
        loop.remove_reader(endpoint._completion_descriptor())
        loop.remove_reader(endpoint._request_descriptor())
