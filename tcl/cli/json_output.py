"""What a command says: lines for people, or one JSON document for programs (``docs/json.md``)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import click

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="All of it as one JSON document, for programs: tcl docs json.",
)


def print_json(data: object) -> None:
    """Print a document. What is no number, as a file of others may have it, is null."""
    click.echo(json.dumps(_finite(data), indent=1, allow_nan=False))


def _finite(data: Any) -> Any:
    match data:
        case float():
            return data if math.isfinite(data) else None
        case dict():
            return {name: _finite(value) for name, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case _:
            return data


@dataclass(slots=True)
class Said:
    """What a command has said so far; a document is printed at the end, as a whole."""

    as_json: bool
    data: dict[str, Any] = field(default_factory=dict)

    def say(self, *lines: str, **data: object) -> None:
        """Say something: to people in lines, to programs in values by name."""
        self.data |= data
        if not self.as_json:
            for line in lines:
                click.echo(line)

    def end(self) -> None:
        """Nothing more is said."""
        if self.as_json:
            print_json(self.data)
