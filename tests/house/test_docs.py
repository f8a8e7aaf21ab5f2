"""The pages of ``docs/``: what stands in them is run.

In ``docs/language.md`` a fenced block ``tc`` is a text of defs that is accepted, without a warning
that it does not tell, and one of ``tc refused`` is not. Comments that start a line say what is so,
of the last def above:

    # name(arguments) == results       its outputs, of these inputs
    # N=5, K=3: k in 0:3; Y(3)         the ranges of its last statement, the outputs' shapes
    # error: message                   the one problem that is found
    # N=5: error: message              the one for these sizes
    # warning: message                 the one warning, where it has one
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import oracles
import pytest
from click.testing import CliRunner
from compiled_kernels import CpuKernel, compile_cpu
from lark import Lark, UnexpectedInput
from places import ROOT
from programs import ACCEPTED, SYNTAX, in_def, unmark

from tcl.cli import main
from tcl.cli.docs import pages, section_names, sections
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.definitions import MAX_CALL_DEPTH, MAX_STATEMENTS, check
from tcl.grammar.ranges.findings import findings, size_finding
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax import tokens, types
from tcl.grammar.syntax.errors import SourceError
from tcl.grammar.syntax.parser import MAX_DEPTH, MAX_TEXT
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import DEFAULT

PAGE = pages()["language"]
SECTIONS = sections(PAGE)

_SIZES = r"(?P<sizes>\w+=\d+(?:, \w+=\d+)*): "
_ERROR = re.compile(rf"# (?:{_SIZES})?error: (?P<message>.*)")
_RANGES = re.compile(rf"# {_SIZES}(?P<ranges>[^;]*); (?P<shapes>.*)")
_CALL = re.compile(r"# (?P<call>\w+\(.*) == (?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page."""

    line: int
    kind: str
    text: str

    @property
    def claims(self) -> Iterator[tuple[str, str]]:
        """The comments that start a line, each with the text above it."""
        above = ""
        for line in self.text.splitlines(keepends=True):
            if line.startswith("#"):
                yield line.strip(), above
            above += line


def _blocks() -> list[Block]:
    found = re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)
    return [Block(PAGE.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in found]


BLOCKS = _blocks()


def of_kind(kind: str) -> pytest.MarkDecorator:
    """A test of each block of a kind."""
    some = [b for b in BLOCKS if b.kind == kind]
    return pytest.mark.parametrize("block", some, ids=lambda b: f"line{b.line}")


def _sizes(text: str) -> dict[str, int]:
    return {name: int(value) for name, _, value in (p.partition("=") for p in text.split(", "))}


def _last(text: str) -> CheckedDef:
    return list(check(text).values())[-1]


def _use(text: str, sizes: str | None) -> None:
    definition = _last(text)
    if sizes is not None:
        size_finding(definition, _sizes(sizes))


def _outputs(
    definition: CheckedDef,
    arguments: list[Any],
    compiled: Callable[[SizedDef], Any] = compile_reference,
) -> list[Any]:
    inputs = [
        np.asarray(a, numpy_dtype(t.type))
        for a, t in zip(arguments, definition.inputs, strict=True)
    ]
    sized = infer(
        definition, {t.name: a.shape for t, a in zip(definition.inputs, inputs, strict=True)}
    )
    outputs = [np.empty(sized.shapes[t.name], numpy_dtype(t.type)) for t in definition.outputs]
    compiled(sized)(inputs, outputs)
    return outputs


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        ("docs/numba.md", "# Numba"),
        ("guides/ci.md", "# "),
        ("guides", "tcl docs NAME prints one of these pages:\n  guides/add-a-builtin\n"),
        ("docs/gallery/", "tcl docs NAME prints one of these pages:\n  gallery/"),
        ("the-shortest-way", "## The shortest way\n"),
    ],
)
def test_pages_and_folders_are_found_by_their_paths(asked: str, begins: str) -> None:
    assert CliRunner().invoke(main, ["docs", asked]).output.startswith(begins)


@of_kind("tc")
def test_accepted_blocks_are_as_told(block: Block) -> None:
    claims = list(block.claims)
    assert claims, "an example says what it gives"
    warned = [claim for claim, _ in claims if claim.startswith("# warning: ")]
    given = [w.message for d in check(block.text).values() for w in findings(d)]
    assert [f"# warning: {message.partition(' (seen with')[0]}" for message in given] == warned
    for claim, above in claims:
        definition = _last(above)
        if claim in warned:
            continue
        if found := _RANGES.fullmatch(claim):
            sized = size_finding(definition, _sizes(found["sizes"]))
            _ranges_hold(sized, found)
            _compiled(sized)
        else:
            found = _CALL.fullmatch(claim)
            assert found, claim
            _call_holds(definition, found)


def _ranges_hold(sized: SizedDef, found: re.Match[str]) -> None:
    ranges = {n: f"{first}:{stop}" for n, (first, stop) in sized.statements[-1].ranges.items()}
    assert dict(r.split(" in ") for r in found["ranges"].split(", ")) == ranges
    shapes = [f"{t.name}{sized.shapes[t.name]}" for t in sized.checked.outputs]
    assert found["shapes"] == "; ".join(shapes).replace(",)", ")")


def _call_holds(definition: CheckedDef, found: re.Match[str]) -> None:
    call = ast.parse(found["call"], mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    assert call.func.id == definition.name
    expected = ast.literal_eval(found["value"])
    expected = expected if isinstance(expected, tuple) else (expected,)
    arguments = [ast.literal_eval(a) for a in call.args]
    for compiled in (compile_reference, _compiled):
        outputs = _outputs(definition, arguments, compiled)
        for output, value in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(output, np.asarray(value, output.dtype), rtol=1e-6, atol=0)
            assert output.shape == np.shape(value)


def _compiled(sized: SizedDef) -> CpuKernel:
    return compile_cpu(sized, DEFAULT)


@of_kind("tc refused")
def test_refused_blocks_are_refused_as_told(block: Block) -> None:
    ((claim, above),) = block.claims
    found = _ERROR.fullmatch(claim)
    assert found, claim
    with pytest.raises(SourceError) as caught:
        _use(above, found["sizes"])
    assert [d.message for d in caught.value.diagnostics] == [found["message"]]


# --- tables and numbers ---


def _rows(section: str, *header: str) -> list[list[str]]:
    """The rows of the table with that header, as cells."""
    lines = SECTIONS[section].splitlines()
    start = lines.index(f"| {' | '.join(header)} |".replace("  ", " "))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def test_literals_have_the_values_told() -> None:
    rows = _rows("Literals", "expression", "value", "type")
    assert len(rows) >= 10
    for expression, value, type_ in rows:
        definition = _last(f"def f() -> (O) {{ O = {_code(expression)[0]} }}")
        (output,) = _outputs(definition, [])
        assert str(output) == _code(value)[0]
        assert str(definition.outputs[0].type) == _code(type_)[0]


def test_operands_meet_as_told() -> None:
    for left, right, both in _rows("Arithmetic", "left", "right", "common type"):
        a, b = (types.scalar_type(_code(c)[0]) for c in (left, right))
        assert str(types.promote(a, b)) == str(types.promote(b, a)) == _code(both)[0]


def test_every_type_is_listed_with_its_aliases() -> None:
    rows = _rows("Types", "type", "also", "NumPy dtype")
    assert {t for row in rows for t in _code(row[0])} == set(types.SCALAR_TYPES)
    aliases = (_code(part) for row in rows for part in row[1].split(",") if part)
    assert {alias: name for alias, name in aliases} == types.ALIASES


def test_ranges_are_inferred_as_told() -> None:
    rows = _rows("Ranges", "in a read of `X`, `N=7`", "gives", "note")
    assert len(rows) >= 8
    for read, gives, _ in rows:
        expression, where, clauses = _code(read)[0].partition(" where ")
        text = f"def f(float(N) X) -> (O) {{ O(i) +=! {expression}{where}{clauses} }}"
        ranges = size_finding(_last(text), {"N": 7}).statements[0].ranges
        assert _code(gives) == [f"i in {ranges['i'][0]}:{ranges['i'][1]}"], read


def test_precedence_is_as_told() -> None:
    """An operator of a line binds tighter than those of every later line."""
    lines = [_code(row[0].replace("\\|", "|")) for row in _rows("Operators", "operators", "")][2:-1]
    levels = [[re.sub(r"[a-z ]", "", code) for code in line] for line in lines]
    assert [o for line in levels for o in line] == ("* / % + - < <= > >= == != && ||".split())
    from tcl.grammar.syntax.parser import parse

    def rhs(text: str) -> Any:
        return parse(f"def f() -> (O) {{ O = {text} }}").defs[0].statements[0].rhs  # type: ignore[union-attr]

    for position, line in enumerate(levels):
        for tight in line:
            assert rhs(f"a {tight} b {tight} c") == rhs(f"(a {tight} b) {tight} c")
            for loose in (o for later in levels[position + 1 :] for o in later):
                assert rhs(f"a {loose} b {tight} c") == rhs(f"a {loose} (b {tight} c)")
                assert rhs(f"a {tight} b {loose} c") == rhs(f"(a {tight} b) {loose} c")
            assert rhs(f"-a {tight} b") == rhs(f"(-a) {tight} b")
            assert rhs(f"a ? b : c {tight} d") == rhs(f"a ? b : (c {tight} d)")


def test_reductions_over_nothing_give_what_is_told() -> None:
    rows = _rows("Reductions", "reduction", "of no terms", "meaning")
    found = {}
    for row in rows:
        (op,) = _code(row[0])
        text = f"def f(float(N) X, int8(N) Y) -> (O, P) {{ O {op} X(i) P {op} Y(i) }}"
        found[op] = [float(x) for x in _outputs(_last(text), [[], []])]
    assert found == {
        "+=!": [0, 0],
        "*=!": [1, 1],
        "min=!": [np.inf, 127],
        "max=!": [-np.inf, -128],
    }


def test_every_function_is_listed_with_its_error() -> None:
    """The errors are those that ``test_builtins.py`` holds the reference to."""
    listed: dict[str, int] = {}
    for functions, _, _, error in _rows("Functions", "function", "meaning", "domain", "error"):
        low, _, high = error.partition(", ")
        for call in _code(functions):
            name, _, arguments = call.partition("(")
            listed[name] = arguments.count(",") + 1
            told = (float(low), float(high or low))
            if name != "nextafter":
                assert told == oracles.ORACLES[name].ulps, name
    assert listed == dict(BUILTINS)


def test_functions_are_nan_outside_their_domains() -> None:
    """Of the domains in numbers, a step outside gives NaN, and inside does not."""
    checked = 0
    for functions, _, domain, _ in _rows("Functions", "function", "meaning", "domain", "error"):
        for call in _code(functions):
            name = call.partition("(")[0]
            if found := re.match(r"`x >= (-?\d+)`", domain):
                outside, inside = [float(found[1]) - 0.5], [float(found[1]) + 0.5]
            elif found := re.match(r"(-?\d+) to (\d+)", domain):
                low, high = float(found[1]), float(found[2])
                outside, inside = [low - 0.5, high + 0.5], [(low + high) / 2 + 0.125]
            else:
                continue
            if BUILTINS[name] > 1:
                continue
            definition = _last(f"def f(float(N) X) -> (O) {{ O(i) = {name}(X(i)) }}")
            (output,) = _outputs(definition, [[*outside, *inside]])
            assert np.isnan(output[: len(outside)]).all(), name
            assert not np.isnan(output[len(outside) :]).any(), name
            checked += 1
    assert checked >= 15


def test_the_grammar_is_that_of_the_parser() -> None:
    """The page's rules, over the parser's tokens, accept what the parser accepts, and no more."""
    lines = [x[4:] for x in SECTIONS["Grammar"].splitlines() if x.startswith("    ")]
    rules = re.sub(r"^(\w+) +=", r"\1:", "\n".join(lines), flags=re.MULTILINE)
    rules = re.sub(r"\{(?=[^\"])", "(", re.sub(r"(?<=[^\"])\}(?!\")", ")*", rules))
    kinds = {
        "INTEGER": "INT",
        "TYPE": "SCALAR",
        "REDUCTION": "REDUCE",
        "EXTENT": "AXIS",
        "FLOAT": "FLOAT",
        "NAME": "NAME",
        "OPERATOR": "OR AND EQUALITY RELATION X2B X2D TIMES",
    }
    for name, tokens_ in kinds.items():
        either = " | ".join(f"T_{token}" for token in tokens_.split())
        rules = re.sub(rf"\b{name}\b", f"({either})", rules)

    def kinds_in(text: str) -> str:
        *found, _ = tokens.tokens(Source(text))
        signs = (t.kind if t.kind.isidentifier() else f"X{t.kind.encode().hex()}" for t in found)
        return "".join(f"<{sign.upper()}>" for sign in signs)

    rules = re.sub(r'"([^"]+)"', lambda m: "T_" + kinds_in(m[1])[1:-1], rules)
    used = sorted(set(re.findall(r"\bT_(\w+)", rules)))
    terminals = "\n".join(f'T_{t}: "<{t}>"' for t in used)
    page = Lark(f"{rules}\n{terminals}\n", start="text", parser="earley", lexer="basic")
    for text in ACCEPTED:
        page.parse(kinds_in(in_def(text)))
    of_values = ("", "# nothing\n", "O(i) = «18446744073709551616»", "O(i) = «1e999»")
    refused = 0
    for text, _ in SYNTAX:
        try:
            stream = kinds_in(unmark(in_def(text)).text)
        except tokens.NoTokenError:
            continue
        if text not in of_values:
            with pytest.raises(UnexpectedInput):
                page.parse(stream)
            refused += 1
    assert refused > 40


def test_limits_are_as_told() -> None:
    for number in (MAX_DEPTH, MAX_TEXT, MAX_STATEMENTS):
        assert re.search(rf"\b{number}\b", SECTIONS["Limits"])
    assert f"at most {MAX_CALL_DEPTH} deep" in SECTIONS["Calls"]


# --- how it is found ---


@pytest.mark.parametrize("section", Section)
def test_every_section_that_messages_name_can_be_printed(section: Section) -> None:
    command = section.pointer.removeprefix(" [tcl docs ").removesuffix("]")
    done = CliRunner().invoke(main, ["docs", command])
    assert done.exit_code == 0
    assert done.output.rstrip() == SECTIONS[section]


def test_every_section_is_listed() -> None:
    listed = CliRunner().invoke(main, ["docs"]).output.splitlines()
    at = listed.index("language") + 1
    assert listed[at : at + len(SECTIONS)] == [f"  {heading.lower()}" for heading in SECTIONS]


def test_a_section_is_found_by_the_code_in_its_heading() -> None:
    assert section_names("`order`, `inner_order`: which loop is outside") == [
        "order, inner_order",
        "order",
        "inner_order",
        "order, inner_order: which loop is outside",
        "order-inner_order-which-loop-is-outside",
    ]


def test_a_page_is_printed_whole() -> None:
    done = CliRunner().invoke(main, ["docs", "Language"])
    assert (done.exit_code, done.output) == (0, PAGE + "\n")


def test_an_unknown_topic_is_refused_with_the_nearest() -> None:
    done = CliRunner().invoke(main, ["docs", "rangs"])
    assert done.exit_code == 1
    assert "there is no page or section 'rangs'; did you mean ranges?" in done.output


needs_readme = pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="needs the source tree")


@needs_readme
def test_the_readme_links_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in pages():
        folder, _, page = name.rpartition("/")
        index = (ROOT / f"docs/{folder}/index.md").read_text("utf-8") if folder else ""
        assert f"({page}.md)" in index or f"docs/{name}.md" in readme or page == "index"


def test_a_page_in_a_folder_is_printed() -> None:
    done = CliRunner().invoke(main, ["docs", "guides/ci"])
    assert (done.exit_code, done.output) == (0, pages()["guides/ci"] + "\n")
