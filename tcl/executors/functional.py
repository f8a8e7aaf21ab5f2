"""What a def and its options have to be where a framework has the def as a function of arrays: one
that makes its outputs, in programs that are traced."""

from __future__ import annotations

from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, OptionsError
from tcl.executors.dispatch import Kernels
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import CacheFactory


def check_functional(checked: CheckedDef, what: str) -> None:
    """Raise ``ArgumentError`` for a def that adds to what its outputs hold before a call. ``what``:
    what the framework has of it, as "an operator"."""
    if checked.uninitialised:
        names = ", ".join(f"'{n}'" for n in sorted(checked.uninitialised))
        raise ArgumentError(
            f"{checked.name} adds to what is in {names}, and {what} makes its outputs; "
            "write the reduction with '!', or pass what it adds to as an input"
        )


def settled_options(kernels: Kernels) -> MappingOptions | CacheFactory | None:
    """The options that were given, which no run of the program changes. Raises ``OptionsError`` for
    a factory that is a function."""
    options = kernels.options
    if isinstance(options, MappingOptions | CacheFactory | None):
        return options
    raise OptionsError(
        "an options factory may tune, or look at values, and neither can be done while a program "
        "is traced: pass MappingOptions, a preset's name, or "
        "make_load_from_cache_options_factory(...); tune before with "
        "tcl.autotune(..., store_to_cache=True), which this loads from"
    )
