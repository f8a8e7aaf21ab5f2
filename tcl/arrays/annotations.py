"""The comment lines above a def that say which sizes and values to run it with.

    # sizes large: M=128, N=1024, K=1024
    # values I: 0..N

``examples/README.md`` describes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field

from tcl.common.closest import did_you_mean
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.number_format import is_whole_number
from tcl.grammar.tree.checked import CheckedDef

_SIZES = re.compile(r"# sizes (\w+): *(\w+=[0-9]+(?:, *\w+=[0-9]+)*)$")
_VALUES = re.compile(r"# values (\w+): *(\S+?) *\.\.(?!\.) *(\S+)$")
_MEANT = re.compile(
    r"# *(size|value)(s \S+:|s? *\w* *:.*(=|\.\.)|s \w+ (\S+(=|\.\.)\S+[, ]*)+$)", re.IGNORECASE
)
_DIGITS = 18
"""More than the sizes of any array have."""
_FORMS = {"sizes": "# sizes LABEL: M=128, N=64", "values": "# values INPUT: START..STOP"}


@dataclass(frozen=True, slots=True)
class Annotations:
    """What the comments above one def say."""

    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Label → size symbol → value, in the order of the lines."""
    values: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Input → first value and end, numbers or size symbols as written."""
    faults: tuple[str, ...] = ()
    """What is wrong with lines that begin as these do, and in which line: a sentence each."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """The same of labels whose line leaves out a size of the def, by label."""


def read_annotations(checked: CheckedDef) -> Annotations:
    """The annotations of a def, read from its source text."""
    above = _lines_above(checked)
    sizes: dict[str, Mapping[str, int]] = {}
    values: dict[str, tuple[str, str]] = {}
    faults: list[str] = []
    incomplete: dict[str, str] = {}
    comments = []
    for line in reversed(above):
        if not line.strip().startswith("#"):
            break
        comments.append(line.strip())
    for number, line in enumerate(reversed(comments), len(above) - len(comments) + 1):
        before, place = len(faults), f"{checked.source.name}:{number}: "
        if match := _SIZES.match(line):
            faults += _wrong_sizes(checked, match[1], pairs := _pairs(match[2]), sizes)
            sizes[match[1]] = {name: int(value) for name, value in pairs}
            if missing := [s for s in checked.sizes if s not in sizes[match[1]]]:
                incomplete[match[1]] = (
                    f"{place}the comment '# sizes {match[1]}' of {checked.name} has no value for "
                    f"{', '.join(missing)}; add {', '.join(f'{s}=...' for s in missing)} to it"
                )
        elif match := _VALUES.match(line):
            faults += _wrong_values(checked, match[1], match[2], match[3])
            if match[1] in values:
                faults.append(_twice(checked, f"# values {match[1]}"))
            values[match[1]] = (match[2], match[3])
        elif match := _MEANT.match(line):
            form = _FORMS[f"{match[1].lower()}s"]
            faults.append(f"the comment '{line}' of {checked.name} is not of the form '{form}'")
        faults[before:] = [place + fault for fault in faults[before:]]
    return Annotations(sizes, values, tuple(faults), incomplete)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Symbol and number, as written, of ``M=128, N=64``."""
    pairs = (pair.partition("=") for pair in text.replace(" ", "").split(","))
    return [(name, value) for name, _, value in pairs]


def _wrong_sizes(
    checked: CheckedDef, label: str, pairs: Sequence[tuple[str, str]], known: Container[str]
) -> Iterator[str]:
    """What is wrong with a comment that gives these sizes, beside those that it leaves out."""
    if label in known:
        yield _twice(checked, f"# sizes {label}")
    comment, seen = f"the comment '# sizes {label}' of {checked.name}", set()
    for name, value in pairs:
        if name not in checked.sizes:
            yield f"{comment}: {no_size(checked, name)}"
        elif name in seen:
            yield f"{comment} gives the size {name} twice"
        elif len(value) > _DIGITS:
            yield f"{comment}: the size {name} is too large"
        seen.add(name)


def _twice(checked: CheckedDef, comment: str) -> str:
    return f"{checked.name} has two comments '{comment}'; remove one of them"


def _wrong_values(checked: CheckedDef, name: str, start: str, stop: str) -> Iterator[str]:
    """What is wrong with a comment on the values of this input, whatever the sizes are."""
    comment = f"the comment '# values {name}' of {checked.name}"
    types = {t.name: t.type for t in checked.inputs}
    if name not in types:
        hint = did_you_mean(name, types, f"its inputs are {', '.join(types)}")
        yield f"{comment} names none of its inputs; {hint}"
        return
    whole = not types[name].is_float
    numbers = [_number(text) for text in (start, stop) if text not in checked.sizes]
    if None in numbers:
        yield f"{comment} names {start}..{stop}, which are not two finite numbers or sizes"
    elif whole and any(number % 1 for number in numbers if number is not None):
        yield f"{comment} names {start}..{stop}, but values of {types[name]} are whole numbers"
    elif len(numbers) == 2 and (numbers[1] or 0) < (numbers[0] or 0) + whole:
        yield f"{comment} leaves no value from {start} up to, and not including, {stop}"
    elif whole:
        least, most = types[name].limits
        if any(not least <= number <= most + 1 for number in numbers if number is not None):
            values = f"{types[name]} goes from {least} to {most}"
            yield f"{comment} names {start}..{stop}, but {values}"


def _number(text: str) -> float | None:
    """A finite number as a comment has it; None for anything else."""
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None


def _lines_above(checked: CheckedDef) -> list[str]:
    """The lines of the text above a def."""
    text = checked.source.text
    start = re.search(rf"^[ \t]*def\s+{re.escape(checked.name)}\b", text, re.MULTILINE)
    return [] if start is None else text[: start.start()].removesuffix("\n").split("\n")


def comments_apart(checked: CheckedDef) -> Iterator[str]:
    """What is wrong with lines like annotations that a blank line parts from the def, so that they
    say nothing; a sentence each. Prose names neither sizes nor inputs."""
    above = _lines_above(checked)
    names, directly = {*checked.sizes, *(t.name for t in checked.inputs)}, True
    # A line of spaces alone may be one of a def that was left out.
    while above and (not above[-1] or above[-1].lstrip().startswith("#")):
        number, line = len(above), above.pop().strip()
        directly = directly and bool(line)
        if not directly and _MEANT.match(line) and names & set(re.findall(r"\w+", line)):
            yield (
                f"{checked.source.name}:{number}: the comment '{line}' is not directly above "
                f"{checked.name}, so it says nothing; remove the blank line"
            )


def named_sizes(checked: CheckedDef) -> list[Mapping[str, int]]:
    """The sizes of the def's comments, those lines that say all of them; of a def without size
    symbols the only ones."""
    if not checked.sizes:
        return [{}]
    named = read_annotations(checked).sizes.values()
    return [each for each in named if set(checked.sizes) <= set(each)]


def parse_sizes(text: str, checked: CheckedDef) -> dict[str, int]:
    """Sizes as a user writes them, ``M=128,N=64``, or a label of the def's comments.

    Raises ``ArgumentError`` unless every size symbol of the def gets exactly one value.
    """
    known = read_annotations(checked).sizes
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) == 1 and parts[0] in known:
        return labelled_sizes(checked, parts[0])
    sizes: dict[str, int] = {}
    for part in parts:
        if part in known:
            raise ArgumentError(
                f"'{part}' is a label, which gives all sizes of {checked.name}: use it alone"
            )
        name, _, value = (p.strip() for p in part.partition("="))
        if name not in checked.sizes and name in (t.name for t in checked.inputs):
            raise ArgumentError(
                f"{name} is an input of {checked.name}, which gets random values; it is not a "
                "size; "
                + (f"the sizes are {', '.join(checked.sizes)}" if checked.sizes else "it has none")
            )
        if value.startswith("-") and is_whole_number(value[1:]):
            raise ArgumentError(f"the size {name} has to be 0 or more, not {value}")
        if name in checked.sizes and not is_whole_number(value):
            what = f"a whole number, not '{value}'" if value else "a value"
            raise ArgumentError(f"the size {name} needs {what}; write {_example(checked)}")
        if "=" not in part:
            size, _, given = (p.strip() for p in part.partition(":"))
            if size in checked.sizes and given:
                raise ArgumentError(f"'{part}' gives no size; write {size}={given}")
            other = f"write {_example(checked)}" if checked.sizes else "it has no sizes"
            other = f"its labels are {', '.join(known)}" if known else other
            hint = did_you_mean(part, known, other)
            raise ArgumentError(f"{checked.name} has no comment '# sizes {part}'; {hint}")
        if name not in checked.sizes:
            raise ArgumentError(no_size(checked, name))
        if name in sizes:
            raise ArgumentError(f"the size {name} is given twice, as {sizes[name]} and {value}")
        if len(value) > _DIGITS:
            raise ArgumentError(f"the size {name} is too large")
        sizes[name] = int(value)
    missing = [s for s in checked.sizes if s not in sizes]
    if missing:
        raise ArgumentError(
            f"{checked.name} needs a value for {', '.join(missing)}; write {_example(checked)}"
        )
    return sizes


def labelled_sizes(checked: CheckedDef, label: str) -> dict[str, int]:
    """The sizes of the def's comment with this label; ``ArgumentError`` if it leaves one out."""
    said = read_annotations(checked)
    if message := said.incomplete.get(label):
        raise ArgumentError(message)
    return dict(said.sizes[label])


def no_size(checked: CheckedDef, name: str) -> str:
    """What is wrong with a size that a def has not."""
    there = f"its sizes are {', '.join(checked.sizes)}" if checked.sizes else "it has none"
    hint = did_you_mean(name, checked.sizes, there)
    return f"{checked.name} has no size {name if name.isidentifier() else repr(name)}; {hint}"


def default_sizes(checked: CheckedDef) -> dict[str, int]:
    """The first sizes of the def's comments; ``ArgumentError`` if it needs some and has none."""
    if not checked.sizes:
        return {}
    said = read_annotations(checked)
    if said.sizes:
        return labelled_sizes(checked, next(iter(said.sizes)))
    for fault in said.faults:
        raise ArgumentError(fault)
    raise ArgumentError(
        f"{checked.name} has the sizes {', '.join(checked.sizes)}; give their values: "
        f"{_example(checked)}"
    )


def _example(checked: CheckedDef) -> str:
    """What a command needs, where a def has sizes."""
    return f"--sizes {','.join(f'{s}=...' for s in checked.sizes)}"


def sizes_of(checked: CheckedDef, text: str | None) -> dict[str, int]:
    """Sizes as a user writes them, else the first of the def's comments. Raises as
    ``parse_sizes`` and ``default_sizes``."""
    return default_sizes(checked) if text is None else parse_sizes(text, checked)
