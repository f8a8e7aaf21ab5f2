"""What ``show``, ``run`` and ``tune`` share: options from the command line, devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcl.api import size
from tcl.arrays.annotations import sizes_of
from tcl.arrays.arguments import Array, new_output
from tcl.arrays.index_values import index_tensors
from tcl.arrays.random_inputs import random_inputs
from tcl.cli.common import choose, read, tell
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.grammar.checked import CheckedDef
from tcl.grammar.errors import ArgumentError
from tcl.grammar.findings import size_findings
from tcl.grammar.sized import SizedDef


@dataclass(frozen=True, slots=True)
class Work:
    """A def with sizes and inputs."""

    text: str
    checked: CheckedDef
    sizes: Mapping[str, int]
    sized: SizedDef
    inputs: tuple[Array, ...]

    @classmethod
    def load(cls, file: Path, entry: str | None, sizes: str | None, seed: int) -> Work:
        """What the command line names; ``TclError`` if there is no such thing."""
        text, checked = choose(file, entry)
        values = sizes_of(checked, sizes)
        return cls.of(text, checked, values, seed)

    @classmethod
    def of(cls, text: str, checked: CheckedDef, sizes: Mapping[str, int], seed: int) -> Work:
        """A def of a text with random inputs of these sizes."""
        inputs = random_inputs(checked, sizes, seed)
        sized = size(checked, inputs)
        tell(checked, size_findings(sized))
        return cls(text, checked, sizes, sized, inputs)

    def outputs(self) -> tuple[Array, ...]:
        """New outputs. They are zero, for defs that add to what they hold."""
        return tuple(new_output(self.sized, t, np.zeros) for t in self.checked.outputs)

    @property
    def title(self) -> str:
        """The def and its sizes, for people."""
        return " ".join([self.checked.name, *(f"{k}={v}" for k, v in self.sizes.items())])

    @contextmanager
    def indexing(self) -> Iterator[None]:
        """Where kernels run: an index out of range comes from values that the user did not
        choose; ``ArgumentError`` says so, and how to choose them."""
        try:
            yield
        except IndexError as error:
            names = index_tensors(self.checked)
            raise ArgumentError(
                f"{error}; the values of {' and '.join(names)} were chosen at random, and do not "
                "fit: say which do in a comment above the def, "
                f"`# values {names[0]}: FIRST..STOP` (without STOP itself), or run and tune from "
                "Python, with arrays of your own"
            ) from None


def parse_options(text: str | None) -> MappingOptions | None:
    """Options as the command line gives them; ``OptionsError`` if they are not."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        return MappingOptions.from_json(text)
    if text in PRESETS:
        return MappingOptions(text)
    try:
        content = read(Path(text))
    except (ArgumentError, ValueError) as error:
        presets = ", ".join(PRESETS)
        raise OptionsError(
            f"unknown preset {text!r}: use one of {presets}, JSON, or a file of JSON ({error})"
        ) from None
    try:
        return MappingOptions.from_json(content)
    except OptionsError as error:
        raise OptionsError(f"{text}: {error}") from None
