"""Calls of the blocking endpoint."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import apus
import pytest


def test_a_call_gets_its_response(client: apus.Endpoint, serve: Callable[..., apus.Address]) -> None:
    server = serve(lambda request: request.reply(bytes(request.payload).upper()))
    assert client.call(server, b"hello") == b"HELLO"
    assert client.call(str(server), b"text as the address", timeout=30, idempotent=True) == b"TEXT AS THE ADDRESS"
    assert client.call(server, b"") == b""


def test_addresses(client: apus.Endpoint, echo: apus.Address) -> None:
    assert apus.resolve(str(echo)) == echo
    assert len({echo, apus.resolve(str(echo))}) == 1
    assert echo.ip == "127.0.0.1" and str(echo) == f"127.0.0.1:{echo.port}"
    assert apus.resolve(f"localhost:{echo.port}").port == echo.port
    with pytest.raises(apus.AddressError, match="resolve a name once"):
        client.call("localhost:1", b"")
    with pytest.raises(TypeError, match="not 'tuple'"):
        client.call(("127.0.0.1", 1), b"")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="no port"):
        apus.resolve("no port")


def test_many_calls_complete_in_any_order(client: apus.Endpoint, echo: apus.Address) -> None:
    seen: dict[int, bytes] = {}
    assert client.send_many(echo, (b"%d" % cookie for cookie in range(100)), 0) == 100
    for cookie in range(100, 200):
        client.send(echo, b"%d" % cookie, cookie)
    while len(seen) < 200:
        for completion in client.recv_completions(16):
            assert completion.error is None and completion.response == completion.result()
            seen[completion.cookie] = bytes(completion.result())
    assert seen == {cookie: b"%d" % cookie for cookie in range(200)}
    assert client.recv_completions(1, 0) == []
    assert client.recv_completions(1, 0.001) == []
    assert client.drain(60)


def test_errors_say_what_happened_and_whether_the_request_was_executed(
    client: apus.Endpoint, serve: Callable[..., apus.Address]
) -> None:
    server = serve(lambda request: request.abandon())
    with pytest.raises(apus.Refused) as refused:
        client.call(server, b"drop me")
    assert refused.value.kind == "abandoned"
    client.send(server, b"drop me", 7)
    (completion,) = client.recv_completions()
    assert completion.cookie == 7 and completion.response is None
    assert isinstance(completion.error, apus.Refused)
    with pytest.raises(apus.Refused):
        completion.result()

    with pytest.raises(apus.MessageTooLarge) as too_large:
        client.call(server, bytes(70 << 20))
    assert too_large.value.execution is apus.Execution.NOT_EXECUTED
    assert isinstance(too_large.value, ValueError)

    closed = apus.Endpoint.bind("127.0.0.1:0")
    closed.close()
    address = closed.address
    del closed
    with pytest.raises(apus.CallError) as gone:
        client.call(address, b"anyone?", timeout=30)
    assert isinstance(gone.value, ConnectionError), gone.value
    assert gone.value.execution is apus.Execution.NOT_EXECUTED


def test_a_timeout_is_pythons_own(client: apus.Endpoint, serve: Callable[..., apus.Address]) -> None:
    held: list[apus.Request] = []
    server = serve(held.append)
    with pytest.raises(TimeoutError) as timeout:
        client.call(server, b"slow", timeout=0.01)
    assert isinstance(timeout.value, apus.DeadlineExceeded)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="seconds"):
            client.call(server, b"", timeout=wrong)


def test_a_limit_is_an_error_for_those_that_do_not_wait(serve: Callable[..., apus.Address]) -> None:
    held: list[apus.Request] = []
    server = serve(held.append)
    with apus.Endpoint.client(protocol={"max_client_rpcs": 2}, local=False) as client:
        with pytest.raises(apus.NoRoom):
            for cookie in range(100):
                client.send(server, b"", cookie, wait_for_room=False)
        # Both were sent, and there is no room for another.
        assert client.send_many(server, [b""] * 5, 100) == 0


def test_a_cancelled_call_has_no_completion(client: apus.Endpoint, serve: Callable[..., apus.Address]) -> None:
    held: list[apus.Request] = []
    server = serve(held.append)
    call = client.send(server, b"", 1)
    assert client.cancel(call)
    assert not client.cancel(call) and not client.cancel(0)
    assert client.recv_completions(1, 0.01) == []


def test_a_closed_endpoint_says_so(client: apus.Endpoint, echo: apus.Address) -> None:
    client.close()
    with pytest.raises(apus.ClosedError):
        client.call(echo, b"")
    with pytest.raises(apus.ClosedError):
        client.recv_completions()
    assert list(client) == []


def test_signals_are_handled_while_a_call_waits(
    client: apus.Endpoint, serve: Callable[..., apus.Address]
) -> None:
    # A shell ignores it for background jobs, and Python keeps that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    held: list[apus.Request] = []

    def interrupt(request: apus.Request) -> None:
        held.append(request)
        signal.raise_signal(signal.SIGINT)

    server = serve(interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.call(server, b"")
    # The call was cancelled, and the endpoint still works. The signal may arrive before or during
    # the wait.
    for wait in (client.recv_completions, client.recv_request):
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0, signal.raise_signal, [signal.SIGINT]).start()
            wait()


def interrupt_when(waits: Callable[[], object]) -> None:
    """Checks that a signal ends a call that waits, on the main thread."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # In time for the wait or before it: both are handled within an interval.
    timer = threading.Timer(0.01, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            waits()
    timer.join()
    # The waits are without an end, or of an hour.
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("local", [True, False])
def test_signals_end_every_wait(local: bool) -> None:
    few: Any = {"max_client_rpcs": 2}
    with (
        apus.Endpoint.bind("127.0.0.1:0", local=local) as server,
        apus.Endpoint.client(local=local, protocol=few) as client,
    ):
        for cookie in range(10):
            # The two endpoints share memory after a few calls, if they may.
            client.send(server.address, b"", cookie)
            request = server.recv_request()
            assert request is not None
            request.reply(b"")
            client.recv_completions()
        # There is room for two, and nothing answers them.
        client.send_many(server.address, [b"x", b"x"], timeout=3600)
        interrupt_when(lambda: client.send(server.address, b"x", timeout=3600))
        interrupt_when(lambda: client.call(server.address, b"x", timeout=3600))
        interrupt_when(lambda: client.drain(3600))
        interrupt_when(lambda: client.recv_completions(1, 3600))
        interrupt_when(lambda: client.recv_request(3600))
        interrupt_when(lambda: client.recv_requests(8))
        # The two requests are still there, and no other one.
        requests: list[apus.Request] = []
        while len(requests) < 2:
            requests += server.recv_requests(8)
        assert apus.reply_all([(request, b"y") for request in requests]) == 0
        ended: list[apus.Completion] = []
        while len(ended) < 2:
            ended += client.recv_completions()
        assert [bytes(completion.result()) for completion in ended] == [b"y", b"y"]


def test_signals_end_a_reply_that_waits_for_room() -> None:
    small: Any = {
        "max_message": 100_000,
        "max_send_bytes": 240_000,
        "max_send_bytes_per_peer": 240_000,
        "timeout_usecs": 60_000_000,
    }
    program = """
import apus, sys
client = apus.Endpoint.client(local=False)
client.send_many(sys.argv[1], [b""] * 3)
sys.stdin.read()
"""
    with apus.Endpoint.bind("127.0.0.1:0", local=False, protocol=small) as server:
        command = [sys.executable, "-c", program, str(server.address)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as client:
            requests: list[apus.Request] = []
            while len(requests) < 3:
                requests += server.recv_requests()
            # A client that is stopped acknowledges nothing.
            client.send_signal(signal.SIGSTOP)
            os.waitpid(client.pid, os.WUNTRACED)
            for request in requests[:2]:
                request.reply(bytes(99_000))
            interrupt_when(lambda: requests[2].reply(bytes(99_000)))
            interrupt_when(lambda: apus.reply_all([(requests[2], bytes(99_000))]))
            # The request is still there.
            client.send_signal(signal.SIGCONT)
            requests[2].reply(b"short")
            client.kill()


def test_signals_end_the_look_up_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name server that does not answer: the resolver waits for seconds.
    monkeypatch.setenv("RES_OPTIONS", "timeout:30 attempts:5")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted = threading.Timer(0.01, signal.raise_signal, [signal.SIGINT])
    interrupted.start()
    # With or without a network: the look-up fails, or the signal ends it.
    with pytest.raises((KeyboardInterrupt, apus.AddressError)):
        while True:
            apus.resolve("a-name-that-does-not-exist.invalid:4000")
    try:
        interrupted.join()
    except KeyboardInterrupt:
        pass


def test_a_timeout_that_has_passed_sends_nothing(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        for _ in range(10):
            for late in (
                lambda: client.call(server.address, b"late", timeout=0),
                lambda: client.send(server.address, b"late", timeout=0),
                lambda: client.send_many(server.address, [b"late"], timeout=0),
            ):
                with pytest.raises(apus.DeadlineExceeded) as error:
                    late()
                assert error.value.execution is apus.Execution.NOT_EXECUTED
            client.send(server.address, b"in time", timeout=float("inf"))
            request = server.recv_request()
            assert request is not None and request.payload == b"in time"
            request.reply(b"")
            assert client.recv_completions()[0].result() == b""


def test_endpoints_show_their_address_and_state() -> None:
    endpoint = apus.Endpoint.bind("127.0.0.1:0")
    assert repr(endpoint) == f"<apus.Endpoint {endpoint.address} open>"
    endpoint.close()
    assert repr(endpoint) == f"<apus.Endpoint {endpoint.address} closed>"


def test_other_threads_run_while_a_call_waits(client: apus.Endpoint) -> None:
    server = apus.Endpoint.bind("127.0.0.1:0")
    responses: list[apus.Message] = []
    caller = threading.Thread(target=lambda: responses.append(client.call(server.address, b"x")))
    caller.start()
    # The caller waits for this thread, which could not run if the caller held the GIL.
    request = server.recv_request(60)
    assert request is not None
    request.reply(b"y")
    caller.join()
    assert responses == [b"y"]


def test_threads_may_share_an_endpoint(client: apus.Endpoint, echo: apus.Address) -> None:
    wrong: list[str] = []

    def call(caller: int) -> None:
        for number in range(200):
            text = f"{caller} {number}"
            if client.call(echo, text.encode()) != text.encode():
                wrong.append(text)

    callers = [threading.Thread(target=call, args=[caller]) for caller in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
