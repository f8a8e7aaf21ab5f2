"""The defs of a text with their kernels, of which none is loaded before a first call."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tcl.arrays.user_input import SourceLike, text_of
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.closest import closest
from tcl.common.errors import ArgumentError
from tcl.common.forks import reentrant_lock
from tcl.common.lazy import Lazy
from tcl.common.shown import kind_of, shown
from tcl.common.warn import warn_user
from tcl.executors.settings import PREDICT, Settings, as_options
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.errors import Diagnostic, RangeInferenceError, SourceError, TclSemanticError
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import ThreadedFactory
from tcl.selection.tune_modes import tune_modes
from tcl.tuner.cache.fingerprint import relaxed_fields

if TYPE_CHECKING:
    from tcl.arrays.arguments import Argument, Array, Wanted
    from tcl.arrays.given import Given
    from tcl.executors import call_kernels
    from tcl.executors.calls import Calls
    from tcl.executors.families import Family
    from tcl.grammar.ranges import findings
    from tcl.grammar.ranges.sized import SizedDef
else:
    call_kernels = Lazy("tcl.executors.call_kernels")
    findings = Lazy("tcl.grammar.ranges.findings")


class Kernels:
    """What the functions of a text share: its defs, and an executor for all sizes so far."""

    def __init__(
        self,
        source: SourceLike,
        settings: Settings,
        first_use: call_kernels.FirstUse | None = None,
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
        self.first_use = first_use
        self.varying = check_varying(settings.varying, self.defs.values())
        self._told: set[Hashable] = set()
        """Defs, and places in them, that were warned of."""
        for definition in self.defs.values():
            found: Sequence[Diagnostic] = definition.warnings
            if self.strict:
                found = findings.findings(definition, strict=True)
            self._tell(definition, found)
        self.executors: OrderedDict[tuple[object, ...], Calls[Any]] = OrderedDict()
        """By def, device, outputs that are usually returned and shapes, the last used last."""
        self.varied: deque[tuple[object, ...]] = deque()
        """Which of them are for sizes that vary, oldest first."""
        self.families: dict[tuple[object, ...], Family] = {}
        """By def, device and all sizes that do not vary."""
        self.several: dict[str, tuple[str, ...]] = {
            name: tuple(s for s in self.varying if s in definition.sizes)
            for name, definition in self.defs.items()
        }
        """Def → its sizes that vary."""
        # An options factory runs under it, and may well call a def of this text.
        self.lock = reentrant_lock()

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
        with self.lock:
            self.executors = OrderedDict()
            self.varied.clear()
            self.families = {}

    def varying_of(self, name: str) -> tuple[str, ...]:
        """The sizes of a def that vary."""
        return self.several[name]

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

    def sized_by(self, definition: CheckedDef, arrays: Sequence[Array]) -> SizedDef:
        """The definition with the sizes of these inputs, after a warning of what they show."""
        sized = call_kernels.size(definition, arrays)
        self._tell(definition, findings.size_findings(sized), RangeInferenceError)
        return sized

    def executor(
        self,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        wanted: Wanted = None,
    ) -> tuple[Calls[Any], Given]:
        """The executor for these inputs' sizes and device, and the inputs as it takes them.
        ``wanted``: what a new one's calls return if they do not say."""
        return call_kernels.executor_for(self, entry_point, inputs, wanted)

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
                warn_user(text, (definition.name, finding.span), told=self._told)


def unknown(name: str, defs: Collection[str]) -> str:
    """What is wrong with a name that no def has."""
    near = closest(name, defs)
    hint = f"did you mean '{near}'?" if near else f"there are: {', '.join(defs)}"
    return f"there is no def '{name}'; {hint}"


def check_varying(varying: object, defs: Collection[CheckedDef]) -> tuple[str, ...]:
    """Names of sizes that vary; ``ArgumentError`` for one that no def of the text has."""
    if isinstance(varying, str) or not isinstance(varying, Sequence):
        raise ArgumentError(
            f'varying has to be names of sizes, as in varying=("N",), not {shown(varying)}'
        )
    known = dict.fromkeys(name for definition in defs for name in definition.sizes)
    for name in varying:
        if not isinstance(name, str) or name not in known:
            near = closest(name, known) if isinstance(name, str) else None
            hint = f"did you mean '{near}'?" if near else f"there are: {', '.join(known) or 'none'}"
            raise ArgumentError(f"varying: no def has a size {shown(name)}; {hint}")
    # Plain strings: NumPy's print otherwise, also in formulas.
    return tuple(dict.fromkeys(map(str, varying)))
