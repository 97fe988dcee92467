"""Conversion of keyword arguments to TOML, which the engine reads."""

import json
from collections.abc import Mapping


def to_toml(settings: Mapping[str, object]) -> str:
    """Returns settings as TOML text; a nested mapping becomes a section."""
    values: list[str] = []
    sections: list[str] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            sections.append(f"[{json.dumps(name)}]")
            sections += [f"{json.dumps(key)} = {_value(key, item)}" for key, item in value.items()]
        else:
            values.append(f"{json.dumps(name)} = {_value(name, value)}")
    return "\n".join([*values, *sections])


def _value(name: str, value: object) -> str:
    # `bool` is a subclass of `int`, and json.dumps writes it as TOML does.
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(name, item) for item in value)}]"
    raise TypeError(f"{name}: a number, text, bool or list is required, not '{type(value).__name__}'")
