"""Words of other languages, and what is written here instead."""

from __future__ import annotations

from types import MappingProxyType

from tcl.common.closest import did_you_mean
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.types import ALIASES, SCALAR_TYPES

_REAL = {"f16": "half", "fp16": "half", "f32": "float", "fp32": "float", "single": "float",
         "real": "float", "f64": "double", "fp64": "double"}  # fmt: skip
_WHOLE = {
    **dict.fromkeys(("int", "integer"), "int32, or int64 for NumPy's default integers"),
    **dict.fromkeys(("uint", "unsigned"), "uint32"),
    **dict.fromkeys(("long", "size_t"), "int64"),
    **dict.fromkeys(("boolean", "logical"), "bool"),
    "ulong": "uint64",
    "short": "int16",
    "ushort": "uint16",
    "char": "int8",
    "uchar": "uint8",
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_TYPES = _WHOLE | {name: f"{alias} ({ALIASES[alias]})" for name, alias in _REAL.items()}
_ABSENT = {
    ("float8", "fp8", "f8"): "store 8-bit floats as float16, or as int8 with a scale",
    ("complex",): "pass the real and the imaginary parts as two tensors",
    ("int4", "uint4", "int2", "uint2"): "the narrowest integers are int8 and uint8",
    ("str", "string"): "tensors hold numbers; replace each text by a number",
}
"""Beginnings of the names of types that have no counterpart."""

LIST = f"{', '.join(SCALAR_TYPES)}; also {', '.join(ALIASES)}"


def known_type(name: str) -> bool:
    """Whether another language or library has a type of that name."""
    lower = name.lower()
    absent = any(lower.startswith(starts) for starts in _ABSENT)
    return lower in SCALAR_TYPES or lower in ALIASES or _without_suffix(lower) in _TYPES or absent


def no_type(name: str) -> str:
    """The sentence for a word that stands where a type has to."""
    lower = name.lower()
    plain = _without_suffix(lower)
    if lower in SCALAR_TYPES or lower in ALIASES:
        advice = f"types are written in small letters: {lower}"
    elif plain in SCALAR_TYPES:
        advice = f"write {plain}"
    elif plain in _TYPES:
        advice = f"write {_TYPES[plain]}"
    else:
        found = (advice for starts, advice in _ABSENT.items() if lower.startswith(starts))
        guess = did_you_mean(lower, [*SCALAR_TYPES, *ALIASES], f"the types are {LIST}")
        advice = next(found, guess)
    return f"there is no type '{name[:40]}'; {advice}"


def _without_suffix(lower: str) -> str:
    return lower if lower == "size_t" else lower.removesuffix("_t")


_LOOP = "there are no loops; an index runs over its whole range, which `where i in 0:N` can set"
_IF = "there is no if statement; choose between values: condition ? a : b"
_LET = (
    "bind a name after the statement that uses it, without a keyword: O(i) = x * x where x = A(i)"
)

STATEMENTS = MappingProxyType(
    {
        **dict.fromkeys(("for", "foreach", "forall"), (_LOOP, Section.LIMITS)),
        "while": (
            "there are no loops; a statement runs over all points of its ranges at once; write "
            "a recurrence as a loop around calls of the def",
            Section.LIMITS,
        ),
        **dict.fromkeys(("if", "else", "elif", "then"), (_IF, Section.GUARDS)),
        "and": ("the logical and is '&&'", Section.OPERATORS),
        "or": ("the logical or is '||'", Section.OPERATORS),
        "not": ("the logical not is '!'", Section.OPERATORS),
        **dict.fromkeys(
            ("with", "using"),
            ("names are bound in a where: O(i) = x * x where x = A(i)", Section.WHERE),
        ),
        "as": ("a cast is written as a call: int8(x)", Section.ARITHMETIC),
        "range": ("a range is written 0:N, with an exclusive end", Section.WHERE),
        **dict.fromkeys(("let", "var", "const", "auto"), (_LET, Section.WHERE)),
        **{
            word: (f"keywords are written in small letters: {word}", Section.DEFS)
            for word in ("where", "in", "exists")
        },
        "return": (
            "there is no return; a def returns the outputs of its header: -> (O)",
            Section.DEFS,
        ),
    }
)
"""Words that build statements elsewhere → the sentence that says what to write, its section."""

_ADVICE: dict[Section, dict[str, str]] = {
    Section.ARGMIN: {
        "argmin argmax": "find the value, then the smallest index that has it: "
        "Best(i) {op}=! A(i, j)  At(i) min=! (A(i, j) == Best(i)) ? j : A.1"
    },
    Section.CUMSUM: {"cumsum": "O(i) +=! (j <= i) ? X(j) : 0 where i in 0:N, or a loop in Python"},
    Section.REDUCTIONS: {
        "sum add": "reduce with +=!, over the indices that appear only on the right",
        "mean avg": "sum with +=! and divide by the number of elements in a second statement",
        "prod": "reduce with *=!",
        "any": "for bools, use max=!",
        "all": "for bools, use min=!",
        "matmul mm bmm dot conv conv1d conv2d conv3d": "multiply elements and reduce with +=!, as "
        "in C(m, n) +=! A(m, k) * B(k, n)",
    },
    Section.SCATTERS: {
        "histogram bincount scatter scatter_add index_add": "reduce into the element that data "
        "select, as in H(Bin(n)) +=! X(n)"
    },
    Section.RECIPES: {
        "softmax log_softmax logsumexp": (
            "subtract the maximum of a row, sum the exponentials, and divide, each in a "
            "separate statement"
        ),
        "layernorm layer_norm batch_norm group_norm rms_norm variance var std": (
            "sum rows and their squares in separate statements, then use the sums in another one"
        ),
    },
    Section.FUNCTIONS: {
        "abs": "write fabs(x) for floats, max(x, -x) for integers",
        "relu": "write fmax(x, 0)",
        "sigmoid": "write expit(x)",
        "clamp clip": "write min(max(x, low), high)",
        "silu swish": "write x * expit(x)",
        "sign sgn signum": "write (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); where x is never 0, "
        "copysign(1, x)",
        "gelu": "write x * normcdf(x)",
        "isnan": "write x != x",
        "isinf": "write fabs(x) == -log(0.0)",
        "isfinite": "write x - x == 0",
        "softplus": "write fmax(x, 0) + log1p(exp(-fabs(x)))",
    },
    Section.OPERATORS: {
        "square": "write x * x",
        "maximum": "write max(x, y)",
        "minimum": "write min(x, y)",
        "select ifelse where(...)": "write condition ? a : b",
        "not": "write !x",
        "xor": "write x != y for bools",
    },
    Section.LITERALS: {
        "inf infinity": "-log(0.0) is infinity, log(0.0) minus infinity; 1e30 is an ordinary "
        "number",
        "nan": "write sqrt(-1.0)",
        "pi": "write 3.141592653589793, or use sinpi and cospi",
        "true": "write 1 == 1, or bool(1)",
        "false": "write 1 == 0, or bool(0)",
    },
    Section.DEFS: {"len size shape": "T.0 is the extent of the first dimension of T"},
}
"""What is written instead of words of other languages, by the section that says more."""
_SENTENCES = {
    name.removesuffix("(...)"): (f"there is no {name}; {advice.format(op=name[3:])}", section)
    for section, advices in _ADVICE.items()
    for names, advice in advices.items()
    for name in names.split()
}
_REDUCTIONS = (Section.ARGMIN, Section.CUMSUM, Section.REDUCTIONS)


def no_name(name: str) -> tuple[str, Section] | None:
    """The sentence for an undefined name that other languages have, and its section."""
    if known_type(name):
        return no_type(name), Section.TYPES
    return _SENTENCES.get(name.lower().removeprefix("reduce_"))


OF_BOOLS = {
    **dict.fromkeys(("or", "||", "|"), "; for bools, use max=!"),
    **dict.fromkeys(("and", "&&", "&"), "; for bools, use min=!"),
    **dict.fromkeys(("xor", "^"), "; of bools, sum with +=!, and compare the sum % 2 with 1"),
}
"""Operators that reduce bools elsewhere, and what does so here."""


def no_reduction(name: str) -> tuple[str, Section]:
    """The sentence for a word that stands where a reduction has to, and its section."""
    every = f"there is no '{name[:40]}='; the reductions are += *= min= max=, each also with !"
    every += OF_BOOLS.get(name, "")
    found = _SENTENCES.get(name.lower().removeprefix("reduce_"), ("", Section.GRAMMAR))
    return found if found[1] in _REDUCTIONS else (every, Section.REDUCTIONS)
