"""apus compared with grpcio and pyzmq: the median of blocking calls, and the rate with 64 calls
outstanding.

    pip install ./languages/python grpcio pyzmq
    python languages/python/bench/bench.py --runs 5 --seconds 1

Each run measures every contender in turn, so that all of them meet the same disturbances; ratios
are taken inside a run, and the median over the runs is reported with the lowest and the highest.
Client and server are two processes of this machine and talk over loopback, except for "shared
memory". grpcio passes bytes without protobuf, which is the fastest it can do. Exit status 3: grpcio
or pyzmq is not installed.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apus
import apus.aio

try:
    import grpc
    import zmq
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(3)

OUTSTANDING = 64
METHOD = "/bench/echo"
TIMEOUT = 60

# --- Servers, each in a separate process.


def end_with_input(end: Callable[[], object]) -> None:
    """Calls `end` when the process that started this one closes its standard input."""

    def wait() -> None:
        sys.stdin.read()
        end()

    threading.Thread(target=wait, daemon=True).start()


def serve_apus(local: bool, poll: str) -> None:
    server = apus.Endpoint.bind("127.0.0.1:0", local=local, poll=poll)
    print(server.address, flush=True)
    end_with_input(server.close)
    try:
        while True:
            requests = server.recv_requests(OUTSTANDING)
            apus.reply_all([(each, each.payload) for each in requests])
    except apus.ClosedError:
        pass


def serve_apus_aio(local: bool) -> None:
    async def serve() -> None:
        server = await apus.aio.Endpoint.bind("127.0.0.1:0", local=local)
        print(server.address, flush=True)
        end_with_input(lambda: os._exit(0))
        while True:
            requests = await server.recv_requests(OUTSTANDING)
            apus.reply_all([(each, each.payload) for each in requests])

    asyncio.run(serve())


def serve_zmq(kind: int) -> None:
    socket = zmq.Context().socket(kind)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    print(f"127.0.0.1:{port}", flush=True)
    end_with_input(lambda: os._exit(0))
    if kind == zmq.REP:
        while True:
            socket.send(socket.recv())
    while True:
        socket.send_multipart(socket.recv_multipart())


def handlers(echo: Callable[..., Any]) -> Any:
    return grpc.method_handlers_generic_handler("bench", {"echo": grpc.unary_unary_rpc_method_handler(echo)})


def serve_grpc() -> None:
    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((handlers(lambda request, context: request),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    os._exit(0)


def serve_grpc_aio() -> None:
    async def echo(request: bytes, context: object) -> bytes:
        return request

    async def serve() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((handlers(echo),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(f"127.0.0.1:{port}", flush=True)
        end_with_input(lambda: os._exit(0))
        await server.wait_for_termination()

    asyncio.run(serve())


SERVERS: dict[str, Callable[[], None]] = {
    "apus shm": lambda: serve_apus(True, "block"),
    "apus udp": lambda: serve_apus(False, "block"),
    "apus shm hybrid": lambda: serve_apus(True, "hybrid=50"),
    "apus udp hybrid": lambda: serve_apus(False, "hybrid=50"),
    "apus aio shm": lambda: serve_apus_aio(True),
    "apus aio udp": lambda: serve_apus_aio(False),
    "pyzmq rep": lambda: serve_zmq(zmq.REP),
    "pyzmq router": lambda: serve_zmq(zmq.ROUTER),
    "grpcio": serve_grpc,
    "grpcio aio": serve_grpc_aio,
}


@contextmanager
def server(kind: str) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


# --- Clients.


def median_us(call: Callable[[], object], seconds: float) -> float:
    """Returns the median time of a call in µs. The first fifth of the time is discarded."""
    clock = time.perf_counter_ns
    times: list[int] = []
    start = before = clock()
    while before < start + int(seconds * 1e9) or not times:
        before = clock()
        call()
        after = clock()
        if after >= start + int(seconds * 0.2e9):
            times.append(after - before)
    return statistics.median(times) / 1000


def apus_call(address: str, request: bytes, seconds: float, local: bool, poll: str) -> float:
    with apus.Endpoint.client(local=local, poll=poll) as client:
        to = apus.resolve(address)
        return median_us(lambda: client.call(to, request, timeout=TIMEOUT), seconds)


def zmq_call(address: str, request: bytes, seconds: float) -> float:
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(f"tcp://{address}")

        def call() -> bytes:
            socket.send(request)
            return socket.recv()

        return median_us(call, seconds)


def grpc_call(address: str, request: bytes, seconds: float) -> float:
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        return median_us(lambda: call(request, timeout=TIMEOUT), seconds)


def apus_rate(address: str, request: bytes, seconds: float, local: bool, poll: str) -> float:
    with apus.Endpoint.client(local=local, poll=poll) as client:
        to = apus.resolve(address)
        client.send_many(to, [request] * OUTSTANDING)
        done = 0
        start = time.perf_counter()
        while (now := time.perf_counter()) < start + seconds:
            completions = client.recv_completions(OUTSTANDING)
            for completion in completions:
                completion.result()
            done += len(completions)
            client.send_many(to, [request] * len(completions))
        return done / (now - start)


def zmq_rate(address: str, request: bytes, seconds: float) -> float:
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(f"tcp://{address}")
        for _ in range(OUTSTANDING):
            socket.send(request)
        done = 0
        start = time.perf_counter()
        while (now := time.perf_counter()) < start + seconds:
            socket.recv()
            done += 1
            socket.send(request)
        return done / (now - start)


def grpc_rate(address: str, request: bytes, seconds: float) -> float:
    """Futures whose completion sends the next call: no thread waits for any of them."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        done = 0
        end = threading.Event()
        room = threading.Semaphore(OUTSTANDING)
        start = time.perf_counter()

        def ended(_: object) -> None:
            nonlocal done
            done += 1
            room.release()

        while (now := time.perf_counter()) < start + seconds:
            room.acquire()
            call.future(request, timeout=TIMEOUT).add_done_callback(ended)
        counted = done
        for _ in range(OUTSTANDING):
            room.acquire()
        end.set()
        return counted / (now - start)


async def workers(call: Callable[[], Any], seconds: float) -> float:
    """Returns the rate of tasks that each make one call after another."""
    done = 0
    start = time.perf_counter()

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < start + seconds:
            await call()
            done += 1

    await asyncio.gather(*(work() for _ in range(OUTSTANDING)))
    return done / (time.perf_counter() - start)


def apus_aio_rate(address: str, request: bytes, seconds: float, local: bool) -> float:
    async def measure() -> float:
        async with await apus.aio.Endpoint.client(local=local) as client:
            to = apus.resolve(address)
            return await workers(lambda: client.call(to, request, timeout=TIMEOUT), seconds)

    return asyncio.run(measure())


def grpc_aio_rate(address: str, request: bytes, seconds: float) -> float:
    async def measure() -> float:
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.unary_unary(METHOD)

            async def once() -> None:
                await call(request, timeout=TIMEOUT)

            return await workers(once, seconds)

    return asyncio.run(measure())


# Name, server, and the measurement, which takes the address, the request and the time.
Measure = Callable[[str, bytes, float], float]
CALLS: list[tuple[str, str, Measure]] = [
    ("apus, shared memory", "apus shm", lambda *a: apus_call(*a, True, "block")),
    ("apus, UDP", "apus udp", lambda *a: apus_call(*a, False, "block")),
    ("apus, shared memory, poll='hybrid=50'", "apus shm hybrid", lambda *a: apus_call(*a, True, "hybrid=50")),
    ("apus, UDP, poll='hybrid=50'", "apus udp hybrid", lambda *a: apus_call(*a, False, "hybrid=50")),
    ("pyzmq REQ-REP", "pyzmq rep", zmq_call),
    ("grpcio", "grpcio", grpc_call),
    ("grpcio, server of asyncio", "grpcio aio", grpc_call),
]
RATES: list[tuple[str, str, Measure]] = [
    ("apus, shared memory", "apus shm", lambda *a: apus_rate(*a, True, "block")),
    ("apus, UDP", "apus udp", lambda *a: apus_rate(*a, False, "block")),
    ("apus.aio, shared memory", "apus aio shm", lambda *a: apus_aio_rate(*a, True)),
    ("apus.aio, UDP", "apus aio udp", lambda *a: apus_aio_rate(*a, False)),
    ("pyzmq DEALER-ROUTER", "pyzmq router", zmq_rate),
    ("grpcio, futures", "grpcio", grpc_rate),
    ("grpcio, futures, server of asyncio", "grpcio aio", grpc_rate),
    ("grpcio.aio", "grpcio aio", grpc_aio_rate),
]


def over(found: list[dict[str, float]], ratio: Callable[[dict[str, float]], float]) -> list[float]:
    """Returns the median, the lowest and the highest of a ratio over the runs."""
    ratios = [ratio(run) for run in found]
    return [statistics.median(ratios), min(ratios), max(ratios)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each contender and measurement in a run")
    parser.add_argument("--size", type=int, default=100, help="bytes of requests and responses")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        SERVERS[options.serve]()
        return
    request = bytes(options.size)
    calls: list[dict[str, float]] = []
    rates: list[dict[str, float]] = []
    for _ in range(options.runs):
        for contenders, found in ((CALLS, calls), (RATES, rates)):
            run: dict[str, float] = {}
            for name, kind, measure in contenders:
                with server(kind) as address:
                    run[name] = measure(address, request, options.seconds)
            found.append(run)

    def grpc_best(run: dict[str, float], best: Callable[..., float]) -> float:
        return best(value for name, value in run.items() if name.startswith("grpcio"))

    ratios: dict[str, list[float]] = {}
    for name, _, _ in CALLS:
        if name.startswith("apus"):
            ratios[f"call: {name} / grpcio"] = over(calls, lambda run, n=name: run[n] / grpc_best(run, min))
            ratios[f"call: {name} / pyzmq REQ-REP"] = over(calls, lambda run, n=name: run[n] / run["pyzmq REQ-REP"])
    for name, _, _ in RATES:
        if name.startswith("apus"):
            ratios[f"rate: {name} / the fastest grpcio"] = over(rates, lambda run, n=name: run[n] / grpc_best(run, max))
    result = {
        "load": os.getloadavg()[0],
        "call_us": {name: over(calls, lambda run, n=name: run[n]) for name, _, _ in CALLS},
        "calls_per_second": {name: over(rates, lambda run, n=name: run[n]) for name, _, _ in RATES},
        "ratios": ratios,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{options.size} B, {options.runs} runs, load {result['load']:.1f}; median (lowest to highest)")
    for title, part, digits in (
        ("blocking call, median, µs", "call_us", 1),
        (f"{OUTSTANDING} outstanding, calls/s", "calls_per_second", 0),
        ("ratios inside a run", "ratios", 3),
    ):
        print(f"\n{title}")
        for name, (middle, low, high) in result[part].items():  # type: ignore[attr-defined]
            print(f"  {name:58} {middle:>12,.{digits}f}  ({low:,.{digits}f} to {high:,.{digits}f})")


if __name__ == "__main__":
    main()
