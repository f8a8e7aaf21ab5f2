"""Whatever the text: a result or an error of ours, and soon."""

from __future__ import annotations

import random
import re
import time
import warnings
from collections import Counter
from functools import partial

import pytest
from bounds_oracle import run_everywhere
from programs import ACCEPTED, SEMANTIC, in_def, unmark
from sampling import swept
from steps import steps
from strategies import random_program

from examples import FILES
from tcl.common.errors import TclError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax.errors import RangeInferenceError, TclSemanticError, TclSyntaxError
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text

_TOKEN = re.compile(r"\s+|#[^\n]*|\w+|[^\w\s]")


def _attempt(text: str) -> str:
    """Check a text and infer its ranges for a few small shapes; what became of it."""
    try:
        defs = check(text, "fuzz")
    except TclSyntaxError:
        return "syntax"
    except TclSemanticError:
        return "semantic"
    outcome = "ranges"
    for definition in defs.values():
        for extent in (4, 1, 0):
            shapes = {
                t.name: tuple(d if isinstance(d, int) and d < 100 else extent for d in t.dims or ())
                for t in definition.inputs
            }
            try:
                infer(definition, shapes)
                outcome = "accepted"
            except RangeInferenceError:
                pass
            except TclError:  # shapes that contradict the signature
                pass
    return outcome


def _timed(text: str) -> tuple[str, float]:
    start = time.process_time()
    outcome = _attempt(text)
    return outcome, time.process_time() - start


# --- mutations ---


def _corpus() -> list[str]:
    texts = [in_def(t) for t in ACCEPTED]
    texts += [unmark(in_def(case[0])).text for case in SEMANTIC]
    texts += [random_program(seed, max_statements=2).source for seed in range(60)]
    for path in FILES:
        parts = path.read_text().split("\ndef ")
        texts += ["def " + part.removeprefix("def ") for part in parts[1:]]
    return [t for t in texts if len(t) < 1500]


_CHARACTERS = (
    "abijkmnNOAT019 .,:;?!=+-*/%<>&|()[]{}#\n\t\r\x00\x7f\"'\\@$~`^_"
    "\u00e9\u03b1\u2264\u00d7\u200b\ufeff\u2028\U0001f600\ud800"
)
_SPELLINGS = (
    *"def where in exists min max float int32 uint8 bool double half byte bfloat16".split(),
    *"= += *= min= max= +=! *=! min=! max=! + - * / % < <= > >= == != && || ! ? :".split(),
    *"( ) { } , . -> <=> # i j k m n A b O N M s idx c 0 1 2 3 10 1.5 .5 1e9 1e999".split(),
    *"exp pow fma T.0 A.1 b.9 b(i) A(m,n) O(i) 4294967296 18446744073709551615".split(),
    *"2147483647 -2147483648 9223372036854775807 i*i i/2 i%0 1/0".split(),
    *("where i in 0:N", "x = i + 1", "exists b(i)", "O(i) = b(i)", " ", "\n", "\r\n"),
)


def _mutated(rng: random.Random, text: str, other: str) -> str:
    """Some random changes, of characters or of tokens."""
    by_token = rng.random() < 0.7
    parts = _TOKEN.findall(text) if by_token else list(text)
    pool = _SPELLINGS if by_token else _CHARACTERS
    donor = _TOKEN.findall(other) if by_token else list(other)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(parts) + 1)
        end = min(len(parts), at + rng.choice((1, 1, 2, 5)))
        how = rng.randrange(7)
        if how == 0:
            del parts[at:end]
        elif how == 1:
            parts.insert(at, rng.choice(pool))
        elif how == 2:
            parts[at:end] = [rng.choice(pool)]
        elif how == 3:
            parts[at:at] = parts[at:end] * rng.choice((1, 2, 20))
        elif how == 4 and donor:
            start = rng.randrange(len(donor))
            parts[at:end] = donor[start : start + rng.choice((1, 3, 10))]
        elif how == 5 and parts:
            a, b = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[a], parts[b] = parts[b], parts[a]
        else:
            del parts[at:]
            parts += rng.choice((["}"], [], [")"], ["\n}"]))
    return "".join(parts)


_ALIKE = (
    "N M O A b d i j k m n s x c idx T0 A0 A1 exp fmax min max P Q".split(),
    "+ - * / % < > ? : && || == != <= >=".split(),
    "0 1 2 3 4 5 7 10 -1 1.5 .5 256 2147483647 4294967296 1e9".split(),
    "float int32 uint8 bool double half bfloat16 int64 uint64".split(),
    "= += *= min= max= +=! *=! min=! max=!".split(),
    "( ) , where exists in".split(),
)
_ANY_TOKEN = re.compile(r"\s+|#[^\n]*|[A-Za-z_]\w*|[\d.]+|(?:[+*]|min|max)=!?|[&|=!<>]+|.")


def _exchanged(rng: random.Random, text: str) -> str:
    """Some tokens exchanged for others of their kind: most such texts still parse."""
    parts = _ANY_TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(parts)) if parts else 0
        alike = next((kind for kind in _ALIKE if parts and parts[at] in kind), None)
        if alike:
            parts[at] = rng.choice(alike)
    return "".join(parts)


def _soup(rng: random.Random) -> str:
    """Random tokens, sometimes inside a def."""
    words = " ".join(rng.choice(_SPELLINGS) for _ in range(rng.randint(1, 60)))
    return in_def(f"O | {words}") if rng.random() < 0.7 else words


def _subject(rng: random.Random, corpus: list[str]) -> str:
    if rng.random() < 0.08:
        return _soup(rng)
    if rng.random() < 0.5:
        return _exchanged(rng, rng.choice(corpus))
    return _mutated(rng, rng.choice(corpus), rng.choice(corpus))


def _examine(text: str) -> None:
    """What passes the checks prints and parses back, and does not touch what it must not."""
    tree = parse(text)
    assert parse(to_text(tree)) == tree
    for definition in check(text).values():
        shapes = {t.name: (3,) * t.rank for t in definition.inputs}
        try:
            sized = infer(definition, shapes)
        except TclError:
            continue
        run_everywhere(sized, random.Random(0), most_points=50)


def _fuzz(seeds: range) -> Counter[str]:
    corpus = _corpus()
    outcomes: Counter[str] = Counter()
    slowest, slowest_text = 0.0, ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in seeds:
            text = _subject(random.Random(seed), corpus)
            try:
                outcome, seconds = _timed(text)
            except Exception as e:
                pytest.fail(f"seed {seed}: {type(e).__name__}: {e}\n{text!r}")
            outcomes[outcome] += 1
            if outcome in ("ranges", "accepted"):
                _examine(text)
            if seconds > slowest:
                slowest, slowest_text = seconds, text
    print(f"\n{dict(outcomes)}; slowest {slowest:.3f} s: {slowest_text[:300]!r}")
    assert steps(lambda: _attempt(slowest_text)) < 3_000_000, slowest_text
    return outcomes


@pytest.mark.parametrize("seeds", swept([range(2_500)], [range(2_500, 220_000)]), ids=str)
def test_thousands_of_texts(seeds: range) -> None:
    outcomes = _fuzz(seeds)
    assert min(outcomes[o] for o in ("syntax", "semantic", "ranges", "accepted")) > 10, outcomes


# --- sizes that nobody writes ---

_DEEP = 5000
_MANY = 1200
"""Lets, each made of the one before: more than Python has frames for."""


def _in_f(body: str, outputs: str = "O") -> str:
    return f"def f(float(N) A, int32(N) B) -> ({outputs}) {{ {body} }}"


def _lets(first: str, following: str, use: str, count: int = 100) -> str:
    """A chain of lets, each made of the one before it (``{0}``)."""
    lets = [f"x0 = {first}", *(f"x{k + 1} = {following.format(f'x{k}')}" for k in range(count))]
    return _in_f(f"O(i) = {use.format(f'x{count}')} where i in 0:3, {', '.join(lets)}")


def _balanced(leaf: str, depth: int, op: str) -> str:
    return (
        leaf
        if not depth
        else f"({_balanced(leaf, depth - 1, op)} {op} " + (f"{_balanced(leaf, depth - 1, op)})")
    )


def _chain(count: int) -> list[str]:
    first = "def f0(float(N) A) -> (O) { O(i) = A(i) }"
    return [first, *(f"def f{k}(float(N) A) -> (O) {{ O = f{k - 1}(A) }}" for k in range(1, count))]


def _doubling(count: int) -> list[str]:
    first = "def f0(float(N) A) -> (O) { O(i) = A(i) }"
    calls = "O = f{0}(A) O = f{0}(A)"
    rest = (f"def f{k}(float(N) A) -> (O) {{ {calls.format(k - 1)} }}" for k in range(1, count))
    return [first, *rest]


_EXTREMES = {
    "parentheses": _in_f(f"O(i) = {'(' * _DEEP}A(i){')' * _DEEP}"),
    "open parentheses": _in_f(f"O(i) = {'(' * 50_000}"),
    "minus": _in_f(f"O(i) = {'-' * _DEEP}A(i)"),
    "not": _in_f(f"O(i) = {'!' * _DEEP}(A(i) > 0) ? 1 : 0"),
    "built-ins": _in_f(f"O(i) = {'exp(' * _DEEP}A(i){')' * _DEEP}"),
    "casts": _in_f(f"O(i) = {'int8(' * _DEEP}A(i){')' * _DEEP}"),
    "reads": _in_f(f"O(i) = A({'B(' * _DEEP}i{')' * _DEEP})"),
    "reads within the limit": _in_f(f"O(i) = A({'B(' * 190}i{')' * 190})"),
    "read sums within the limit": _in_f(f"O(i) = A({'B(1+' * 90}i{')' * 90})"),
    "select right": _in_f("O(i) = " + "A(i) > 0 ? 1 : " * _DEEP + "A(i)"),
    "select middle": _in_f("O(i) = " + "A(i) > 0 ? " * _DEEP + "A(i)" + ": 1" * _DEEP),
    "select within the limit": _in_f("O(i) = " + "i > 0 ? A(i) : " * 95 + "A(i)"),
    "sum": _in_f("O(i) = " + " + ".join(["A(i)"] * _DEEP)),
    "product of 4096": _in_f(f"O(i) = {_balanced('A(i)', 12, '*')}"),
    "subscript of 4096": _in_f(f"O(i) = A({_balanced('B(i)', 12, '*')})"),
    "index product of 4096": _in_f(f"O(i) = A({_balanced('i', 12, '*')}) where i in 0:2"),
    "condition of 4096": _in_f(f"O(i) = {_balanced('i > 0', 12, '&&')} ? A(i) : 0"),
    "2000 statements": _in_f(
        "".join(f"T{k}(i) = {f'T{k - 1}' if k else 'A'}(i) + 1\n" for k in range(2000)),
        ", ".join(f"T{k}" for k in range(2000)),
    ),
    "2000 updates": _in_f("O(i) = A(i)\n" + "O(i) = O(i) + 1\n" * 2000),
    "2000 mistakes": _in_f("".join(f"O(i) = zz{k}(i)\n" for k in range(2000))),
    "2000 unlisted": _in_f("".join(f"Q{k}(i) = A(i)\n" for k in range(2000))),
    "2000 defs": "\n".join(f"def f{k}(float(N) A) -> (O) {{ O(i) = A(i) }}" for k in range(2000)),
    "2000 calls down": "\n".join(_chain(2000)),
    "2000 calls up": "\n".join(reversed(_chain(2000))),
    "2^40 calls": "\n".join(_doubling(40)),
    "long tensor name": _in_f(f"O(i) = {'x' * 10_000}(i)"),
    "long index name": _in_f(f"O({'x' * 10_000}) = A({'x' * 10_000})"),
    "long wrong name": _in_f(f"O(i) = A(i) + {'x' * 10_000}"),
    "long integer": _in_f(f"O(i) = {'9' * 100_000}"),
    "long zeros": _in_f(f"O() = {'0' * 100_000}"),
    "long float": _in_f(f"O(i) = {'1' * 100_000}.5"),
    "large exponent": _in_f("O(i) = 1e99999999999"),
    "small exponent": _in_f("O(i) = A(i) * 1e-99999999999"),
    "large axis": _in_f("O(i) = A(i) + A.99999999999999999999"),
    "large subscript": _in_f("O(i) = A(i + 18446744073709551615)"),
    "large coefficient": _in_f("O(i) = A(i * 9223372036854775807 * 9223372036854775807)"),
    "large range": _in_f("O(i) = 1 where i in 0:9223372036854775807"),
    "large box": _in_f(
        "O(i, j, k) = 1 where "
        + ", ".join(f"{i} in 0:9223372036854775807" for i in "ijk")
    ),
    "large dimension": "def f(float(99999999999999999999) A) -> (O) { O(i) = A(i) }",
    "2000 inputs": "def f(" + ", ".join(f"float(N{k}) A{k}" for k in range(2000))
    + ") -> (O) { O(i) = A0(i) }",
    "2000 dimensions": "def f(float(" + ", ".join(f"N{k}" for k in range(2000))
    + ") A) -> (O) { O = 1 }",
    "2000 indices": _in_f(
        f"O({', '.join(f'i{k}' for k in range(2000))}) = 1 where "
        + ", ".join(f"i{k} in 0:1" for k in range(2000))
    ),
    "5000 lets": _in_f("O = 1 where " + ", ".join(f"x{k} = {k}" for k in range(5000))),
    "5000 exists": _in_f("O(i) = 1 where " + ", ".join(["exists A(i)"] * 5000)),
    "180 unknown ranges": _in_f("O +=! A(" + " + ".join(f"i{k}" for k in range(180)) + ")"),
    "NUL": _in_f("O(i) = \0A(i)"),
    "surrogate": "def f(float \ud800) -> (O) {}",
    "byte order mark": "\ufeff" + _in_f("O(i) = A(i)"),
    "4000 lets": _lets("B(i)", "{0} > 0 ? {0} / 3 : {0} / 2", "{0} > 0 ? A({0}) : 0", 4000),
    "only newlines": "\n" * 200_000,
    "only hashes": "#" * 200_000,
    "too long": "# " * 200_000,
    "braces": "{" * 100_000,
    "defs": "def " * 50_000,
}  # fmt: skip
for _first, _following in (
    ("i", "{0} + {0}"),
    ("i", "{0} * {0}"),
    ("i", "{0} / {0}"),
    ("i", "{0} % {0}"),
    ("i", "min({0}, {0})"),
    ("i", "({0} + 1) / ({0} + 2)"),
    ("B(i)", "{0} + {0}"),
    ("B(i)", "{0} * {0}"),
    ("B(i)", "B({0}) + B({0})"),
    ("B(i)", "max({0} + 1, B({0}))"),
    ("B(i)", "{0} > 0 ? {0} : 1 - {0}"),
    ("B(i)", "{0} > 0 ? {0} / 3 : {0} / 2"),
):
    _EXTREMES[f"let {_first}, {_following} as subscript"] = _lets(_first, _following, "A(B({}))")
    _EXTREMES[f"let {_first}, {_following} as condition"] = _lets(
        _first, _following, "{} > 0 ? A(i) : 0"
    )
    _EXTREMES[f"{_MANY} lets {_first}, {_following}"] = _lets(
        _first, _following, "{0} > 0 ? A({0}) : 0", _MANY
    )
for _following in ("!{0}", "{0} && {0}", "{0} || !{0}", "{0} == {0}", "({0} ? {0} : !{0}) && {0}"):
    _EXTREMES[f"let i > 0, {_following}"] = _lets("i > 0", _following, "{} ? A(i) : 0")
    _EXTREMES[f"{_MANY} lets i > 0, {_following}"] = _lets(
        "i > 0", _following, "{} ? A(i) : 0", _MANY
    )
for _open, _close in (
    *(("(i + 2 * ", ")"), ("min(B(i), ", ")"), ("(i > 0 ? 1 : ", ")"), ("int8(1 + ", ")")),
    *(("(2 - B(i)) * (1 + ", ")"), ("1 / (2 + ", ")"), ("(B(i) > 0 ? 1 + i : 2 / ", ")")),
):
    for _depth in (60, 95, 190):
        _nested = f"{_open * _depth}i{_close * _depth}"
        _EXTREMES[f"subscript of {_depth} {_open}"] = _in_f(f"O(i) = A({_nested}) where i in 0:3")
        _EXTREMES[f"condition of {_depth} {_open}"] = _in_f(
            f"O(i) = {_nested} > 0 ? A(i) : 0 where i in 0:3"
        )


_NESTED = "(B(i) > 0 ? 1 + i : 2 / "
_MOST_STEPS = dict.fromkeys(_EXTREMES, 15_000_000)
"""Some seconds, for texts of the greatest length."""
_MOST_STEPS |= {name: 4_500_000 for name in _EXTREMES if name.startswith(f"{_MANY} lets")}
# They grow with the depth, and with its square only where bounds are searched for.
_MOST_STEPS[f"subscript of 95 {_NESTED}"] = 7_500_000
_OUTCOMES = {
    "parentheses": "syntax",
    "reads within the limit": "accepted",
    "select within the limit": "accepted",
    "product of 4096": "accepted",
    "2000 statements": "accepted",
    "2000 updates": "accepted",
    "2000 defs": "accepted",
    "long index name": "accepted",
    "long zeros": "accepted",
    "2000 inputs": "accepted",
    "minus": "syntax",
    "sum": "syntax",
    "2^40 calls": "semantic",
    "2000 calls up": "semantic",
    "large box": "ranges",
}
"""Of those that have to work, or to be refused for this and nothing else."""


_SLOW = {"4000 lets", "condition of 4096", "select middle", "2000 calls down"}
"""Texts whose like is among the others."""
_SLOW.update([name for name in _EXTREMES if name.startswith(f"{_MANY} lets")][1:-1])
# At 95 they take more steps, on the same path to the same outcome; of the dearest, subscripts do.
_SLOW.add(f"condition of 95 {_NESTED}")
_SLOW.update(name for name in _EXTREMES if name.startswith(("subscript of 60", "condition of 60")))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in _SLOW else ()) for n in _EXTREMES],
)
def test_extremes(name: str) -> None:
    outcomes: list[str] = []
    assert steps(lambda: outcomes.append(_attempt(_EXTREMES[name]))) < _MOST_STEPS[name]
    assert outcomes == [_OUTCOMES.get(name, *outcomes)]


def test_lets_cost_the_same_each() -> None:
    following, use = "{0} > 0 ? {0} / 3 : {0} / 2", "{0} > 0 ? A({0}) : 0"
    _attempt(_lets("B(i)", following, use, 1))  # loads what is loaded once
    few, many = (
        steps(partial(_attempt, _lets("B(i)", following, use, count))) for count in (100, 800)
    )
    assert many < 8.5 * few


def test_long_lines_are_shown_around_the_mistake() -> None:
    with pytest.raises(TclSemanticError) as caught:
        check(_in_f(f"O(i) = {' ' * 5000}Q(i){' ' * 5000}"))
    _, shown, carets = str(caught.value).split("\n")
    assert len(shown) < 130
    assert shown[carets.index("^")] == "Q"
