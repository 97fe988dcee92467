"""The examples, which docs/python.md shows."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, errors: str = "") -> str:
    result = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True)
    assert result.returncode == 0 and errors in result.stderr, result.stderr
    assert errors or result.stderr == ""
    return result.stdout


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("many_calls.py", {"b'one' b'ONE'", "b'two' b'TWO'", "b'three' b'THREE'"}),
        ("asyncio_calls.py", {"one", "two", "three"}),
        ("options.py", set()),
    ],
)
def test_an_example_runs(name: str, output: set[str]) -> None:
    assert set(run(name).splitlines()) == output


def test_a_handler_that_fails_tells_its_client() -> None:
    assert run("asyncio_handlers.py", "ValueError").splitlines() == ["b'42'", "abandoned"]


def test_a_call_to_a_server_that_has_gone_was_not_executed() -> None:
    assert "not executed" in run("errors.py")


def test_the_server_and_the_client_run_as_they_stand() -> None:
    # Only the port is another: a free one.
    source = (EXAMPLES / "server.py").read_text().replace("127.0.0.1:4000", "127.0.0.1:0")
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        shown = server.stdout.readline()
        assert shown.startswith("<apus.Endpoint 127.0.0.1:") and shown.endswith(" open>\n")
        port = shown.split()[1].rsplit(":", 1)[1]
        source = (EXAMPLES / "client.py").read_text()
        source = source.replace("localhost:4000", f"localhost:{port}").replace("timeout=0.5", "timeout=60")
        result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
        assert (result.stdout, result.stderr) == ("HELLO\n", "")
        server.terminate()


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in source, example.name
