import asyncio

import apus.aio


async def serve(server: apus.aio.Endpoint) -> None:
    async for request in server:                # until the endpoint is closed
        with request:
            request.reply(request.payload)


async def main() -> None:
    async with (
        await apus.aio.Endpoint.bind("127.0.0.1:0") as server,
        await apus.aio.Endpoint.client() as client,
    ):
        serving = asyncio.create_task(serve(server))
        questions = [b"one", b"two", b"three"]
        calls = [client.call(server.address, question, timeout=0.5) for question in questions]
        for response in await asyncio.gather(*calls):
            print(str(response, "utf-8"))
    await serving


asyncio.run(main())
