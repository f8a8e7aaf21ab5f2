"""Results in the auto-tuning community's T4 format, schema 1.0.0.

A T4 file is a JSON object with a list of results: a configuration (parameter → value), how it ended
(``invalidity``, the words of ``Verdict``), its run times in milliseconds, as Kernel Tuner writes
them, and what was measured. Options are flattened: ``nests.0.tile.1`` is the second tile size of
the first nest. The format has no place for what was tuned, and lets files hold more than it
names: that, the options as they are, and what else a cache keeps, stands under ``tcl``, which is
what is imported.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any, NoReturn

from tcl.common.errors import CacheError, TclError
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.merge import Results
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.table_rows import checked_record, layout_data, layout_of, member, placed_of
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict

SCHEMA = "1.0.0"
_MILLI = 1e3

Check = Callable[[CacheKey, str], str]
"""Canonical options; raises an error with a sentence for what are none."""


def to_t4(found: Iterable[Results]) -> str:
    """The text of a T4 file."""
    chosen = tuple(found)
    problems = [_problem(each) for each in chosen]
    results = [
        _result(position, record) for position, each in enumerate(chosen) for record in each.records
    ]
    data = {"schema_version": SCHEMA, "results": results, "tcl": {"problems": problems}}
    return json.dumps(data, indent=1) + "\n"


def _problem(results: Results) -> dict[str, object]:
    key = results.key
    return {
        "entry": results.entry,
        "definition": key.definition,
        "backend": key.backend,
        "inputs": [layout_data(layout) for layout in key.inputs],
        "device": key.device,
        "codegen_version": key.codegen_version,
    }


def _result(problem: int, record: Record) -> dict[str, object]:
    own: dict[str, object] = {"problem": problem, "run": record.run, "message": record.message}
    own["options"] = record.options
    if record.place is not None:
        own.update(heat=record.heat, place=record.place)
    if record.generation is not None:
        own["generation"] = record.generation
    if record.conditions is not None:
        own["conditions"] = list(astuple(record.conditions))
    if record.placed:
        own["placed"] = dict(record.placed)
    when = datetime.datetime.fromtimestamp(record.when, datetime.UTC)
    measured = []
    if record.time is not None:
        measured = [{"name": "time", "value": record.time * _MILLI, "unit": "ms"}]
    return {
        "timestamp": when.isoformat(),
        "configuration": _configuration(record.options),
        "objectives": ["time"],
        "times": {"runtimes": [t * _MILLI for t in record.samples]},
        "invalidity": record.verdict.value,
        "correctness": int(record.verdict is Verdict.CORRECT),
        "measurements": measured,
        "tcl": own,
    }


def _configuration(options: str) -> dict[str, object]:
    """Options as parameters with plain values."""
    try:
        data = json.loads(options)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not data:
        return {"options": options}
    flat: dict[str, object] = {}

    def fill(name: str, value: object) -> None:
        if isinstance(value, dict | list) and value:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, each in pairs:
                fill(f"{name}.{key}" if name else str(key), each)
        else:
            flat[name] = value

    fill("", data)
    return flat


def from_t4(text: str, name: str, check: Check) -> tuple[Results, ...]:
    """What the text of a T4 file says. ``name`` is the file's, for messages.

    ``CacheError`` unless all of it can be used.
    """
    data = opened(text, name)
    where = f"{name}: problem"
    try:
        keys = []
        for position, problem in enumerate(data["tcl"]["problems"]):
            where = f"{name}: problem {position}"
            keys.append(_key(problem))
        records: list[list[Record]] = [[] for _ in keys]
        for position, result in enumerate(data["results"]):
            where = f"{name}: result {position}"
            problem = member(member(result, "tcl", dict), "problem", int)
            if not 0 <= problem < len(keys):
                raise ValueError(f"there is no problem {problem}")
            records[problem].append(_record(result, keys[problem][0], check))
    except (ValueError, RecursionError, OverflowError, TclError) as error:
        raise CacheError(f"{where}: {error}") from None
    pairs = zip(keys, records, strict=True)
    return tuple(Results(key, entry, tuple(each)) for (key, entry), each in pairs if each)


def opened(text: str, name: str) -> dict[str, Any]:
    """The lists ``results`` and, in ``tcl``, ``problems`` of a T4 file that tcl wrote;
    ``CacheError`` if another program did. What is in the lists is not looked at."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CacheError(f"{name} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise CacheError(f"{name} is not a T4 file: it has no list of results")
    version = data.get("schema_version")
    if not isinstance(version, str) or not re.fullmatch(r"1\.\d+\.\d+", version):
        raise CacheError(f"{name} has T4 schema version {version!r}; this tcl reads 1.x")
    own = data.get("tcl")
    if not isinstance(own, dict) or not isinstance(own.get("problems"), list):
        raise CacheError(
            f"{name} does not say which def its results belong to; another program made it"
        )
    return data


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _key(data: object) -> tuple[CacheKey, str]:
    inputs = tuple(map(layout_of, member(data, "inputs", list)))
    names = ("definition", "backend", "device", "codegen_version", "entry")
    definition, backend, device, version, entry = texts = [member(data, n, str) for n in names]
    for text in (*texts, *(i.dtype for i in inputs)):
        text.encode()  # raises for what no file can hold
    return CacheKey(definition, backend, inputs, device, version), entry


def _record(data: object, key: CacheKey, check: Check) -> Record:
    own = member(data, "tcl", dict)
    verdict = Verdict(member(data, "invalidity", str))
    times = member(member(data, "times", dict), "runtimes", list)
    if not all(type(t) in (int, float) and math.isfinite(t) for t in times):
        raise ValueError("runtimes have to be numbers")
    if bool(times) != (verdict is Verdict.CORRECT):
        raise ValueError("a correct result needs runtimes, and no other result may have them")
    names = ("heat", "place", "generation")
    heat, place, generation = (member(own, n, int) if n in own else None for n in names)
    samples = tuple(t / _MILLI for t in times)
    known = own.get("conditions")
    conditions = None if known is None else Conditions.from_json(known)
    outcome = Outcome(
        verdict, samples, member(own, "message", str), heat, place,
        conditions=conditions,
        placed=placed_of(own.get("placed", {})),
    )  # fmt: skip
    when = datetime.datetime.fromisoformat(member(data, "timestamp", str)).timestamp()
    run = member(own, "run", str)
    return checked_record(
        Record.from_outcome(check(key, member(own, "options", str)), outcome, when, run, generation)
    )
