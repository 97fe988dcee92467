"""Endpoints of asyncio."""

import asyncio
import select
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

import apus
import apus.aio
import pytest


def run(test: Callable[[], Awaitable[Any]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 60)

    asyncio.run(limited())


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[apus.Address]:
    """An echo server of asyncio."""
    server = await apus.aio.Endpoint.bind("127.0.0.1:0", **settings)

    async def serve() -> None:
        async for request in server:
            request.reply(request.payload)

    task = asyncio.create_task(serve())
    try:
        yield server.address
    finally:
        server.close()
        await task


def test_calls_run_at_the_same_time() -> None:
    async def test() -> None:
        async with serving() as server, await apus.aio.Endpoint.client() as client:
            assert await client.call(server, b"hello") == b"hello"
            calls = [client.call(server, b"%d" % number) for number in range(300)]
            for number, response in enumerate(await asyncio.gather(*calls)):
                assert response == b"%d" % number
            assert await client.drain(60)

    run(test)


def test_a_blocking_server_serves_asyncio(echo: apus.Address) -> None:
    async def test() -> None:
        async with await apus.aio.Endpoint.client() as client:
            assert await client.call(echo, [b"a", b"b"], timeout=30) == b"ab"

    run(test)


def test_more_calls_than_there_is_room_for() -> None:
    async def test() -> None:
        few: Any = {"max_client_rpcs": 3}
        async with serving() as server, await apus.aio.Endpoint.client(protocol=few) as client:
            responses = await asyncio.gather(*(client.call(server, b"x") for _ in range(50)))
            assert responses == [b"x"] * 50

    run(test)


def test_errors_are_typed() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        async with await apus.aio.Endpoint.client() as client:
            with pytest.raises(TimeoutError) as timeout:
                await client.call(server.address, b"slow", timeout=0.01)
            assert isinstance(timeout.value, apus.DeadlineExceeded)
            call = asyncio.create_task(client.call(server.address, b"drop me"))
            # The call that timed out may have arrived as well.
            while not call.done():
                for request in await server.recv_requests():
                    request.abandon()
                await asyncio.wait([call], timeout=0.01)
            with pytest.raises(apus.Refused):
                await call
            with pytest.raises(TypeError):
                await client.call(server.address, "text")  # type: ignore[arg-type]
            with pytest.raises(ValueError):
                await server.recv_requests(0)
        server.close()
        with pytest.raises(apus.OptionsError):
            await apus.aio.Endpoint.client(pol="spin")  # type: ignore[call-arg]

    run(test)


def test_a_cancelled_task_cancels_its_call() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        async with await apus.aio.Endpoint.client() as client:
            call = asyncio.create_task(client.call(server.address, b"x"))
            request = await server.recv_request()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await client.call(server.address, b"y")
            try:
                request.reply(b"too late")
            except apus.ClientGone:
                pass
            # Both ends continue to work.
            again = asyncio.create_task(client.call(server.address, b"z"))
            async for request in server:
                if request.payload == b"z":
                    request.reply(b"here")
                    break
            assert await again == b"here"
        server.close()

    run(test)


def test_receivers_share_the_requests() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        served = [0, 0, 0]

        async def serve(number: int) -> None:
            async for request in server:
                served[number] += 1
                request.reply(request.payload)

        tasks = [asyncio.create_task(serve(number)) for number in range(3)]
        async with await apus.aio.Endpoint.client() as client:
            await asyncio.gather(*(client.call(server.address, b"x") for _ in range(200)))
        server.close()
        await asyncio.gather(*tasks)
        assert sum(served) == 200

    run(test)


def test_a_receiver_that_is_cancelled_loses_no_request() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        async with await apus.aio.Endpoint.client() as client:
            for _ in range(20):
                receiver = asyncio.create_task(server.recv_request())
                await asyncio.sleep(0)
                call = asyncio.create_task(client.call(server.address, b"x"))
                await asyncio.sleep(0)
                receiver.cancel()
                request = await (server.recv_request() if not receiver.done() else receiver)
                request.reply(b"y")
                assert await call == b"y"
        server.close()

    run(test)


def test_closing_ends_all_that_waits() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        client = await apus.aio.Endpoint.client()
        call = asyncio.create_task(client.call(server.address, b"x"))
        receiver = asyncio.create_task(server.recv_request())
        request = await receiver
        receiver = asyncio.create_task(server.recv_request())
        await asyncio.sleep(0)
        client.close()
        client.close()
        server.close()
        for task in (call, receiver):
            with pytest.raises(apus.ClosedError):
                await task
        with pytest.raises(apus.ClosedError):
            await client.call(server.address, b"x")
        assert [request async for request in server] == []
        del request

    run(test)


def test_a_loop_that_is_busy_keeps_no_peer_waiting(client: apus.Endpoint) -> None:
    """A long message needs grants, which the engine's thread sends while the event loop does not
    run."""

    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0", local=False)
        receiver = asyncio.create_task(server.recv_request())
        await asyncio.sleep(0)
        long = bytes(20_000_000)
        client.send(server.address, long)
        # Blocks the event loop until the engine has received the whole message.
        select.select([server._endpoint._request_descriptor()], [], [], 60)
        with pytest.raises(asyncio.InvalidStateError):
            receiver.result()
        request = await receiver
        assert len(request.payload) == len(long)
        server.close()

    run(test)


def test_another_loop_is_refused_and_nothing_is_sent() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        client = await apus.aio.Endpoint.client()
        errors: list[BaseException] = []

        async def use() -> None:
            for wrong in (
                client.call(server.address, b"wrong loop", timeout=5),
                client.recv_request(),
                client.recv_requests(),
                client.drain(5),
            ):
                try:
                    await wrong
                except apus.ApusError as error:
                    errors.append(error)
            try:
                client.close()
            except apus.ApusError as error:
                errors.append(error)

        await asyncio.to_thread(asyncio.run, use())
        assert [type(error) for error in errors] == [apus.WrongLoop] * 5
        assert "belongs to the event loop" in str(errors[0]) and isinstance(errors[0], RuntimeError)
        # The first request that arrives is one of the right loop.
        call = asyncio.create_task(client.call(server.address, b"right loop"))
        request = await server.recv_request()
        assert request.payload == b"right loop"
        request.reply(b"")
        await call
        client.close()
        server.close()

    run(test)


def test_an_endpoint_can_be_closed_after_its_loop() -> None:
    endpoints: list[apus.aio.Endpoint] = []

    async def test() -> None:
        endpoints.append(await apus.aio.Endpoint.bind("127.0.0.1:0"))
        assert repr(endpoints[0]) == f"<apus.aio.Endpoint {endpoints[0].address} open>"

    run(test)
    endpoints[0].close()
    endpoints[0].close()
    assert repr(endpoints[0]) == f"<apus.aio.Endpoint {endpoints[0].address} closed>"


def test_a_timeout_covers_the_wait_for_room() -> None:
    async def test() -> None:
        few: Any = {"max_client_rpcs": 1}
        server = await apus.aio.Endpoint.bind("127.0.0.1:0", local=False)
        async with await apus.aio.Endpoint.client(protocol=few, local=False) as client:
            first = asyncio.create_task(client.call(server.address, b"first"))
            request = await server.recv_request()
            with pytest.raises(apus.DeadlineExceeded) as error:
                await client.call(server.address, b"second", timeout=0.01)
            assert error.value.execution is apus.Execution.NOT_EXECUTED
            with pytest.raises(apus.DeadlineExceeded):
                await client.call(server.address, b"third", timeout=0)
            request.reply(b"")
            await first
        server.close()

    run(test)


def test_a_cancelled_drain_keeps_nothing_waiting() -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        client = await apus.aio.Endpoint.client()
        call = asyncio.create_task(client.call(server.address, b"x"))
        request = await server.recv_request()
        drain = asyncio.create_task(client.drain(3600))
        await asyncio.sleep(0)
        drain.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drain
        request.reply(b"")
        await call
        client.close()
        server.close()

    # `asyncio.run` waits for the threads of its executor.
    run(test)


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
def test_a_handler_whose_task_is_kept_tells_its_client(error: type[BaseException]) -> None:
    async def test() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0")
        async with await apus.aio.Endpoint.client() as client:
            tasks: list[asyncio.Task[None]] = []

            async def handle(request: apus.Request) -> None:
                with request:
                    raise error("a fault of the handler")

            async def serve() -> None:
                async for request in server:
                    tasks.append(asyncio.create_task(handle(request)))

            serving = asyncio.create_task(serve())
            with pytest.raises(apus.Refused) as refused:
                await client.call(server.address, b"x")
            assert refused.value.kind == "abandoned"
            server.close()
            await serving
            assert isinstance((await asyncio.gather(*tasks, return_exceptions=True))[0], error)

    run(test)
