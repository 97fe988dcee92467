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
