"""The likeliest mistakes, as data, and what is said of each: ``docs/errors.md`` shows them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import tcl
from tcl.cli import main

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"

LANGUAGE = (
    ("A type of another language", "def f(int(N) X) -> (Y) { Y(i) = X(i) }"),
    ("A type by a short name", "def f(f32(N) X) -> (Y) { Y(i) = X(i) }"),
    ("An input without a type", "def f(X) -> (Y) { Y(i) = X(i) }"),
    ("A reduction without saying so", "def f(float(N) X) -> (S) { S = X(i) }"),
    ("An unknown name", "def f(float(N) X) -> (Y) { Y(i) = Z(i) }"),
    ("A misspelt name", "def f(float(N) X) -> (Y) { Y(i) = sqr(X(i)) }"),
    ("Too many indices", "def f(float(N) X) -> (Y) { Y(i) = X(i, i) }"),
    ("An output that nothing writes", "def f(float(N) X) -> (Y, Z) { Y(i) = X(i) }"),
    ("No output", "def f(float(N) X) -> () { Y(i) = X(i) }"),
    ("Writing into an input", "def f(float(N) X) -> (Y) { X(i) = X(i) + 1 Y(i) = X(i) }"),
    ("Square brackets", "def f(float(N) X) -> (Y) { Y[i] = X[i] }"),
    ("A semicolon", "def f(float(N) X) -> (Y) { Y(i) = X(i); }"),
    ("The wrong arrow", "def f(float(N) X) => (Y) { Y(i) = X(i) }"),
    ("No brace at the end", "def f(float(N) X) -> (Y) { Y(i) = X(i)"),
    ("A loop", "def f(float(N) X) -> (Y) { for i in 0:N { Y(i) = X(i) } }"),
    ("An if", "def f(float(N) X) -> (Y) { if X(i) > 0 { Y(i) = X(i) } }"),
    ("An unknown reduction", "def f(float(N) X) -> (Y) { Y argmin=! X(i) }"),
    ("A function with too many arguments", "def f(float(N) X) -> (Y) { Y(i) = exp(X(i), 2) }"),
    ("An output that is read before it is written",
     "def f(float(N) X) -> (Y) { Y(i) = Y(i) + X(i) }"),
    ("An element that depends on another of its tensor",
     "def f(float(N) X) -> (Y) { Y(i) = Y(i - 1) + X(i) }"),
    ("An index without a range", "def f(float(N) X) -> (Y) { Y(i, j) = X(i) }"),
    ("A name defined twice", "def f(float(N) X, float(N) X) -> (Y) { Y(i) = X(i) }"),
    ("A name that a size already has", "def f(float(N) N) -> (Y) { Y(i) = N(i) }"),
    ("A built-in's name", "def f(float(N) exp) -> (Y) { Y(i) = exp(i) }"),
    ("A character that is not in the language", "def f(float(N) X) -> (Y) { Y(i) = X(i) @ 2 }"),
    ("Power as in Python", "def f(float(N) X) -> (Y) { Y(i) = X(i) ** 2 }"),
    ("A text without a def", "C(m, n) +=! A(m, k) * B(k, n)"),
)  # fmt: skip
"""What was meant, and the text."""

PYTHON = (
    ("A name of a file", 'tcl.define("mm.tc")'),
    ("A file that does not exist", 'tcl.define(Path("none.tc"))'),
    ("No text", "tcl.define(None)"),
    ("An unknown def", "T.nm(A, B)"),
    ("A missing input", "T.mm(A)"),
    ("An input by another name", "T.mm(a=A, B=B)"),
    ("An input given twice", "T.mm(A, B, A=A)"),
    ("An output among the inputs", "T.mm(A, B, C=C)"),
    ("Double precision, NumPy's default", "T.mm(A.astype('float64'), B)"),
    ("A list", "T.mm([[1.0, 2.0]], B)"),
    ("A wrong rank", "T.mm(A[0], B)"),
    ("Sizes that contradict each other", "T.mm(A, A)"),
    ("Objects", "T.mm(A.astype(object), B)"),
    ("A masked array", "T.mm(np.ma.masked_less(A, 2), B)"),
    ("An output of another shape", "T.mm(A, B, outputs=(C[:2],))"),
    ("An output of another type", "T.mm(A, B, outputs=(np.empty((3, 5)),))"),
    ("An output that is an input", "T.same(A, outputs=(A,))"),
    ("An output that cannot be written", "T.mm(A, B, outputs=(np.broadcast_to(C[:1], (3, 5)),))"),
    ("An output larger than the memory", "T.outer(np.zeros(10_000_000, 'f'))"),
    ("A data-dependent index out of range", "T.rows(A, np.array([0, 3], 'int32'))"),
    ("An unknown preset", 'tcl.define(text, "fast")'),
    ("Options as a dict", 'tcl.define(text, {"tile": [32, 32]})'),
    ("An invalid number of lanes", 'tcl.MappingOptions("mlp").vectorize(3)'),
    ("Options for an unknown nest", 'tcl.compile(text, "mm", '
     'tcl.MappingOptions().nest(3).tile(4), A, B)'),
    ("No threads", "tcl.define(text, threads=0)"),
    ("Settings as a dict", 'tcl.autotune(text, "mm", A, B, tuner_config={"generations": 3})'),
    ("An unknown setting", "tcl.TunerConfig(generation=3)"),
    ("A setting beyond its range", "tcl.TunerConfig().population(1)"),
    ("A cache that is not used", 'tcl.autotune(text, "mm", A, B, cache_filename="a.db")'),
    ("A cache without options for these inputs",
     'tcl.autotune(text, "mm", A, B, cache_filename="a.db", load_from_cache=True)'),
)  # fmt: skip
"""What was meant, and the expression."""

COMMAND = (
    ("An unknown command", "tcl chek mm.tc"),
    ("A file that does not exist", "tcl check matmull.tc"),
    ("A folder", "tcl check folder"),
    ("An unknown def", "tcl run mm.tc --entry nm --sizes M=5,K=6,N=7"),
    ("No sizes", "tcl run mm.tc"),
    ("Sizes in the wrong case", "tcl run mm.tc --sizes m=5,k=6,n=7"),
    ("A missing size", "tcl run mm.tc --sizes M=5,K=6"),
    ("A size that is not a number", "tcl run mm.tc --sizes M=5,K=6,N=many"),
    ("Sizes larger than the memory", "tcl run mm.tc --sizes M=9999999,K=1,N=9999999"),
    ("An unknown preset", "tcl run mm.tc --sizes M=5,K=6,N=7 --options fast"),
    ("Options that are not JSON", "tcl run mm.tc --sizes M=5,K=6,N=7 --options '{tile: 32}'"),
    ("An unknown device", "tcl run mm.tc --sizes M=5,K=6,N=7 --device gpu"),
    ("A GPU that this machine does not have", "tcl run mm.tc --sizes M=5,K=6,N=7 --device h200"),
    ("A CPU that this machine does not have",
     "tcl run mm.tc --sizes M=5,K=6,N=7 --device graviton3"),
    ("Threads on a GPU", "tcl show mm.tc --sizes M=5,K=6,N=7 --device h200 --threads 2"),
    ("A setting beyond its range", "tcl tune mm.tc --sizes M=5,K=6,N=7 --generations 0"),
    ("Settings that contradict each other",
     "tcl tune mm.tc --sizes M=5,K=6,N=7 --population 4 --elites 3"),
    ("An unknown strategy", "tcl tune mm.tc --sizes M=5,K=6,N=7 --strategy luck"),
    ("A knob without a value", "tcl tune mm.tc --sizes M=5,K=6,N=7 --fix tile"),
    ("An unknown executor",
     "tcl tune mm.tc --sizes M=5,K=6,N=7 --executor machine:8786"),
    ("A file that is not a cache", "tcl cache list --cache mm.tc"),
    ("A cache that does not exist", "tcl cache list --cache none.db"),
    ("A cache in a folder that does not exist",
     "tcl tune mm.tc --sizes M=5,K=6,N=7 --cache no/x.db"),
    ("A text of defs as a cache", "tcl tune mm.tc --sizes M=5,K=6,N=7 --cache mm.tc"),
    ("A report in a folder that does not exist",
     "tcl tune mm.tc --sizes M=5,K=6,N=7 --report no/page.html"),
    ("Nothing to remove", "tcl cache prune"),
    ("An unknown field of a device", "tcl run mm.tc --sizes M=5,K=6,N=7 --relax clok"),
)  # fmt: skip
"""What was meant, and what was typed."""

HEAD = """\
# Errors

The messages for the most likely mistakes; a test makes each mistake. In Python every error is a
`tcl.TclError`: `TclSyntaxError` and `TclSemanticError` (the text, with the place), `ArgumentError`
(an argument), `RangeInferenceError` (the sizes), `OptionsError` (also `SettingError`, for settings of
a search), `CompileError` and `CacheError`. The one exception: a data-dependent subscript outside its
tensor raises `IndexError`. IPython and notebooks show your lines and the function that they called;
after `%xmode Verbose` they also show the calls inside tcl. A command ends with one of these codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | something that the command line names does not exist or is wrong: a file, a def, a size, options, a cache, a device; or the results are wrong |
| 2 | the command line itself is wrong: an unknown command or option, a value that the option cannot have, options that contradict each other |
| 130 | interrupted by Ctrl+C; the results so far are saved |
| 143 | terminated by SIGTERM; the results so far are saved |

A command that only reads a cache named with `--cache` fails with 1 if the file does not exist. Without
`--cache` the cache is your own. If there is none yet, `tcl cache list`, `why`, `inspect`, `analyze` and
`prune` say so and end with 0.
"""  # noqa: E501


def page(folder: Path) -> str:
    """The page; ``folder`` is the current one, and empty."""
    (folder / "mm.tc").write_text(MM + "\n")
    (folder / "folder").mkdir()
    parts = [HEAD, "## In a text\n"]
    parts += [_shown(title, text, _of_text(text)) for title, text in LANGUAGE]
    parts += ["## In Python\n", "Here `text` is\n\n```text\n" + MM + "\n```\n"]
    parts += [
        "`T` is `tcl.define(text)` with a few more defs; `A`, `B` and `C` have the shapes "
        "(3, 4), (4, 5) and (3, 5).\n"
    ]
    parts += [_shown(title, f">>> {line}", _of_python(line)) for title, line in PYTHON]
    parts += ["## On the command line\n", "Here `mm.tc` holds the same text.\n"]
    parts += [_shown(title, f"$ {line}", _of_command(line)) for title, line in COMMAND]
    return "\n".join(parts)


def _shown(title: str, typed: str, said: str) -> str:
    return f"#### {title}\n\n```text\n{typed}\n```\n```text\n{_plain(said)}\n```\n"


def _plain(said: str) -> str:
    """Without what is of this machine."""
    return re.sub(r"[\d.,]+ [MGT]B is free", "... is free", said)


def _of_text(text: str) -> str:
    try:
        tcl.define(text)
    except tcl.TclError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no mistake: {text}")


def _of_python(line: str) -> str:
    more = """
    def same(float(M, N) X) -> (Y) { Y(m, n) = X(m, n) }
    def outer(float(N) X) -> (Y) { Y(i, j) = X(i) * X(j) }
    def rows(float(M, N) X, int32(R) I) -> (Y) { Y(r, n) = X(I(r), n) }
    """
    A = np.arange(12, dtype=np.float32).reshape(3, 4)
    B = np.ones((4, 5), np.float32)
    names = {"T": tcl.define(MM + more), "text": MM, "A": A, "B": B, "C": A[:, :1] + B[:1]}
    try:
        eval(line, {"np": np, "tcl": tcl, "Path": Path, **names})
    except (tcl.TclError, IndexError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no mistake: {line}")


def _of_command(line: str) -> str:
    import shlex

    done = CliRunner().invoke(main, shlex.split(line)[1:], env={"COLUMNS": "100"})
    assert done.exit_code in (1, 2), (line, done.output, done.exception)
    # of a wrong command line, what comes after the reminder of how it is used
    said = done.stderr.rstrip()
    if done.exit_code == 2:
        said = said[said.rindex("\nerror: ") + 1 :]
    return f"{said}\nexit code {done.exit_code}"
