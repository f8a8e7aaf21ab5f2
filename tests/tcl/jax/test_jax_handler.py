"""The foreign function that XLA calls, called here as XLA might: it never follows a pointer that it
did not check, and never crashes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from compiled_kernels import compile_cpu

from tcl.codegen.cpu.run.native import NativeEntry
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.jax.primitive import Handler

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
INVALID, OUT_OF_RANGE = 3, 11
F32, I64, U64 = 11, 5, 9


def plain(*fields: tuple[str, Any]) -> Any:
    """A struct of C."""
    return type("Struct", (ctypes.Structure,), {"_fields_": fields})


def struct(*fields: tuple[str, Any]) -> Any:
    """One of the interface's, which begin with a size and extensions."""
    return plain(("struct_size", SIZE), ("extension_start", POINTER), *fields)


Buffer = struct(
    ("dtype", ctypes.c_int), ("data", POINTER), ("rank", ctypes.c_int64), ("dims", POINTER)
)
List = struct(("size", ctypes.c_int64), ("types", POINTER), ("items", POINTER))
Attrs = struct(("size", ctypes.c_int64), ("types", POINTER), ("names", POINTER), ("attrs", POINTER))
Frame = struct(
    *(("api", POINTER), ("ctx", POINTER), ("stage", ctypes.c_int)),
    *(("args", List), ("rets", List), ("attrs", Attrs), ("future", POINTER)),
)
Version = struct(("major", ctypes.c_int), ("minor", ctypes.c_int))
Metadata = plain(
    *(("struct_size", SIZE), ("version", Version), ("traits", ctypes.c_uint32)),
    ("state", ctypes.c_int64),
)
Extension = plain(
    *(("struct_size", SIZE), ("type", ctypes.c_int), ("next", POINTER)),
    ("metadata", ctypes.POINTER(Metadata)),
)
ErrorArgs = struct(("message", ctypes.c_char_p), ("code", ctypes.c_int))
CREATE = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorArgs))
Api = struct(("version", Version), ("internal", POINTER), ("create", CREATE))


@dataclass
class Xla:
    """Calls a handler, and hears of its errors."""

    handler: Handler
    said: list[tuple[str, int]] = field(default_factory=list)

    def call(self, frame: Any) -> int | None:
        function = ctypes.CFUNCTYPE(POINTER, POINTER)(self.handler.address)
        found: int | None = function(ctypes.addressof(frame))
        return found

    def __call__(
        self, args: Sequence[Any], rets: Sequence[Any], stage: int = 3, **other: Any
    ) -> tuple[str, int] | None:
        """The error, if there is one. ``other``: fields of the frame."""

        def create(error: Any) -> int:
            assert error.contents.struct_size == ErrorArgs.code.offset + 4
            self.said.append((error.contents.message.decode(), error.contents.code))
            return 0x7C1

        made = CREATE(create)
        api = Api(ctypes.sizeof(Api), create=made)
        keep: list[Any] = []
        lists = []
        for buffers in (args, rets):
            kinds = (ctypes.c_int * max(1, len(buffers)))(*[1] * len(buffers))
            items = (POINTER * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
            keep += [kinds, items]
            size = ctypes.sizeof(List)
            lists.append(
                List(size, None, len(buffers), ctypes.addressof(kinds), ctypes.addressof(items))
            )
        frame = Frame(Frame.attrs.offset + ctypes.sizeof(Attrs), None, ctypes.addressof(api))
        frame.stage, (frame.args, frame.rets) = stage, lists
        for name, value in other.items():
            part, _, last = name.rpartition("__")
            setattr(getattr(frame, part) if part else frame, last, value)
        self.said.clear()
        result = self.call(frame)
        assert result == (0x7C1 if self.said else None)
        return self.said[0] if self.said else None


def buffer(array: Any, dtype: int = F32, **other: Any) -> Any:
    dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    made = Buffer(48, None, dtype, array.ctypes.data, array.ndim, ctypes.addressof(dims))
    made.keep = (array, dims)
    for name, value in other.items():
        setattr(made, name, value)
    return made


def xla(text: str, *shapes: tuple[int, ...]) -> Xla:
    (checked,) = check(text).values()
    sized = infer(checked, {t.name: s for t, s in zip(checked.inputs, shapes, strict=True)})
    entry = NativeEntry(compile_cpu(sized, MappingOptions()).launcher)
    kinds = [
        [(t.type, sized.shapes[t.name]) for t in tensors]
        for tensors in (checked.inputs, checked.outputs)
    ]
    return Xla(Handler(entry, *kinds))


ADD = "def f(float(M, N) A, float(N) B) -> (C) { C(m, n) = A(m, n) + B(n) }"


@pytest.fixture(scope="module")
def add() -> Xla:
    return xla(ADD, (2, 3), (3,))


def arrays() -> tuple[Any, Any, Any]:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    return a, np.ones(3, np.float32), np.zeros((2, 3), np.float32)


def test_a_call(add: Xla) -> None:
    a, b, c = arrays()
    assert add([buffer(a), buffer(b)], [buffer(c)]) is None
    np.testing.assert_array_equal(c, a + b)


def test_metadata(add: Xla) -> None:
    """XLA asks for them with a frame that has nothing else, when the function is registered."""
    metadata = Metadata(Metadata.traits.offset + 4, state=-1)
    extension = Extension(32, 1, None, ctypes.pointer(metadata))
    frame = Frame(168, ctypes.addressof(extension), None)
    assert add.call(frame) is None
    header = Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text("utf-8")
    assert f"XLA_FFI_API_MAJOR {metadata.version.major}\n" in header
    assert f"XLA_FFI_API_MINOR {metadata.version.minor}\n" in header
    assert metadata.version.struct_size == ctypes.sizeof(Version)
    assert metadata.traits == 0 and metadata.state == -1


def test_other_extensions_are_passed_over(add: Xla) -> None:
    a, b, c = arrays()
    extension = Extension(24, 77)
    where = ctypes.addressof(extension)
    assert add([buffer(a), buffer(b)], [buffer(c)], extension_start=where) is None
    np.testing.assert_array_equal(c, a + b)


def test_calls_of_another_kind(add: Xla) -> None:
    a, b, c = arrays()
    for stage in (0, 1, 2, 4):
        said = add([buffer(a), buffer(b)], [buffer(c)], stage)
        assert said == ("tcl: called in a way that is not known", INVALID)
    for other in ({"struct_size": 40}, {"args__struct_size": 48}, {"rets__struct_size": 32}):
        said = add([buffer(a), buffer(b)], [buffer(c)], **other)
        assert said == ("tcl: called in a way that is not known", INVALID)
    assert not c.any()


def test_buffers_that_were_not_compiled_for(add: Xla) -> None:
    a, b, c = arrays()
    wide = np.ones(4, np.float32)
    good = [buffer(a), buffer(b)]
    cases: list[tuple[list[Any], list[Any]]] = [
        ([], [buffer(c)]),
        ([buffer(a)], [buffer(c)]),
        ([*good, buffer(b)], [buffer(c)]),
        (good, []),
        (good, [buffer(c), buffer(c)]),
        ([buffer(a), buffer(wide)], [buffer(c)]),
        ([buffer(a), buffer(b, I64)], [buffer(c)]),
        ([buffer(a.T), buffer(b)], [buffer(c)]),
        ([buffer(a[0]), buffer(b)], [buffer(c)]),
        ([buffer(a, struct_size=40), buffer(b)], [buffer(c)]),
        ([buffer(a), buffer(b, data=b.ctypes.data + 1)], [buffer(c)]),
        (good, [buffer(c, data=c.ctypes.data + 2)]),
        (good, [buffer(c[:1])]),
    ]
    for args, rets in cases:
        assert add(args, rets) == ("tcl: a buffer is not what was compiled for", INVALID)
    assert not c.any()


def test_kinds_of_arguments_that_are_not_known(add: Xla) -> None:
    a, b, c = arrays()
    kinds = (ctypes.c_int * 2)(1, 2)
    other = {"args__types": ctypes.addressof(kinds)}
    said = add([buffer(a), buffer(b)], [buffer(c)], **other)
    assert said == ("tcl: a buffer is not what was compiled for", INVALID)


def test_no_memory_where_nothing_is_to_be_read() -> None:
    empty = xla(ADD, (0, 3), (3,))
    nothing, b = np.zeros((0, 3), np.float32), np.ones(3, np.float32)
    assert empty([buffer(nothing, data=None), buffer(b)], [buffer(nothing, data=None)]) is None
    scalar = xla("def f(float s) -> (O) { O = s + 1 }", ())
    one, out = np.array(1, np.float32), np.array(0, np.float32)
    assert scalar([buffer(one, dims=None)], [buffer(out, dims=None)]) is None
    assert out == 2


@pytest.mark.parametrize(
    ("type_", "number", "dtype", "value", "words"),
    [
        ("int64", I64, np.int64, -4, "index -4 is out of range for dimension 0 of tensor T"),
        ("uint64", U64, np.uint64, 2**63 + 5, f"index {2**63 + 5} is out of range for"),
    ],
)
def test_messages(type_: str, number: int, dtype: Any, value: int, words: str) -> None:
    gather = xla(f"def f(float(M) T, {type_}(N) I) -> (O) {{ O(n) = T(I(n)) }}", (5,), (2,))
    table, index, out = np.ones(5, "f"), np.array([1, value], dtype), np.zeros(2, "f")
    said = gather([buffer(table), buffer(index, number)], [buffer(out)])
    assert said is not None and said[1] == OUT_OF_RANGE
    assert said[0].startswith(words) and said[0].endswith("which has indices 0 to 4")


def test_long_names_are_cut() -> None:
    name = "T" * 10_000
    gather = xla(f"def f(float(M) {name}, int64(N) I) -> (O) {{ O(n) = {name}(I(n)) }}", (5,), (2,))
    table, index, out = np.ones(5, "f"), np.array([1, 7], np.int64), np.zeros(2, "f")
    said = gather([buffer(table), buffer(index, I64)], [buffer(out)])
    assert said is not None and said[0].startswith("index 7 is out") and len(said[0]) < 4096
