"""A server of asyncio with a task for each request, some of which fail."""

import asyncio

import apus
import apus.aio


async def work(question: bytes) -> bytes:
    if not question.isdigit():
        raise ValueError("no number")
    return b"%d" % (int(question) * 2)


# [sample handlers]
async def handle(request: apus.Request) -> None:
    with request:                               # also if `work` raises or is cancelled
        request.reply(await work(bytes(request.payload)))


async def serve(server: apus.aio.Endpoint) -> None:
    tasks: set[asyncio.Task[None]] = set()
    async for request in server:
        task = asyncio.create_task(handle(request))
        tasks.add(task)                         # a loop alone keeps no task alive
        task.add_done_callback(tasks.discard)
# [end]


async def main() -> None:
    async with (
        await apus.aio.Endpoint.bind("127.0.0.1:0") as server,
        await apus.aio.Endpoint.client() as client,
    ):
        serving = asyncio.create_task(serve(server))
        print(bytes(await client.call(server.address, b"21")))
        try:
            await client.call(server.address, b"nonsense")
        except apus.Refused as error:
            print(error.kind)
    await serving


asyncio.run(main())
