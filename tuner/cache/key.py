"""What a measured time depends on, and in what two such things differ."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import asdict, replace

from tcl.common.dataclass import dataclass
from tcl.common.number_format import plural
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.tuner.cache.fingerprint import FIELDS, fields, split_threads


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """What a kernel is compiled for, of one input."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: str
    classes: tuple[SizeClass | None, ...] = ()
    """Of the dimensions whose sizes vary, of which ``shape`` has the representative ones; None for
    each of the others. Empty if no size of this input varies."""

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

    @property
    def extents(self) -> str:
        """Of the dimensions, for people: sizes, and classes of those that vary."""
        classes = self.classes or (None,) * len(self.shape)
        pairs = zip(self.shape, classes, strict=True)
        return f"[{','.join(str(extent if of is None else of) for extent, of in pairs)}]"

    def has(self, other: ArrayLayout) -> bool:
        """Whether a kernel for this one serves an array that lies like the other."""
        if not self.classes:
            return self == other
        if other.classes or other.dtype != self.dtype or len(other.shape) != len(self.shape):
            return False
        each = zip(self.shape, self.classes, other.shape, strict=True)
        fits = all(theirs == own if of is None else theirs in of for own, of, theirs in each)
        return fits and other.row_major

    def __str__(self) -> str:
        return f"{self.dtype}{self.extents}"


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
        data = asdict(self)
        for layout in data["inputs"]:
            if not layout["classes"]:
                del layout["classes"]
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def sizes(self) -> str:
        """The inputs, for people."""
        return " ".join(map(str, self.inputs))

    @property
    def described(self) -> str:
        """All that its results are for besides the def, for people."""
        device, threads = split_threads(self.device)
        lies = "row-major" if all(i.row_major for i in self.inputs) else "with these strides"
        of = f", {plural(threads, 'thread')}" if self.backend == "cpu" else ""
        return f"{self.sizes} ({lies}){of}, on {device}"

    @property
    def varies(self) -> bool:
        """Whether it is of a class of sizes."""
        return any(i.classes for i in self.inputs)

    def has(self, other: CacheKey) -> bool:
        """Whether the kernels of this one's class serve the sizes of another one."""
        pairs = zip(self.inputs, other.inputs, strict=True)
        return replace(other, inputs=self.inputs) == self and all(a.has(b) for a, b in pairs)


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
        "shapes": " ".join(i.extents for i in key.inputs),
        "strides": " ".join(strides),
        "codegen version": key.codegen_version,
    }
