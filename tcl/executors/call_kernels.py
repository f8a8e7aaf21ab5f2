"""Which kernel runs on the inputs of a call, and by which options."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tcl.arrays.arguments import Argument, Array, Wanted, wanted_places
from tcl.arrays.given import Given
from tcl.arrays.libraries import HOST
from tcl.arrays.user_input import check_sequence
from tcl.codegen.compiler import Device
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.executors.call_inputs import Inputs, inputs_of
from tcl.executors.calls import Calls
from tcl.executors.executor import Executor
from tcl.executors.size_classes import ForAll
from tcl.executors.varying import Family, OfClass
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import Query
from tcl.selection.predicted_options import best_or_predicted
from tcl.selection.suggested_options import CacheFactory, Chosen, origin
from tcl.selection.tune_modes import TuneMode

if TYPE_CHECKING:
    from tcl.executors import cuda_executor
    from tcl.executors.dispatch import Kernels
else:
    cuda_executor = Lazy("tcl.executors.cuda_executor")

_log = logger("executors")

MOST_SHAPES = 256
"""Shapes that kernels are kept for, of all defs of a text, by last use: some 60 KB each. The code
of others is in the user's cache, from where it is loaded in a millisecond."""
MOST_VARIED = 256
"""Executors that are kept for sizes that vary: another one of a known class is made in less time
than most calls take, while a service may see any number of sizes."""


@dataclass(frozen=True, slots=True)
class FirstCall:
    """A call with sizes that had no kernel yet, of a def whose options nobody gave."""

    query: Query
    source: str
    """The text of the defs."""
    number: int
    """Of the GPU that the inputs lie on; ``HOST`` for none."""
    values: Callable[[], tuple[Array, ...]]
    """The inputs as arrays that can be read."""


FirstUse: TypeAlias = Callable[[FirstCall, TuneMode], Chosen]
"""Gives the options for a call, and may measure for that."""


def executor_for(
    kernels: Kernels,
    entry_point: str,
    inputs: Sequence[Argument] | Sequence[Any],
    wanted: Wanted = None,
) -> tuple[Calls[Any], Given]:
    """The executor for these inputs' sizes and device, and the inputs as it takes them.
    ``wanted``: what a new one's calls return if they do not say."""
    definition = kernels.definition(entry_point)
    check_sequence(definition, inputs)
    found = inputs_of(definition, inputs)
    given = found.given
    places = None if wanted is None else wanted_places(definition, wanted)
    key = (entry_point, given.device, places, *(view.shape for view in given.views))
    executor = kernels.executors.get(key)
    if executor is not None:
        with contextlib.suppress(KeyError):  # another thread has just removed it
            kernels.executors.move_to_end(key)
        return executor, given
    with kernels.lock:
        executor = kernels.executors.get(key)
        if executor is None:
            executor = kernels.executors[key] = _make(kernels, definition, found, wanted)
            if len(kernels.executors) > MOST_SHAPES:
                kernels.executors.popitem(last=False)
            if isinstance(executor, OfClass):
                kernels.varied.append(key)
                if len(kernels.varied) > MOST_VARIED:
                    kernels.executors.pop(kernels.varied.popleft(), None)
    return executor, given


def _make(kernels: Kernels, definition: CheckedDef, found: Inputs, wanted: Wanted) -> Calls[Any]:
    given = found.given
    if kernels.several[definition.name]:
        of_class = _of_class(kernels, definition, found, wanted)
        if of_class is not None:
            return of_class
    sized = kernels.sized_by(definition, given.views)
    options = _choose_options(kernels, definition, found, sized)
    executor: Calls[Any]
    if given.device == HOST:
        executor = Executor(sized, options, kernels.threads, wanted)
    else:
        executor = cuda_executor.CudaExecutor(sized, options, given.device, wanted)
    if _log.isEnabledFor(logging.DEBUG):
        shapes, used = [tuple(view.shape) for view in given.views], executor.options
        about = definition.name, shapes, used, origin(options, used)
        _log.debug("%s on %s: options %s%s", *about)
    return executor


def _of_class(
    kernels: Kernels, definition: CheckedDef, found: Inputs, wanted: Wanted
) -> Calls[Any] | None:
    """An executor for row-major arrays whose kernel is one for all sizes of a class; None for
    sizes that no class holds, or that contradict each other."""
    views, several = found.given.views, kernels.several[definition.name]
    sizes: dict[str, int] = {}
    for tensor, view in zip(definition.inputs, views, strict=True):
        for dim, extent in zip(tensor.dims or (), view.shape, strict=tensor.dims is not None):
            if (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim) != extent:
                return None  # which is said where they are inferred
    fixed = tuple((name, value) for name, value in sizes.items() if name not in several)
    others = tuple(
        view.shape for view, t in zip(views, definition.inputs, strict=True) if t.dims is None
    )
    if kernels.strict:
        kernels.sized_by(definition, views)
    key = definition.name, found.given.device, fixed, others
    family = kernels.families.get(key)
    if family is None:
        family = Family(
            definition,
            several,
            _device(kernels, found),
            found.given.device,
            asked=kernels.options is not None and not isinstance(kernels.options, CacheFactory),
            strict=kernels.strict,
        )
        kernels.families[key] = family
    return family.executor(
        sizes,
        wanted,
        lambda all_: _choose_options(
            kernels, definition, found, kernels.sized_by(definition, views), all_
        ),
    )


def _choose_options(
    kernels: Kernels,
    definition: CheckedDef,
    found: Inputs,
    sized: SizedDef,
    all_: ForAll | None = None,
) -> Chosen:
    """The options for inputs: the caller's, else the best that are known; those for all sizes
    of classes if such are given, about which models know nothing."""
    given = found.given
    options = _callers_options(
        kernels, definition.name, given.arrays, {} if all_ is None else all_.classes
    )
    if options is not None:
        return options
    device = _device(kernels, found)
    query = Query.on_inputs(sized, given.views, device) if all_ is None else all_.query(device)
    mode = kernels.modes.mode_of(definition.name)
    if kernels.first_use is None or kernels.nearest or mode.name in ("off", "predict"):
        mode = mode if all_ is None else TuneMode("off")
        return best_or_predicted(query, mode, nearest=kernels.nearest, relax=kernels.relax)
    call = FirstCall(query, definition.text, given.device, found.values)
    return kernels.first_use(call, mode)


def _device(kernels: Kernels, found: Inputs) -> Device:
    return found.gpu or replace(host_cpu(), threads=kernels.threads)


def _callers_options(
    kernels: Kernels, entry_point: str, arrays: tuple[Any, ...], classes: Mapping[str, SizeClass]
) -> Chosen | None:
    """The caller's options for these inputs; None if the best known are wanted. ``classes``:
    of the sizes that vary."""
    options = kernels.options
    if options is None or isinstance(options, MappingOptions):
        return options
    made: Chosen | None
    if isinstance(options, CacheFactory):
        made = options.choices(kernels.source, entry_point, arrays, classes)
    else:
        made = options(kernels.source, entry_point, *arrays)
    if not isinstance(made, Chosen):
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        raise OptionsError(f"the options factory has no options for {entry_point} on {shapes}")
    return made


def size(checked: CheckedDef, arrays: Sequence[Array]) -> SizedDef:
    """The definition with the sizes of these inputs."""
    shapes = {t.name: tuple(a.shape) for t, a in zip(checked.inputs, arrays, strict=True)}
    return infer(checked, shapes)
