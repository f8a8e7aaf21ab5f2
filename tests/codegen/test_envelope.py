"""Dataclasses as bytes: what comes back, and what is refused."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

import pytest

from tcl.codegen.common.envelope import MAGIC, seal, unseal
from tcl.grammar.syntax.types import FLOAT32, ScalarType


class Colour(Enum):
    RED = "r"


@dataclass(frozen=True)
class Part:
    number: int
    sure: bool
    colour: Colour
    type: ScalarType


@dataclass(frozen=True)
class Whole:
    first: bytes
    parts: tuple[Part, ...]
    pair: tuple[tuple[int, ...], str]
    second: bytes = b""


WHOLE = Whole(b"a\nb\0", (Part(-3, True, Colour.RED, FLOAT32),) * 2, ((1, 2), 'é"\n'), b"c")


def test_what_is_sealed_comes_back() -> None:
    assert unseal(Whole, seal(WHOLE)) == WHOLE
    content = seal(WHOLE, "name")
    assert unseal(Whole, content, "name") == WHOLE
    assert unseal(Whole, content) is None and unseal(Whole, content, "other") is None
    assert unseal(Part, content, "name") is None


@pytest.mark.parametrize("at", range(0, len(seal(WHOLE)), 7))
def test_damage_is_seen(at: int) -> None:
    content = seal(WHOLE)
    assert unseal(Whole, content[:at]) is None
    assert unseal(Whole, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) is None


def test_what_was_sealed_otherwise_is_refused() -> None:
    content = seal(WHOLE)
    assert unseal(Whole, content.replace(b"envelope 1", b"envelope 2")) is None
    older = b'{"name":"","sites":[],"scratch":[]}\ncode'
    sealed = hashlib.sha256(older).hexdigest().encode() + b"\n" + older
    assert unseal(Whole, b"tcl object 2 " + sealed) is None
    assert unseal(Whole, MAGIC + sealed) is None


def sealed(class_: str, value: str, blobs: bytes = b"") -> bytes:
    """With a header of this JSON, and a checksum that is right."""
    rest = f'{{"name":"","class":"{class_}","value":{value}}}\n'.encode() + blobs
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


PART = '{"number":1,"sure":true,"colour":"RED","type":"float32"}'


@pytest.mark.parametrize(
    "value",
    [
        "[]",
        "{}",
        PART[:-1],
        PART.replace("1", '"1"'),
        PART.replace("1", "true"),
        PART.replace("true", "1"),
        PART.replace("RED", "BLUE"),
        PART.replace("float32", "float33"),
        PART.replace("float32", "float32,more:1"),
        PART.replace('"number":1,', ""),
        "[" * 100_000,
    ],
)
def test_a_header_of_another_form_is_refused(value: str) -> None:
    assert unseal(Part, sealed("Part", PART)) is not None
    assert unseal(Part, sealed("Part", value)) is None


def test_blobs_have_to_be_there() -> None:
    value = '{"first":%d,"parts":[],"pair":[[],""],"second":0}'
    assert unseal(Whole, sealed("Whole", value % 9, b"ab")) is None
    assert unseal(Whole, sealed("Whole", value % -1, b"ab")) is None
    assert unseal(Whole, sealed("Whole", value % 2, b"ab")) == Whole(b"ab", (), ((), ""))
