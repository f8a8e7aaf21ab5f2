"""The defs of a text with their kernels: which one runs on given arrays, and with which options."""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tcl.arrays.arguments import Argument, Array, Wanted, wanted_places
from tcl.arrays.given import Given
from tcl.arrays.libraries import HOST
from tcl.arrays.user_input import SourceLike, check_sequence, text_of
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.closest import closest
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError, OptionsError
from tcl.common.forks import reentrant_lock
from tcl.common.log import logger
from tcl.common.shown import kind_of
from tcl.common.warn import tell
from tcl.executors.call_inputs import Inputs, inputs_of
from tcl.executors.calls import Calls
from tcl.executors.executor import Executor
from tcl.executors.settings import PREDICT, Settings, as_options
from tcl.executors.size_classes import ForAll, check_varying
from tcl.executors.varying import Family, OfClass
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.findings import findings, size_findings
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.syntax.errors import Diagnostic, RangeInferenceError, SourceError, TclSemanticError
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import Query
from tcl.selection.predicted_options import best_or_predicted
from tcl.selection.suggested_options import CacheFactory, Chosen, ThreadedFactory, origin
from tcl.selection.tune_modes import TuneMode, tune_modes
from tcl.tuner.cache.fingerprint import relaxed_fields

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


class Kernels:
    """What the functions of a text share: its defs, and an executor for all sizes so far."""

    def __init__(
        self,
        source: SourceLike,
        settings: Settings,
        first_use: FirstUse | None = None,
    ) -> None:
        """``first_use`` does what modes say that measure; with none, nothing is measured."""
        self.source, name = text_of(source)
        self.threads = thread_count(settings.threads)
        options = as_options(settings.options)
        if isinstance(options, ThreadedFactory):
            options = options.for_threads(self.threads)
        self.options = options
        self.nearest = settings.nearest
        mode = PREDICT if settings.options == PREDICT else settings.tune_mode
        self.relax = relaxed_fields(settings.relax) if self.options is None else frozenset[str]()
        self.strict = settings.strict
        self.defs = check(self.source, name)
        self._tune_mode = mode
        self.modes = tune_modes(mode, self.defs)
        self._first_use = first_use
        self.varying = check_varying(settings.varying, self.defs.values())
        self._told: set[Hashable] = set()
        """Defs, and places in them, that were warned of."""
        for definition in self.defs.values():
            found = findings(definition, strict=True) if self.strict else definition.warnings
            self._tell(definition, found)
        self._executors: OrderedDict[tuple[object, ...], Calls[Any]] = OrderedDict()
        """By def, device, outputs that are usually returned and shapes, the last used last."""
        self._varied: deque[tuple[object, ...]] = deque()
        """Which of them are for sizes that vary, oldest first."""
        self._families: dict[tuple[object, ...], Family] = {}
        """By def, device and all sizes that do not vary."""
        self._several: dict[str, tuple[str, ...]] = {
            name: tuple(s for s in self.varying if s in definition.sizes)
            for name, definition in self.defs.items()
        }
        """Def → its sizes that vary."""
        # An options factory runs under it, and may well call a def of this text.
        self._lock = reentrant_lock()

    @property
    def settings(self) -> Settings:
        """What another one is made with that does the same, wherever it is made."""
        relax = tuple(sorted(self.relax)) if self.options is None else None
        return Settings(
            *(self.options, self.threads, self.nearest, self.strict),
            *(relax, self._tune_mode, self.varying),
        )

    def forget(self) -> None:
        """Forget all executors: the next calls make new ones."""
        with self._lock:
            self._executors = OrderedDict()
            self._varied.clear()
            self._families = {}

    def varying_of(self, name: str) -> tuple[str, ...]:
        """The sizes of a def that vary."""
        return self._several[name]

    def definition(self, name: str) -> CheckedDef:
        """The checked def of that name; ``ArgumentError`` if there is none."""
        if not isinstance(name, str):
            raise ArgumentError(
                f"a def is chosen by its name, a string, not {kind_of(name)}; "
                f"there are: {', '.join(self.defs)}"
            )
        if name not in self.defs:
            raise ArgumentError(unknown(name, self.defs))
        return self.defs[name]

    def size(self, definition: CheckedDef, arrays: Sequence[Array]) -> SizedDef:
        """The definition with the sizes of these inputs, after a warning of what they show."""
        sized = size(definition, arrays)
        self._tell(definition, size_findings(sized), RangeInferenceError)
        return sized

    def _tell(
        self,
        definition: CheckedDef,
        found: Sequence[Diagnostic],
        error: type[SourceError] = TclSemanticError,
    ) -> None:
        """Warn of what was found, once for each place; it is an error if ``strict``."""
        if found and self.strict:
            raise error(definition.source, found)
        for finding in found:
            if (definition.name, finding.span) not in self._told:
                text = finding.render(definition.source, "warning")
                tell(text, (definition.name, finding.span), told=self._told)

    def executor(
        self,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        wanted: Wanted = None,
    ) -> tuple[Calls[Any], Given]:
        """The executor for these inputs' sizes and device, and the inputs as it takes them.
        ``wanted``: what a new one's calls return if they do not say."""
        definition = self.definition(entry_point)
        check_sequence(definition, inputs)
        found = inputs_of(definition, inputs)
        given = found.given
        places = None if wanted is None else wanted_places(definition, wanted)
        key = (entry_point, given.device, places, *(view.shape for view in given.views))
        return self._kept(key, lambda: self._make(definition, found, wanted)), given

    def _kept(self, key: tuple[object, ...], make: Callable[[], Calls[Any]]) -> Calls[Any]:
        """The executor of these sizes, made if there is none."""
        executor = self._executors.get(key)
        if executor is not None:
            with contextlib.suppress(KeyError):  # another thread has just removed it
                self._executors.move_to_end(key)
        else:
            with self._lock:
                executor = self._executors.get(key)
                if executor is None:
                    executor = self._executors[key] = make()
                    if len(self._executors) > MOST_SHAPES:
                        self._executors.popitem(last=False)
                    if isinstance(executor, OfClass):
                        self._varied.append(key)
                        if len(self._varied) > MOST_VARIED:
                            self._executors.pop(self._varied.popleft(), None)
        return executor

    def _make(self, definition: CheckedDef, found: Inputs, wanted: Wanted) -> Calls[Any]:
        given = found.given
        if self._several[definition.name]:
            of_class = self._of_class(definition, found, wanted)
            if of_class is not None:
                return of_class
        sized = self.size(definition, given.views)
        options = self._chosen(definition, found, sized)
        executor: Calls[Any]
        if given.device == HOST:
            executor = Executor(sized, options, self.threads, wanted)
        else:
            from tcl.executors.cuda_executor import CudaExecutor

            executor = CudaExecutor(sized, options, given.device, wanted)
        if _log.isEnabledFor(logging.DEBUG):
            shapes, used = [tuple(view.shape) for view in given.views], executor.options
            about = definition.name, shapes, used, origin(options, used)
            _log.debug("%s on %s: options %s%s", *about)
        return executor

    def _of_class(self, definition: CheckedDef, found: Inputs, wanted: Wanted) -> Calls[Any] | None:
        """An executor for row-major arrays whose kernel is one for all sizes of a class; None for
        sizes that no class holds, or that contradict each other."""
        views, several = found.given.views, self._several[definition.name]
        sizes: dict[str, int] = {}
        for tensor, view in zip(definition.inputs, views, strict=True):
            for dim, extent in zip(tensor.dims or (), view.shape, strict=tensor.dims is not None):
                if (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim) != extent:
                    return None  # which is said where they are inferred
        fixed = tuple((name, value) for name, value in sizes.items() if name not in several)
        others = tuple(
            view.shape for view, t in zip(views, definition.inputs, strict=True) if t.dims is None
        )
        if self.strict:
            self.size(definition, views)
        key = definition.name, found.given.device, fixed, others
        family = self._families.get(key)
        if family is None:
            family = Family(
                definition,
                several,
                self.threads,
                asked=self.options is not None and not isinstance(self.options, CacheFactory),
                strict=self.strict,
                device=found.given.device,
            )
            self._families[key] = family
        return family.executor(
            sizes,
            wanted,
            lambda all_: self._chosen(definition, found, self.size(definition, views), all_),
        )

    def _chosen(
        self, definition: CheckedDef, found: Inputs, sized: SizedDef, all_: ForAll | None = None
    ) -> Chosen:
        """The options for inputs: the caller's, else the best that are known; those for all sizes
        of classes if such are given, about which models know nothing."""
        given = found.given
        options = self._given(definition.name, given.arrays, {} if all_ is None else all_.classes)
        if options is not None:
            return options
        cpu = replace(host_cpu(), threads=self.threads)
        device = found.gpu or cpu
        query = Query.of(sized, given.views, device) if all_ is None else all_.query(device)
        mode = self.modes.of(definition.name)
        if self._first_use is None or self.nearest or mode.name in ("off", "predict"):
            mode = mode if all_ is None else TuneMode("off")
            return best_or_predicted(query, mode, nearest=self.nearest, relax=self.relax)
        call = FirstCall(query, definition.source.text, given.device, found.values)
        return self._first_use(call, mode)

    def _given(
        self, entry_point: str, arrays: tuple[Any, ...], classes: Mapping[str, SizeClass]
    ) -> Chosen | None:
        """The caller's options for these inputs; None if the best known are wanted. ``classes``:
        of the sizes that vary."""
        options = self.options
        if options is None or isinstance(options, MappingOptions):
            return options
        made: Chosen | None
        if isinstance(options, CacheFactory):
            made = options.choices(self.source, entry_point, arrays, classes)
        else:
            made = options(self.source, entry_point, *arrays)
        if not isinstance(made, Chosen):
            shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
            raise OptionsError(f"the options factory has none for {entry_point} on {shapes}")
        return made


def size(checked: CheckedDef, arrays: Sequence[Array]) -> SizedDef:
    """The definition with the sizes of these inputs."""
    shapes = {t.name: tuple(a.shape) for t, a in zip(checked.inputs, arrays, strict=True)}
    return infer(checked, shapes)


def unknown(name: str, defs: Collection[str]) -> str:
    """What is wrong with a name that no def has."""
    near = closest(name, defs)
    hint = f"did you mean '{near}'?" if near else f"there are: {', '.join(defs)}"
    return f"there is no def '{name}'; {hint}"
