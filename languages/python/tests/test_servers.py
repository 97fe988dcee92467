"""Requests, replies, options, and processes."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import apus
import apus.aio
import pytest
from apus.settings import Settings


def test_requests_are_answered_in_any_order(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send_many(server.address, [b"%d" % number for number in range(10)])
        requests: list[apus.Request] = []
        while len(requests) < 10:
            requests += server.recv_requests(4)
        assert requests[0].peer.port == client.address.port
        assert apus.reply_all([(request, request.payload) for request in reversed(requests)]) == 0
        ended: list[apus.Completion] = []
        while len(ended) < 10:
            ended += client.recv_completions()
        assert all(completion.result() == b"%d" % completion.cookie for completion in ended)
        assert server.recv_request(0) is None and server.recv_requests(4, 0.001) == []
        with pytest.raises(ValueError, match="limit"):
            server.recv_requests(0)


def test_a_request_is_answered_once(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send(server.address, b"x")
        request = server.recv_request()
        assert request is not None
        with pytest.raises(TypeError):
            request.reply("text")  # type: ignore[arg-type]
        request.reply(b"y")
        with pytest.raises(apus.ReplyError, match="already"):
            request.reply(b"z")
        with pytest.raises(apus.ReplyError, match="already"):
            request.abandon()
        assert client.recv_completions()[0].result() == b"y"


def test_a_request_that_is_dropped_fails_at_its_client(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send(server.address, b"x")
        server.recv_request()
        assert client.recv_completions()[0].error.kind == "abandoned"  # type: ignore[union-attr]


def test_a_block_drops_a_request_that_it_did_not_answer(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send_many(server.address, [b"fails", b"forgets", b"answers"])
        kept: list[apus.Request] = []
        traceback: BaseException | None = None
        while len(kept) < 3:
            request = server.recv_request()
            assert request is not None
            kept.append(request)
            try:
                with request as same:
                    assert same is request
                    if request.payload == b"fails":
                        raise ValueError("a fault of the handler")
                    if request.payload == b"answers":
                        request.reply(b"an answer")
            except ValueError as error:
                # It keeps the frame, and so the request.
                traceback = error
        assert traceback is not None
        ended: list[apus.Completion] = []
        while len(ended) < 3:
            ended += client.recv_completions()
        kinds = {completion.cookie: completion.error and completion.error.kind for completion in ended}
        assert kinds == {0: "abandoned", 1: "abandoned", 2: None}
        for request in kept:
            with pytest.raises(apus.ReplyError, match="already"):
                request.reply(b"too late")


def test_a_response_that_is_too_long_says_so_at_both_ends(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0", protocol={"max_message": 1000}) as server:
        client.send_many(server.address, [b"a", b"b"])
        requests: list[apus.Request] = []
        while len(requests) < 2:
            requests += server.recv_requests()
        for request in requests:
            with pytest.raises(apus.MessageTooLarge, match="1001 bytes, max_message is 1000"):
                request.reply(bytes(1001))
        requests[0].reply(b"less")
        requests[1].abandon()
        ended: list[apus.Completion] = []
        while len(ended) < 2:
            ended += client.recv_completions()
        ended.sort(key=lambda completion: completion.error is not None)
        assert ended[0].result() == b"less"
        error = ended[1].error
        assert error is not None and error.kind == "response_too_large"
        assert error.execution is apus.Execution.EXECUTED


def test_replies_are_sent_together_or_not_at_all(client: apus.Endpoint) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send_many(server.address, [b"a", b"b"])
        requests: list[apus.Request] = []
        while len(requests) < 2:
            requests += server.recv_requests()
        requests[1].reply(b"first")
        with pytest.raises(apus.ReplyError, match="already"):
            apus.reply_all([(request, b"both") for request in requests])
        # The other request is still the caller's.
        requests[0].reply(b"second")
        ended: list[apus.Completion] = []
        while len(ended) < 2:
            ended += client.recv_completions()
        assert all(completion.error is None for completion in ended)


def test_a_client_that_has_gone_is_no_fault_of_the_server() -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server, apus.Endpoint.client() as client:
        call = client.send(server.address, b"x")
        request = server.recv_request()
        assert request is not None and client.cancel(call)
        assert client.drain(60)
        client.close()
        try:
            request.reply(b"y")
        except apus.ClientGone as gone:
            assert gone.kind == "client_gone"


def test_a_closed_server_ends_its_threads() -> None:
    server = apus.Endpoint.bind("127.0.0.1:0")
    ends: list[str] = []

    def iterate() -> None:
        for _ in server:
            pass
        ends.append("iterated")

    def receive() -> None:
        with pytest.raises(apus.ClosedError):
            server.recv_requests()
        ends.append("received")

    threads = [threading.Thread(target=iterate), threading.Thread(target=receive)]
    for thread in threads:
        thread.start()
    server.close()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["iterated", "received"]


def test_options_reach_the_engine() -> None:
    with apus.Endpoint.bind(
        "127.0.0.1:0",
        poll="hybrid=20",
        local=False,
        call_timeout_msecs=1000,
        udp={"receive_offload": False},
        protocol={"max_message": 1000},
    ) as endpoint:
        with pytest.raises(apus.MessageTooLarge, match="max_message is 1000"):
            endpoint.call(endpoint.address, bytes(1001))


def test_options_that_are_wrong_are_named() -> None:
    for settings, problem in [
        ({"pol": "spin"}, "pol"),
        ({"poll": "sometimes"}, "hybrid=MICROSECONDS"),
        ({"protocol": {"max_overcommit": 0}}, "max_overcommit"),
        ({"udp": {"x\"]\ny": 1}}, "unknown field"),
    ]:
        with pytest.raises(apus.OptionsError, match=problem):
            apus.Endpoint.client(**settings)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="poll: a number, text, bool or list"):
        apus.Endpoint.client(poll=None)  # type: ignore[arg-type]
    with pytest.raises(apus.OpenError):
        apus.Endpoint.bind("192.0.2.1:1")
    with pytest.raises(apus.AddressError):
        apus.Endpoint.bind("no port")


def test_a_child_of_a_fork_cannot_use_its_parents_endpoints(client: apus.Endpoint, echo: apus.Address) -> None:
    with apus.Endpoint.bind("127.0.0.1:0") as server:
        client.send(server.address, b"x")
        request = server.recv_request()
        assert request is not None
        parent, child = os.getpid(), os.fork()
        if child == 0:
            status = 1
            try:
                for use in (lambda: client.call(echo, b"x"), lambda: request.reply(b"z")):
                    try:
                        use()
                    except apus.ApusError as error:
                        assert f"opened by process {parent}, before a fork" in str(error)
                        assert error.kind == "closed"
                    else:
                        raise AssertionError("it works")
                # Closing and freeing them is harmless, and the child's own endpoints work.
                client.close()
                server.close()
                request.abandon()
                with client:
                    pass
                del client, request, use
                with apus.Endpoint.client() as own:
                    assert own.call(echo, b"from the child") == b"from the child"
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        request.reply(b"y")
        assert client.recv_completions()[0].result() == b"y"


def test_a_process_ends_while_its_daemon_threads_wait_and_call() -> None:
    program = """
import threading, apus
server, client, idle = apus.Endpoint.bind("127.0.0.1:0"), apus.Endpoint.client(), apus.Endpoint.client()
started = threading.Event()
def serve():
    for request in server:
        request.reply(request.payload)
def call():
    while True:
        client.call(server.address, b"x")
        started.set()
for target in (serve, call, idle.recv_completions):
    threading.Thread(target=target, daemon=True).start()
started.wait()
"""
    for _ in range(5):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("sealed", [False, True])
def test_what_cleans_up_in_a_child_of_a_fork_raises_nothing(sealed: bool, tmp_path: Path) -> None:
    settings: Settings = {}
    if sealed:
        secret = tmp_path / "secret"
        secret.touch(mode=0o600)
        secret.write_bytes(b"s" * 32)
        settings = {"security": {"mode": "secret", "secret": str(secret)}}

    async def fork_while_it_serves() -> None:
        async with await apus.aio.Endpoint.bind("127.0.0.1:0", **settings) as server:
            async with await apus.aio.Endpoint.client(**settings) as client:
                call = asyncio.ensure_future(client.call(server.address, b"x", timeout=60))
                request = await server.recv_request()
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        client.close()
                        server.close()
                        request.abandon()
                        status = 0
                    finally:
                        os._exit(status)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                request.reply(b"y")
                assert await call == b"y"

    asyncio.run(fork_while_it_serves())
