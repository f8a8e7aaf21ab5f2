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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from typing import Any, NoReturn

from tcl.common.errors import CacheError, TclError
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.merge import Results
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.table_rows import checked, classes_data, classes_of, placed_of
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
        "inputs": [_input(layout) for layout in key.inputs],
        "device": key.device,
        "codegen_version": key.codegen_version,
    }


def _input(layout: ArrayLayout) -> dict[str, object]:
    found = {"shape": layout.shape, "strides": layout.strides, "dtype": layout.dtype}
    return {**found, **({"classes": classes_data(layout)} if layout.classes else {})}


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
    where = f"{name}: problem"
    try:
        keys = []
        for position, problem in enumerate(own["problems"]):
            where = f"{name}: problem {position}"
            keys.append(_key(problem))
        records: list[list[Record]] = [[] for _ in keys]
        for position, result in enumerate(data["results"]):
            where = f"{name}: result {position}"
            problem = _of(_of(result, "tcl", dict), "problem", int)
            if not 0 <= problem < len(keys):
                raise ValueError(f"there is no problem {problem}")
            records[problem].append(_record(result, keys[problem][0], check))
    except (ValueError, RecursionError, OverflowError, TclError) as error:
        raise CacheError(f"{where}: {error}") from None
    pairs = zip(keys, records, strict=True)
    return tuple(Results(key, entry, tuple(each)) for (key, entry), each in pairs if each)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _key(data: object) -> tuple[CacheKey, str]:
    inputs = tuple(
        ArrayLayout(
            shape, _ints(i, "strides"), _of(i, "dtype", str), classes_of(varies, len(shape))
        )
        for i in _of(data, "inputs", list)
        for shape, varies in ((_ints(i, "shape", 0), i.get("classes", [])),)
    )
    if any(len(i.shape) != len(i.strides) for i in inputs):
        raise ValueError("an input needs a stride for each dimension")
    texts = [_of(data, n, str) for n in ("definition", "backend", "device", "codegen_version")]
    key = CacheKey(texts[0], texts[1], inputs, texts[2], texts[3])
    entry: str = _of(data, "entry", str)
    for text in (*texts, *(i.dtype for i in inputs), entry):
        text.encode()  # raises for what no file can hold
    return key, entry


def _record(data: object, key: CacheKey, check: Check) -> Record:
    own = _of(data, "tcl", dict)
    verdict = Verdict(_of(data, "invalidity", str))
    times = _of(_of(data, "times", dict), "runtimes", list)
    if not all(type(t) in (int, float) and math.isfinite(t) for t in times):
        raise ValueError("runtimes have to be numbers")
    if bool(times) != (verdict is Verdict.CORRECT):
        raise ValueError("a correct result has runtimes, and only a correct one")
    names = ("heat", "place", "generation")
    heat, place, generation = (_of(own, n, int) if n in own else None for n in names)
    samples = tuple(t / _MILLI for t in times)
    known = own.get("conditions")
    conditions = None if known is None else Conditions.of(known)
    outcome = Outcome(
        verdict, samples, _of(own, "message", str), heat, place,
        conditions=conditions,
        placed=placed_of(own.get("placed", {})),
    )  # fmt: skip
    when = datetime.datetime.fromisoformat(_of(data, "timestamp", str)).timestamp()
    run = _of(own, "run", str)
    return checked(Record.of(check(key, _of(own, "options", str)), outcome, when, run, generation))


def _of(data: object, name: str, kind: type[Any]) -> Any:
    """A member of an object, which has to be of this type."""
    value = data.get(name) if isinstance(data, dict) else None
    if type(value) is not kind:
        raise ValueError(f"{name} has to be {_KINDS[kind]}")
    return value


_KINDS = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}


def _ints(data: object, name: str, least: int | None = None) -> tuple[int, ...]:
    values: Sequence[object] = _of(data, name, list)
    numbers = [v for v in values if type(v) is int and (least is None or v >= least)]
    if len(numbers) < len(values):
        raise ValueError(f"{name} has to be a list of whole numbers")
    return tuple(numbers)
