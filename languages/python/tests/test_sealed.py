"""Sealed packets, and counters."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import apus
import apus.aio
import pytest
from apus.settings import SecuritySettings


def security(folder: Path, name: str, secret: bytes) -> SecuritySettings:
    """Settings with a secret that only this user can read."""
    path = folder / name
    path.touch(mode=0o600)
    path.write_bytes(secret)
    return {"mode": "secret", "secret": str(path)}


def test_endpoints_with_one_secret_understand_each_other(tmp_path: Path, serve: Callable[..., apus.Address]) -> None:
    ours, others = security(tmp_path, "a", b"a" * 32), security(tmp_path, "b", b"b" * 32)
    address = serve(lambda request: request.reply(request.payload), security=ours)
    with apus.Endpoint.client(security=ours) as client:
        assert client.call(address, b"sealed", timeout=60) == b"sealed"
    with apus.Endpoint.client(security=others) as stranger, pytest.raises(apus.Untrusted) as caught:
        stranger.call(address, b"", timeout=60)
    assert caught.value.execution is apus.Execution.NOT_EXECUTED


def test_asyncio_seals_as_well(tmp_path: Path, serve: Callable[..., apus.Address]) -> None:
    ours = security(tmp_path, "a", b"a" * 32)
    address = serve(lambda request: request.reply(request.payload), security=ours)

    async def call() -> dict[str, int]:
        async with await apus.aio.Endpoint.client(security=ours) as client:
            assert await client.call(address, b"sealed", timeout=60) == b"sealed"
            return client.metrics()

    assert asyncio.run(call())["client_responses_done"] == 1


def test_security_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(apus.OptionsError, match="unknown field"):
        apus.Endpoint.client(security={"password": "x"})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(apus.OpenError, match="missing"):
        apus.Endpoint.client(security={"mode": "secret", "secret": str(tmp_path / "missing")})
    with pytest.raises(TypeError, match="allow"):
        apus.Endpoint.client(security={"allow": [b"bytes"]})  # type: ignore[list-item]


def test_counters_grow(client: apus.Endpoint, echo: apus.Address) -> None:
    before = client.metrics()
    client.call(echo, b"")
    after = client.metrics()
    calls = ("client_responses_done", "local_calls")
    assert sum(after.get(name, 0) - before.get(name, 0) for name in calls) == 1
    assert all(isinstance(value, int) and value >= 0 for value in after.values())
