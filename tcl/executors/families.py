"""Which sizes of a def share a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcl.arrays.arguments import Wanted
from tcl.arrays.libraries import HOST
from tcl.codegen.compiler import Device
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.lazy import Lazy
from tcl.executors import machine
from tcl.executors.calls import Calls
from tcl.executors.other_sizes import OtherSizes
from tcl.executors.size_classes import NOT_FOR_ALL, ForAll, tell
from tcl.executors.varying import Class
from tcl.grammar.sizes.size_classes import SizeClass, classes_of
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import DEFAULT, Chosen, applied

if TYPE_CHECKING:
    from tcl.executors import varying_cuda
else:
    varying_cuda = Lazy("tcl.executors.varying_cuda")


class Family:
    """The classes of one def that agree in all sizes that do not vary."""

    def __init__(
        self,
        definition: CheckedDef,
        varying: Sequence[str],
        threads: int,
        *,
        asked: bool,
        strict: bool,
        device: int = HOST,
    ) -> None:
        """``asked``: whether a caller gives the options; ``strict``: whether all sizes have to be
        looked at."""
        self._definition, self._varying, self._threads = definition, varying, threads
        self._asked = asked
        self._device = device
        quick = device == HOST and not strict
        self._others = OtherSizes(definition, varying, self._found) if quick else None
        self._classes: dict[tuple[SizeClass, ...], Class | None] = {}
        """By the class of each size that varies; None where no kernel can be for all of them."""

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, choose: Callable[[ForAll], Chosen]
    ) -> Calls[Any] | None:
        """The executor for some sizes; None if they have to have a kernel of their own. ``choose``
        gives the options for a new class."""
        for classes in classes_of(sizes, self._varying):
            key = tuple(classes.values())
            if key not in self._classes:
                self._classes[key] = self._make_class(sizes, classes, choose)
            found = self._classes[key]
            if found is not None:
                values = {name: sizes[name] for name in classes}
                return found.executor(values, wanted, self._others)
        return None

    def _found(self, values: Mapping[str, int]) -> Class | None:
        """The class of these sizes, if it has a kernel."""
        classes = (tuple(each.values()) for each in classes_of(values, self._varying))
        found = (self._classes.get(each) for each in classes)
        return next((each for each in found if each is not None), None)

    def _make_class(
        self,
        sizes: Mapping[str, int],
        classes: Mapping[str, SizeClass],
        choose: Callable[[ForAll], Chosen],
    ) -> Class | None:
        try:
            all_ = ForAll.for_sizes(self._definition, sizes, classes)
            # Before anything is looked up for them, or measured.
            if not self._asked:
                all_.check(self._profile())
        except NOT_FOR_ALL as reason:
            tell(self._definition, classes, reason)
            return None
        chosen = choose(all_)  # which refuses sizes that no kernel can be for
        representative = {name: each.representative for name, each in classes.items()}

        def make_with(options: MappingOptions) -> Class:
            found = self._class(all_, options)
            with all_.refusing():  # other options may be for all of them
                found.compile(representative)
            return found

        try:
            return applied(chosen, make_with)[1]
        except NOT_FOR_ALL as reason:
            tell(self._definition, classes, reason)
            if self._asked or chosen == DEFAULT:
                return None
        try:
            return make_with(DEFAULT)
        except NOT_FOR_ALL as reason:
            tell(self._definition, classes, reason)
            return None

    def _profile(self) -> Device:
        """What kernels are for."""
        if self._device == HOST:
            return replace(host_cpu(), threads=self._threads)
        return machine.this_machine().profile(self._device)

    def _class(self, all_: ForAll, options: MappingOptions) -> Class:
        about = all_, options, self._threads, self._asked
        if self._device == HOST:
            return Class(*about)
        return varying_cuda.CudaClass(*about, device=self._device)
