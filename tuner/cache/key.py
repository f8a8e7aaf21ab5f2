"""What a measured time depends on, and in what two such things differ."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import asdict, dataclass

from tcl.tuner.cache.fingerprint import FIELDS, fields


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """What a kernel is compiled for, of one input."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: str

    @property
    def row_major(self) -> bool:
        """Whether the elements lie one after the other, the last dimension's next to each other."""
        bits = re.search(r"\d+$", self.dtype)
        step = int(bits[0]) // 8 if bits else 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=False):
            if stride != step and extent > 1:
                return False
            step *= max(1, extent)
        return True

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What a measured time depends on. Two keys that are equal may share winners."""

    definition: str
    """Canonical text of the def: names and layout do not matter."""
    backend: str
    """``cpu``, ``cuda``."""
    inputs: tuple[ArrayLayout, ...]
    device: str
    """Identity of the device, as the backend reports it, and its threads (``fingerprint``)."""
    codegen_version: str
    """Kernels made by another version may be faster, slower or wrong."""

    @property
    def definition_hash(self) -> str:
        """SHA-256 of the definition, in hex."""
        return hashlib.sha256(self.definition.encode()).hexdigest()

    @property
    def digest(self) -> str:
        """SHA-256 of all ingredients, in hex."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def sizes(self) -> str:
        """The inputs, for people."""
        return " ".join(map(str, self.inputs))


@dataclass(frozen=True, slots=True)
class Difference:
    """An ingredient in which two keys differ."""

    ingredient: str
    here: str
    there: str


INGREDIENTS = (
    *("def text", "backend", "dtypes", *(name for name in FIELDS if name != "threads")),
    *("shapes", "threads", "strides", "codegen version"),
)
"""What keys are compared by: the fields of their devices (``fingerprint.FIELDS``) and the rest.
What is named first sets results further apart."""


def differences(key: CacheKey, other: CacheKey) -> tuple[Difference, ...]:
    """The ingredients in which two keys differ, in the order of ``INGREDIENTS``."""
    here, there = _ingredients(key), _ingredients(other)
    found = []
    for name in INGREDIENTS:
        ours, theirs = here[name], there[name]
        if ours == theirs:
            continue
        if name == "def text":  # the first lines that are not alike
            lines = itertools.zip_longest(
                ours.splitlines(), theirs.splitlines(), fillvalue="(nothing)"
            )
            ours, theirs = next(((a, b) for a, b in lines if a != b), (ours, theirs))
        found.append(Difference(name, ours, theirs))
    return tuple(found)


def _ingredients(key: CacheKey) -> dict[str, str]:
    strides = ["row-major" if i.row_major else str(i.strides) for i in key.inputs]
    return {
        "def text": key.definition,
        "backend": key.backend,
        "dtypes": " ".join(i.dtype for i in key.inputs),
        **fields(key.device),
        "shapes": " ".join(f"[{','.join(map(str, i.shape))}]" for i in key.inputs),
        "strides": " ".join(strides),
        "codegen version": key.codegen_version,
    }
