"""Endpoints and servers for tests."""

import faulthandler
import threading
from collections.abc import Callable, Iterator

import apus
import pytest


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Ends the process with the stacks of all threads if a test hangs."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def client() -> Iterator[apus.Endpoint]:
    with apus.Endpoint.client() as client:
        yield client


Handler = Callable[[apus.Request], object]


@pytest.fixture
def serve() -> Iterator[Callable[..., apus.Address]]:
    """Returns a function that serves requests in a thread, and returns the server's address."""
    running: list[tuple[apus.Endpoint, threading.Thread]] = []

    def start(handler: Handler, **settings: object) -> apus.Address:
        server = apus.Endpoint.bind("127.0.0.1:0", **settings)  # type: ignore[arg-type]

        def run() -> None:
            for request in server:
                handler(request)

        thread = threading.Thread(target=run)
        thread.start()
        running.append((server, thread))
        return server.address

    yield start
    for server, thread in running:
        server.close()
        thread.join()


@pytest.fixture
def echo(serve: Callable[..., apus.Address]) -> apus.Address:
    """The address of an echo server."""
    return serve(lambda request: request.reply(request.payload))
