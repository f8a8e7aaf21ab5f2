"""Options that searches found for other sizes of a def, for sizes that nobody tuned.

They are used without asking where three things speak for them:

- there they were clearly faster than the default, timed in turns with it in the finals, and nowhere
  near slower;
- the core model chooses the same default here, in lanes, register tiles and stores: else the
  default there, which they beat, is another program than the one that they would replace here;
- the analytic model prices them no higher here, beside the default, than it does there.

By that price alone no options are better than the default, as the default is what it likes best:
it says what becomes of a measured gain, not whether there is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from tcl.codegen.compiler import compiler_for
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import OPTIONS
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError, TclError
from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.grammar.ranges.inference import infer
from tcl.selection.best_options import Query
from tcl.selection.remembered import Remembered, remember, user_cache
from tcl.selection.suggested_options import DEFAULT, Chosen, Suggested
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.first_uses import Adviser, FirstUse
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import TuningCache

if TYPE_CHECKING:
    from tcl.codegen.loopir import ir, lower
    from tcl.codegen.passes.cpu import prefetch
    from tcl.codegen.schedule.plan import Plan
    from tcl.tuner.cache import nearby
    from tcl.tuner.cache.nearby import RacedOptions
    from tcl.tuner.model import subject
else:
    prefetch = Lazy("tcl.codegen.passes.cpu.prefetch")
    lower = Lazy("tcl.codegen.loopir.lower")
    nearby = Lazy("tcl.tuner.cache.nearby")
    subject = Lazy("tcl.tuner.model.subject")

_log = logger("executors")
_KEYS = 4
"""Other sizes that are looked at, the nearest ...."""
_FARTHEST = 8.0
"""... up to this far, see ``Near.distance``."""
GAIN = 1.08
"""How many times as fast as the default options have to be at their own sizes: at others, .02 to .1
of what they gained is lost (Zen 4, four defs)."""
_DEARER = 1.02
"""How much more of the default's price they may have here than there."""
_SAME = tuple(name for name, option in OPTIONS.items() if not option.scaled)
"""Options that say what program the default is."""


def of_near_sizes(query: Query, otherwise: Callable[[], Chosen]) -> Chosen:
    """What the user's cache has for other sizes, fitted to these, where that is worth it, else
    what ``otherwise`` gives. What was decided is kept in the cache, for as long as that knows no
    more of other sizes."""
    cache = user_cache()
    if cache is None or not _plain(query.key):
        return otherwise()
    try:
        others = cache.standing(query.key)
        if not others:
            return otherwise()
        by = Adviser("sizes", hashlib.sha256(repr(others).encode()).hexdigest()[:16])
        known = first_uses.predicted(cache, query.key, by)
        if known is None:
            found = adopted(cache, query)
            text = None if found is None else found.options.to_json()
            nothing = "no other sizes' options promise more than the default"
            known = FirstUse("", text, nothing if found is None else found.key.sizes)
            remember(query, by, text, known.message)
    except CacheError:  # which was said where tuned options were looked for
        return otherwise()
    if known.winner is None:
        return otherwise()
    about = query.name, query.key.sizes, known.message
    _log.debug("%s on %s: not tuned; the options for %s are used", *about)
    entry = Suggested(known.winner, query.key.digest, known.message, 1)
    return Remembered(query.name, str(cache.path), (entry,), query=query, by=by, instead=otherwise)


def adopted(cache: TuningCache, query: Query) -> AdoptedOptions | None:
    """What is used of what a cache knows of other sizes; None if nothing is. Raises
    ``CacheError``."""
    for each in judged(cache, query):
        if isinstance(each, AdoptedOptions):
            return each
        about = query.name, query.key.sizes, each.key.sizes, each.reason
        _log.debug("%s on %s: the options for %s are not used: %s", *about)
    return None


@dataclass(frozen=True, slots=True)
class Judged:
    key: CacheKey
    reason: str
    """Why it is used, or not, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class AdoptedOptions(Judged):
    """It is used."""

    options: MappingOptions
    """Fitted."""


def judged(cache: TuningCache, query: Query) -> Iterator[Judged]:
    """What a cache knows of the nearest other sizes of a def, the nearest first, to the first that
    is used. Those that are not row-major, or vary, have no near ones. Raises ``CacheError``."""
    key = query.key
    if not _plain(key):
        return
    found = (
        o
        for o in nearby.near_keys(cache, key)
        if _plain(o) and nearby.distance(key, o) <= _FARTHEST
    )
    known = [nearby.raced(cache, other, DEFAULT.to_json()) for other in islice(found, _KEYS)]
    for each in known:
        try:
            one = _judged(query, each, known)
        except TclError as error:  # also of a key of which no def can be
            one = Judged(each.key, f"they do not apply here: {error}")
        yield one
        if isinstance(one, AdoptedOptions):
            return


def _plain(key: CacheKey) -> bool:
    return not key.varies and all(i.row_major and 0 not in i.shape for i in key.inputs)


def _judged(query: Query, found: RacedOptions, known: list[RacedOptions]) -> Judged:
    """Raises ``TclError``."""

    def refused(reason: str) -> Judged:
        return Judged(found.key, reason)

    if found.best is None:
        return refused("no correct result is known")
    if found.best == DEFAULT.to_json():
        return refused("the default was the best")
    gain = found.gains.get(found.best)
    if gain is None:
        return refused("they were never timed in the finals with the default")
    if gain < GAIN:
        return refused(f"they were {gain:.2f} times as fast as the default, less than {GAIN}")
    for other in known:
        if other.gains.get(found.best, 1.0) < 1.0:
            return refused(f"they were slower than the default for {other.key.sizes}")
    usual, there = _default(query), _query_of(query, found.key)
    own = _default(there)
    if not _same_program(own, usual):
        return refused("the default is different there")
    if any(any(o.split or ()) for o in own.options.values()):
        return refused("parts of reductions are separate nests")
    for nearer in known[: known.index(found)]:
        if (
            nearer.searched
            and nearer.best == DEFAULT.to_json()
            and _same_program(_default(_query_of(query, nearer.key)), usual)
        ):
            return refused(f"for the nearer sizes {nearer.key.sizes}, the default was the best")
    options = fitted(MappingOptions.from_json(found.best), own, usual)
    price, before = _price(query, options), _price(there, MappingOptions.from_json(found.best))
    if price > before * _DEARER:
        return refused(
            f"the model predicts {price:.2f} of the default's time here, and {before:.2f} there"
        )
    return AdoptedOptions(found.key, f"they were {gain:.2f} times as fast as the default", options)


def _query_of(query: Query, key: CacheKey) -> Query:
    """The same question about other sizes."""
    inputs = zip(query.sized.checked.inputs, key.inputs, strict=True)
    sized = infer(query.sized.checked, {tensor.name: layout.shape for tensor, layout in inputs})
    return replace(query, sized=sized, key=key)


def _default(query: Query) -> Plan[Any]:
    return compiler_for(query.device).plan(query.sized, DEFAULT, query.layouts())


def _same_program(one: Plan[Any], other: Plan[Any]) -> bool:
    if one.options.keys() != other.options.keys():
        return False
    pairs = zip(one.options.values(), other.options.values(), strict=True)
    return all(getattr(a, key) == getattr(b, key) for a, b in pairs for key in _SAME)


def fitted(options: MappingOptions, there: Plan[Any], here: Plan[Any]) -> MappingOptions:
    """What a search found, for other sizes: by the plans of the default ``there`` and ``here``.

    What it left as the default has it there is as the default has it here, a prefetch of the next
    block is one of the next block here, and dimensions are merged where they can be.
    """
    if not options.nests:
        return options  # a preset fits itself
    nests = []
    pairs = zip(there.program.nests, here.program.nests, strict=True)
    for position, (its, nest) in enumerate(pairs):
        found, own = options.own(position), there.options[its.name].made()
        usual = here.options[nest.name].made()
        left = {
            k: usual[k] for k, value in found.made().items() if k in usual and own.get(k) == value
        }
        if found.prefetch and "prefetch" not in left:
            blocks = zip(_next_blocks(there, its), _next_blocks(here, nest), strict=True)
            distances = zip(found.prefetch, blocks, strict=False)
            left["prefetch"] = tuple(new if d and d == old else d for d, (old, new) in distances)
        nests.append(replace(found, **left))
    return replace(options, nests=tuple(nests), merge=True)


def _next_blocks(plan: Plan[Any], nest: ir.Nest) -> list[int]:
    """Bytes to the next block of each operand; 0 for one that has none."""
    layouts = ((plan.program.tensor(o.ref.tensor).layout, o.ref) for o in operands(nest.point))
    chosen = plan.options[nest.name]
    return [prefetch.next_block(nest, layout, ref, plan.target, chosen) for layout, ref in layouts]


def _price(query: Query, options: MappingOptions) -> float:
    """The part of the default's time that options take by the analytic model."""
    program = lower.lower(query.sized, query.layouts())
    about = subject.subject_type(query.device.backend).read(program, query.device)
    default, own = (about.choices(each) for each in (DEFAULT, options))
    seconds = about.extract([default, own])[1]
    return float(seconds[1] / seconds[0])
