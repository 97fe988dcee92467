"""The command `python -m apus`."""

import json
import subprocess
import sys

import apus


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "apus", *arguments], capture_output=True, text=True)


def test_the_demo_measures_each_way() -> None:
    result = run("demo", "--seconds", "0.05", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert list(found) == ["apus, shared memory", "apus, UDP", "TCP, one connection"]
    for figures in found.values():
        assert 0 < figures["p50_us"] <= figures["p99_us"] and figures["calls_per_second"] > 0
    table = run("demo", "--seconds", "0.05", "--size", "1000").stdout
    assert "64 outstanding" in table and "calls/s" in table


def test_wrong_arguments_are_named() -> None:
    result = run("demo", "--seconds", "0")
    assert result.returncode == 2 and "--seconds" in result.stderr


def test_a_server_and_a_client_by_hand() -> None:
    command = [sys.executable, "-m", "apus", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("listening on ").strip()
        result = run("call", address, "from the shell")
        assert (result.returncode, result.stdout) == (0, "from the shell\n"), result.stderr
        server.terminate()
    result = run("call", address, "--timeout", "30")
    assert result.returncode == 1 and "not executed" in result.stderr
    assert run("--version").stdout == f"apus {apus.__version__}\n"
