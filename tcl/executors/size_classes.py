"""A def for a class of sizes: what one kernel serves, and how options for it are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tcl.arrays.random_inputs import input_shape
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.compiler import Device, compiler_for
from tcl.common.dataclass import dataclass
from tcl.common.errors import CompileError, OptionsError
from tcl.common.log import logger
from tcl.executors.calls import contiguous
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import BUCKETS, SizeClass, classes_of
from tcl.grammar.sizes.varying import Undecided
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.tree.checked import CheckedDef, Tensor
from tcl.selection.best_options import Query, layout_key
from tcl.tuner.cache.key import ArrayLayout

_log = logger("executors")

NOT_FOR_ALL = (Undecided, SourceError, OptionsError, CompileError)
"""What is raised where there can be no kernel for all sizes of a class. Whatever is in the way, a
kernel for the sizes at hand can be made, or says what is wrong with them. An ``IRError`` is none of
these: it is a mistake in a pass, and heard."""


@dataclass(frozen=True, slots=True)
class ForAll:
    """A def for all sizes of some classes."""

    classes: Mapping[str, SizeClass]
    """By the names of the sizes that vary."""
    sizes: Mapping[str, int]
    """All sizes that arrays have; of those that vary the representative ones."""
    symbolic: SizedDef
    """The definition with formulas for sizes."""

    @classmethod
    def for_sizes(
        cls, definition: CheckedDef, sizes: Mapping[str, int], classes: Mapping[str, SizeClass]
    ) -> ForAll:
        """``sizes``: some that the classes hold. Raises what ``infer`` raises, and ``Undecided``
        for what is not the same for all of them."""
        symbols = {name: each.symbol(name) for name, each in classes.items()}
        shapes = {t.name: input_shape(t, {**sizes, **symbols}) for t in definition.inputs}
        representative = {**sizes, **{name: each.representative for name, each in classes.items()}}
        return cls(classes, representative, infer(definition, shapes))

    def check(self, device: Device) -> None:
        """Raises one of ``NOT_FOR_ALL`` unless there can be a kernel for all of these sizes, which
        does not depend on options: those that nobody asked for are made to fit."""
        compiler_for(device, asked=False).check(self.symbolic)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """What options that are tried within cannot do for all of these sizes is an
        ``OptionsError``."""
        try:
            yield
        except Undecided as reason:
            raise OptionsError(
                f"these options cannot be used for all of {self}: {reason}"
            ) from None

    def query(self, device: Device) -> Query:
        """How a cache is asked for options. Raises what ``infer`` raises."""
        sized, layouts = self.representative()
        return Query(sized, layout_key(sized, layouts, device), device, self.classes)

    def representative(self) -> tuple[SizedDef, tuple[ArrayLayout, ...]]:
        """The def for the representative sizes of the classes, and its inputs, whose axes say their
        classes. Raises what ``infer`` raises."""
        definition = self.symbolic.checked
        layouts = tuple(map(self._layout, definition.inputs))
        shapes = {t.name: i.shape for t, i in zip(definition.inputs, layouts, strict=True)}
        return infer(definition, shapes), layouts

    def _layout(self, tensor: Tensor) -> ArrayLayout:
        """Of a row-major input."""
        shape, dtype = input_shape(tensor, self.sizes), numpy_dtype(tensor.type)
        classes = tuple(self.classes.get(str(dim)) for dim in tensor.dims or ())
        strides = contiguous(shape, dtype.itemsize)
        return ArrayLayout(shape, strides, dtype.name, classes if any(classes) else ())

    def __str__(self) -> str:
        return text_of(self.classes)


def text_of(classes: Mapping[str, SizeClass]) -> str:
    """Classes as sentences name them, such as ``M=16..255``."""
    return ", ".join(f"{name}={each}" for name, each in classes.items())


def tell(definition: CheckedDef, classes: Mapping[str, SizeClass], reason: Exception) -> None:
    """Logs why there is no kernel for all sizes of these classes."""
    about = definition.name, text_of(classes), reason
    _log.info("%s: no kernel for all of %s: %s", *about)


def for_all(
    definition: CheckedDef, sizes: Mapping[str, int], varying: Sequence[str], device: Device
) -> ForAll | str:
    """The widest classes of these sizes for which there can be one kernel; if there are none, and
    these sizes have a kernel of their own, that and why as a sentence."""
    values = ", ".join(f"{name}={sizes[name]}" for name in varying)
    why = f"classes hold sizes from {BUCKETS[0]} to {BUCKETS[-1] - 1}"
    for classes in classes_of(sizes, varying):
        try:
            found = ForAll.for_sizes(definition, sizes, classes)
            found.check(device)
        except NOT_FOR_ALL as reason:
            tell(definition, classes, reason)
            why = getattr(reason, "message", str(reason))
        else:
            return found
    return f"no kernel of {definition.name} can be for a class of {values}: {why}"
