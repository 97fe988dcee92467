"""Keyword arguments as TOML, which the engine reads."""

import json
from collections.abc import Mapping


def to_toml(settings: Mapping[str, object]) -> str:
    """Returns settings as TOML text; a mapping inside is a section."""
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
    # `bool` is a kind of `int`, and differs in TOML as in JSON.
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(name, item) for item in value)}]"
    raise TypeError(f"{name}: a number, text, bool or list is required, not '{type(value).__name__}'")
