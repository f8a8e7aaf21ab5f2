"""The defs of a text with their kernels, of which none is loaded before a first call, and what
``define`` takes besides the text."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tcl.arrays.annotations import named_sizes
from tcl.arrays.user_input import SourceLike, check_flag, text_of
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import MappingOptions
from tcl.common.closest import did_you_mean, no_def
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError, OptionsError
from tcl.common.forks import reentrant_lock
from tcl.common.lazy import Lazy
from tcl.common.shown import kind_of, shown
from tcl.common.warn import warn_user
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.errors import Diagnostic, RangeInferenceError, SourceError, TclSemanticError
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import CacheFactory, ThreadedFactory
from tcl.selection.tune_modes import ModeLike, tune_modes
from tcl.tuner.cache.fingerprint import relaxed_fields

if TYPE_CHECKING:
    from tcl.arrays.arguments import Argument, Array, Wanted
    from tcl.arrays.given import Given
    from tcl.executors import call_kernels
    from tcl.executors.calls import Calls
    from tcl.executors.varying import Family
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
                found = findings.findings(definition, named_sizes(definition), strict=True)
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
                f"a def is selected by its name, a string, not {kind_of(name)}; there are: "
                f"{', '.join(self.defs)}"
            )
        if name not in self.defs:
            raise ArgumentError(no_def(name, self.defs))
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


def check_varying(varying: object, defs: Collection[CheckedDef]) -> tuple[str, ...]:
    """Names of sizes that vary; ``ArgumentError`` for one that no def of the text has."""
    if isinstance(varying, str) or not isinstance(varying, Sequence):
        raise ArgumentError(
            f'varying has to be names of sizes, as in varying=("N",), not {shown(varying)}'
        )
    known = dict.fromkeys(name for definition in defs for name in definition.sizes)
    for name in varying:
        if not isinstance(name, str) or name not in known:
            hint = did_you_mean(name, known, f"there are: {', '.join(known) or 'none'}", "'")
            raise ArgumentError(f"varying: no def has a size {shown(name)}; {hint}")
    # Plain strings: NumPy's print otherwise, also in formulas.
    return tuple(dict.fromkeys(map(str, varying)))


if TYPE_CHECKING:
    from tcl.tuner.run.result import TuningResult


class OptionsFactory(Protocol):
    """Makes options for inputs that are about to be run on."""

    def __call__(self, source: str, entry_point: str, /, *inputs: Any) -> MappingOptions | None: ...


OptionsLike: TypeAlias = (
    "MappingOptions | str | OptionsFactory | TuningResult[MappingOptions] | None"
)
"""Options, a preset's name, ``predict`` (``PREDICT``), a factory, what a search found, or None for
the best way that is known."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the defs of a text are to run; ``define`` says what each of these means.

    Raises ``ArgumentError`` for settings of which one leaves another without a meaning.
    """

    options: OptionsLike = None
    threads: int | None = None
    nearest: bool = False
    strict: bool = False
    relax: str | Iterable[str] | None = None
    tune_mode: ModeLike | None = None
    varying: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_flag("nearest", self.nearest)
        check_flag("strict", self.strict)
        given = self.options is not None
        if self.tune_mode is not None and (self.nearest or given):
            raise ArgumentError(
                "tune_mode applies only if no options are given or known; leave out tune_mode "
                f"or {'nearest' if self.nearest else 'options'}"
            )
        if self.nearest and given:
            raise ArgumentError(
                "nearest=True is for the user's own tuning cache, and options were given; for "
                'a cache of yours: tcl.make_load_from_cache_options_factory("my.db", nearest=True)'
            )
        if self.relax is not None and given:
            raise ArgumentError(
                "relax= is for the user's own tuning cache, and options were given; for a cache "
                'of yours: tcl.make_load_from_cache_options_factory("my.db", relax=...)'
            )


@dataclass(frozen=True, slots=True)
class Origin:
    """What operators of a def, and of its gradients, are made from."""

    kernels: Kernels
    settings: Settings
    """What was asked for."""
    unchecked: bool
    """Whether kernels leave off the checks of data-dependent subscripts."""


PREDICT = "predict"
"""What is given for options to have them chosen by a model, as ``tune_mode="predict"`` does."""


def as_options(options: OptionsLike) -> MappingOptions | OptionsFactory | None:
    """What a caller gave for options; None where the best that are known, or what a model chooses,
    are to be used. ``OptionsError`` for what is none."""
    if isinstance(options, str):
        return None if options == PREDICT else MappingOptions(options)
    if options is None or isinstance(options, MappingOptions):
        return options
    if callable(options) and not isinstance(options, type):
        return options
    from tcl.tuner.run.result import TuningResult  # loaded already if there is one

    if isinstance(options, TuningResult):
        if options.options is None:
            raise OptionsError("that search found no working candidate; give other options")
        return as_options(options.options)
    raise OptionsError(
        f"options have to be MappingOptions, a preset's name or a factory, not {kind_of(options)}"
        + "; make them with tcl.MappingOptions.from_dict(...)" * isinstance(options, dict)
        + "; they come before the inputs" * hasattr(options, "shape")
    )


def check_functional(checked: CheckedDef, what: str) -> None:
    """Raise ``ArgumentError`` for a def that adds to what its outputs hold before a call. ``what``:
    what the framework has of it, as "an operator"."""
    if checked.uninitialised:
        names = ", ".join(f"'{n}'" for n in sorted(checked.uninitialised))
        raise ArgumentError(
            f"{checked.name} adds to {names}, but {what} makes new outputs; write the reduction "
            "with '!', or pass the values to add to as an input"
        )


def settled_options(kernels: Kernels) -> MappingOptions | CacheFactory | None:
    """The options that were given, which no run of the program changes. Raises ``OptionsError`` for
    a factory that is a function."""
    options = kernels.options
    if isinstance(options, MappingOptions | CacheFactory | None):
        return options
    raise OptionsError(
        "an options factory may tune or read values, which is not possible while a program is "
        "traced: pass MappingOptions, a preset's name, or "
        "make_load_from_cache_options_factory(...); tune first with tcl.autotune(..., "
        "store_to_cache=True), which saves what this loads"
    )
