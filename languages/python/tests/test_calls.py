"""Calls of the blocking endpoint."""

import signal
import threading
from collections.abc import Callable

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
