"""The demo: apus compared with TCP, between two processes of this machine."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._apus import Endpoint, reply_all, resolve
from .errors import ClosedError

OUTSTANDING = 64
"""Outstanding calls in the rate measurements."""


class Demo(dict[str, dict[str, float]]):
    """Measured figures by transport."""

    def table(self) -> str:
        """Returns a table for people."""
        head = ["", "call, median", "p99", f"{OUTSTANDING} outstanding"]
        lines = [head]
        for way, found in self.items():
            rate = found.get("calls_per_second")
            lines.append(
                [
                    way,
                    f"{found['p50_us']:.1f} µs",
                    f"{found['p99_us']:.1f} µs",
                    f"{rate:,.0f} calls/s" if rate is not None else "",
                ]
            )
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        text = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join(text)


def demo(seconds: float, size: int) -> Demo:
    """Measures calls of `size` bytes over shared memory, over the network of this host, and over
    TCP, each for `seconds`."""
    request = bytes(size)
    found = Demo()
    for name, local in (("apus, shared memory", True), ("apus, UDP", False)):
        with _server("apus", local) as address, Endpoint.client(local=local) as client:
            server = resolve(address)
            figures = _round_trips(lambda: client.call(server, request, timeout=60), seconds)
            figures["calls_per_second"] = _rate(client, address, request, seconds)
            found[name] = figures
    with _server("tcp", size) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def call() -> None:
                connection.sendall(request)
                _receive(connection, size)

            if size > 0:
                found["TCP, one connection"] = _round_trips(call, seconds)
                found["TCP, one connection"]["calls_per_second"] = _tcp_rate(connection, request, seconds)
    return found


def _round_trips(call: Callable[[], object], seconds: float) -> dict[str, float]:
    """Repeats a call. The first fifth of the time is discarded."""
    clock = time.perf_counter_ns
    times: list[int] = []
    start = clock()
    warm = start + int(seconds * 0.2e9)
    end = start + int(seconds * 1e9)
    before = start
    while before < end or not times:
        before = clock()
        call()
        after = clock()
        if after >= warm:
            times.append(after - before)
    times.sort()
    return {"p50_us": times[len(times) // 2] / 1000, "p99_us": times[len(times) * 99 // 100] / 1000}


def _rate(client: Endpoint, address: str, request: bytes, seconds: float) -> float:
    """Returns the calls per second with `OUTSTANDING` calls outstanding."""
    server = resolve(address)
    client.send_many(server, [request] * OUTSTANDING)
    done = 0
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or done == 0:
        completions = client.recv_completions(OUTSTANDING)
        for completion in completions:
            completion.result()
        done += len(completions)
        client.send_many(server, [request] * len(completions))
    while done > 0 and client.recv_completions(OUTSTANDING, 0.01):
        pass
    return done / (now - start)


def _tcp_rate(connection: socket.socket, request: bytes, seconds: float) -> float:
    """Returns the exchanges per second with `OUTSTANDING` requests outstanding on one
    connection."""
    connection.sendall(request * OUTSTANDING)
    done = 0
    rest = b""
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds:
        responses, rest = _split(rest + connection.recv(1 << 16), len(request))
        done += len(responses)
        connection.sendall(request * len(responses))
    return done / (now - start)


def _split(data: bytes, size: int) -> tuple[list[bytes], bytes]:
    """Returns the messages in `data`, and the start of the next one."""
    whole = len(data) // size * size
    return [data[at : at + size] for at in range(0, whole, size)], data[whole:]


def _receive(connection: socket.socket, size: int) -> None:
    while size > 0:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("the server of the demo has ended")
        size -= len(part)


@contextmanager
def _server(kind: str, option: object) -> Iterator[str]:
    """Runs a server in a separate process, and yields its address."""
    command = [sys.executable, "-m", "apus.demo", kind, str(int(option))]  # type: ignore[call-overload]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            if not address:
                raise ConnectionError("the server of the demo has ended")
            yield address
        finally:
            # The server ends with its standard input.
            server.stdin.close()


def _serve_apus(local: bool) -> None:
    server = Endpoint.bind("127.0.0.1:0", local=local)
    print(server.address, flush=True)

    def end_with_input() -> None:
        sys.stdin.read()
        server.close()

    threading.Thread(target=end_with_input, daemon=True).start()
    try:
        while True:
            reply_all([(request, request.payload) for request in server.recv_requests(OUTSTANDING)])
    except ClosedError:
        pass


def _serve_tcp(size: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        print(f"{host}:{port}", flush=True)
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rest = b""
            while data := connection.recv(1 << 16):
                messages, rest = _split(rest + data, max(size, 1))
                connection.sendall(b"".join(messages))


if __name__ == "__main__":
    if sys.argv[1] == "apus":
        _serve_apus(bool(int(sys.argv[2])))
    else:
        _serve_tcp(int(sys.argv[2]))
