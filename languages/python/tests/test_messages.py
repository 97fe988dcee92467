"""Buffers in both directions."""

import array
import gc
from collections.abc import Callable

import apus
import pytest


def test_everything_like_bytes_can_be_sent(client: apus.Endpoint, echo: apus.Address) -> None:
    numbers = array.array("I", [1, 2, 3])
    for buffer in (b"abc", bytearray(b"abc"), memoryview(b"xabcx")[1:4], b"", bytearray()):
        assert client.call(echo, buffer) == bytes(buffer)
    assert client.call(echo, numbers) == numbers.tobytes()
    assert client.call(echo, [b"head", bytearray(b"er"), memoryview(b"body")]) == b"headerbody"
    assert client.call(echo, (b"one",)) == b"one"
    assert client.call(echo, []) == b""

    class Kind(bytes):
        pass

    assert client.call(echo, Kind(b"a subclass")) == b"a subclass"


@pytest.mark.parametrize("wrong", ["text", 7, None, ["text"], object()])
def test_anything_else_is_an_error(client: apus.Endpoint, echo: apus.Address, wrong: object) -> None:
    with pytest.raises(TypeError, match="bytes-like object"):
        client.call(echo, wrong)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        client.call(echo, memoryview(b"abcdef")[::2])


def test_long_bytes_survive_their_sender(client: apus.Endpoint, echo: apus.Address) -> None:
    # Long enough to be sent without a copy.
    for round in range(20):
        client.send(echo, bytes([round]) * 300_000, round)
        gc.collect()
    ended = 0
    while ended < 20:
        for completion in client.recv_completions():
            assert completion.result() == bytes([completion.cookie]) * 300_000
            ended += 1


def test_a_bytearray_may_change_after_it_was_sent(client: apus.Endpoint, echo: apus.Address) -> None:
    buffer = bytearray(b"before")
    client.send(echo, buffer, 0)
    buffer[:] = b"after!"
    buffer.clear()
    (completion,) = client.recv_completions()
    assert completion.result() == b"before"


def test_a_message_is_like_bytes(client: apus.Endpoint, echo: apus.Address) -> None:
    message = client.call(echo, b"hello")
    assert isinstance(message, apus.Message)
    assert len(message) == 5 and bool(message)
    assert message == b"hello" and b"hello" == message and message != b"other"
    assert message == client.call(echo, b"hello") and message != client.call(echo, b"")
    assert not message == "hello" and not message == 5
    assert {b"hello": 1}[message] == 1  # type: ignore[index]
    assert str(message, "utf-8") == "hello"
    assert bytes(message) == b"hello" and bytearray(message) == b"hello"
    assert "5 bytes" in repr(message)
    assert b"".join([message, b"!"]) == b"hello!"
    # Received bytes can be sent again without a copy.
    assert client.call(echo, message) == message
    assert not client.call(echo, b"")


def test_a_view_is_read_only_and_keeps_the_message(client: apus.Endpoint, echo: apus.Address) -> None:
    view = memoryview(client.call(echo, b"hello" * 1000))
    gc.collect()
    assert view.readonly and view.contiguous and view.nbytes == 5000
    assert view[:5].tobytes() == b"hello"
    with pytest.raises(TypeError):
        view[0] = 1


def test_sixty_four_megabytes(client: apus.Endpoint, serve: Callable[..., apus.Address]) -> None:
    server = serve(lambda request: request.reply(str(len(request.payload)).encode()))
    size = 64_000_000
    assert client.call(server, bytes(size)) == str(size).encode()
