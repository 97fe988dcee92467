"""The exceptions, compared with the engine's list of statuses."""

import re
from pathlib import Path

import apus
from apus import errors


def test_every_status_has_an_exception() -> None:
    source = Path(__file__).parents[2] / "bindings/src/status.rs"
    names = set(re.findall(r'c"([a-z_]+)"\)', source.read_text()))
    assert len(names) > 30
    # These four are bugs of the package itself.
    assert names - set(errors._CLASSES) == {"ok", "no_descriptors", "internal", "other"}
    assert set(errors._CLASSES) <= names


def test_an_error_has_its_kind_and_what_is_known_about_the_execution() -> None:
    error = errors._make("response_lost", "executed", "the text")
    assert isinstance(error, apus.PeerLost) and isinstance(error, ConnectionError)
    assert (str(error), error.kind, error.execution) == ("the text", "response_lost", apus.Execution.EXECUTED)
    assert isinstance(errors._make("some new kind", "unknown", ""), apus.CallError)
