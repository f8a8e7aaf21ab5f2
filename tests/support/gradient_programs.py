"""Random defs that have gradients: affine reads of every kind, guards, several statements."""

from __future__ import annotations

import random

from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A text with the shapes of its inputs."""

    text: str
    shapes: dict[str, tuple[int, ...]]
    whole: bool
    """Whether ties are likely: the inputs are to be small whole numbers."""
    types: dict[str, str]
    """Of the inputs; those of integers are places."""


def case(seed: int) -> Case:
    """A random def ``f``; it need not be legal."""
    return _Maker(random.Random(seed)).made()


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inputs = {"X": rng.randint(1, 2), "W": rng.randint(1, 2), "s": 0, "At": 1}
        self.types = dict.fromkeys(self.inputs, "double")
        if rng.random() < 0.2:
            self.types[rng.choice("XWs")] = "float"
        self.types["At"] = "int32"
        self.extents: dict[str, int] = {}
        self.symbols: dict[str, list[str]] = {}
        for name, rank in self.inputs.items():
            self.symbols[name] = [rng.choice(["N", "M", "K", "P"]) for _ in range(rank)]
        for symbol in "NMKP":
            self.extents[symbol] = rng.choice([0, 1, 2, 3, 4, 5, 5, 6, 7])
        self.outputs: dict[str, int] = {}
        self.declared: dict[str, str] = {}
        """Outputs of which a scatter makes a part, with their sizes."""
        self.statements: list[str] = []
        self.whole = rng.random() < 0.4

    def made(self) -> Case:
        for number in range(self.rng.randint(1, 4)):
            self.statement(number)
        params = ", ".join(
            f"{self.types[n]}({', '.join(self.symbols[n])}) {n}" if rank else f"{self.types[n]} {n}"
            for n, rank in self.inputs.items()
        )
        body = "\n".join(f"    {s}" for s in self.statements)
        outputs = ", ".join(self.declared.get(name, name) for name in self.outputs)
        text = f"def f({params}) -> ({outputs}) {{\n{body}\n}}\n"
        shapes = {n: tuple(self.extents[e] for e in self.symbols[n]) for n in self.inputs}
        return Case(text, shapes, self.whole, self.types)

    # --- statements ---

    def statement(self, number: int) -> None:
        rng = self.rng
        if self.outputs and rng.random() < 0.35:
            self.update()
            return
        name = f"O{number}"
        if rng.random() < 0.2:
            self.rarer(name)
            return
        free = rng.sample(["i", "j", "k", "l"], rng.randint(1, 3))
        left = free[: rng.randint(0, min(2, len(free)))]
        reduced = [n for n in free if n not in left]
        op = rng.choice(["+=!", "+=!", "max=!", "min=!", "*=!"]) if reduced else "="
        ranges = [f"{n} in {self.range()}" for n in free if rng.random() < 0.75]
        where = f" where {', '.join(ranges)}" if ranges else ""
        uses = [self.term(free) for _ in range(rng.randint(1, 2))]
        rhs = rng.choice([" * ", " + ", " - "]).join(uses)
        if reduced and op in ("max=!", "min=!") and rng.random() < 0.5:
            rhs = uses[0]
        target = f"{name}({', '.join(left)})" if left else name
        self.statements.append(f"{target} {op} {rhs}{where}")
        self.outputs[name] = len(left)

    def rarer(self, name: str) -> None:
        """A scatter, with others into what it made, or a running reduction."""
        rng = self.rng
        if rng.random() < 0.4:
            compared = rng.choice(["k <= i", "k < i", "i <= k", "k > i", "k < i + 2", "k + i < N"])
            op, neutral = rng.choice([("+=!", "0"), ("+=!", "0"), ("*=!", "1")])
            ranges = f"i in {self.range()}, k in {self.range()}"
            rhs = f"({compared}) ? {self.term(['k'])} : {neutral}"
            self.statements.append(f"{name}(i) {op} {rhs} where {ranges}")
            self.outputs[name] = 1
            return
        rank = rng.randint(1, 2)
        sizes = [
            rng.choice([*self.symbols["X"], *self.symbols["W"], "3", "5"]) for _ in range(rank)
        ]
        self.declared[name] = f"double({', '.join(sizes)}) {name}"
        first = rng.choice(["+=!", "+=!", "max=!", "min=!", "*=!"])
        for op in (first, *(rng.choice(["+=", "max="]) for _ in range(rng.randint(0, 1)))):
            place = ["At(i)", rng.choice(["j", "At(j)"])][:rank]
            if rng.random() < 0.3:
                place.reverse()
            free = ["i", "j"][:rank] + ["k"] * (rng.random() < 0.3)
            rhs = self.term(free)
            if rng.random() < 0.3:
                neutral = {"+": "0", "*": "1"}.get(op[0], rhs)
                rhs = f"{self.read(['i'])} > 0 ? {rhs} : {neutral}"
            some = [f"{n} in {self.range()}" for n in free if n == "k" or rng.random() < 0.3]
            where = f" where {', '.join(some)}" if some else ""
            self.statements.append(f"{name}({', '.join(place)}) {op} {rhs}{where}")
        self.outputs[name] = rank

    def range(self) -> str:
        rng = self.rng
        return rng.choice("0:N 0:M 1:3 0:2 0:4 0:K -1:2 1:N 0:N-1 0:min(N,M) 0:(N+1)/2 2:3".split())

    def update(self) -> None:
        rng = self.rng
        name = rng.choice(list(self.outputs))
        rank = self.outputs[name]
        left = ["i", "j"][:rank]
        own = f"{name}({', '.join(left)})" if left else name
        where = ""
        if left and rng.random() < 0.4:
            where = f" where {left[0]} in {rng.choice(['0:1', '1:2', '0:2', '1:N'])}"
        kind = rng.randint(0, 4)
        if kind == 0:
            self.statements.append(f"{own} = {own} * {own} + {self.term(left)}{where}")
        elif kind == 1:
            extra = " where k in 0:2" if not where else f"{where}, k in 0:2"
            op = rng.choice(["+=", "max=", "*=", "min="])
            self.statements.append(f"{own} {op} {self.term([*left, 'k'])}{extra}")
        elif kind == 2:
            self.statements.append(f"{own} *= {self.term(left)}{where}")
        elif kind == 3:
            self.statements.append(f"{own} = fmax({own}, {self.term(left)}){where}")
        else:
            self.statements.append(f"{own} = {rng.choice(['0.5', 's'])} * {own}{where}")

    # --- expressions ---

    def term(self, free: list[str]) -> str:
        rng = self.rng
        read = self.read(free)
        kind = rng.randint(0, 9)
        if kind == 0:
            return f"sin({read})"
        if kind == 1:
            return f"(s * {read})"
        if kind == 2:
            return f"fmax({read}, {self.read(free)})"
        if kind == 3:
            return f"({read} > 0 ? {read} : s * {self.read(free)})"
        if kind == 4:
            return f"min({read}, {self.read(free)})"
        if kind == 5 and free:
            return f"({rng.choice(free)} * {read})"
        if kind == 6 and len(free) > 1:
            a, b = rng.sample(free, 2)
            return f"({a} {rng.choice(['<=', '<', '=='])} {b} ? {read} : 0)"
        return read

    def read(self, free: list[str]) -> str:
        rng = self.rng
        choices = ["X", "W", *self.outputs, "X"]
        name = rng.choice(choices)
        rank = self.inputs.get(name, self.outputs.get(name, 0))
        if not rank:
            return name
        subscripts = [self.subscript(free) for _ in range(rank)]
        text = f"{name}({', '.join(subscripts)})"
        if rng.random() < 0.55 or name in self.outputs:
            inside = " && ".join(
                f"{s} >= 0 && {s} < {name}.{axis}" for axis, s in enumerate(subscripts)
            )
            return f"({inside} ? {text} : {rng.choice(['0', '1', 's'])})"
        return text

    def subscript(self, free: list[str]) -> str:
        rng = self.rng
        if not free or rng.random() < 0.05:
            return str(rng.randint(0, 1))
        one = rng.choice(free)
        kind = rng.randint(0, 12)
        if kind == 12:
            return f"At({one})"
        if kind <= 3:
            return one
        if kind == 4:
            return f"{one} + {rng.randint(-2, 2)}".replace("+ -", "- ")
        if kind == 5:
            return f"N - 1 - {one}"
        if kind == 6:
            return f"{rng.choice([2, 3])} * {one}"
        if kind == 7:
            return f"{one} / 2"
        other = rng.choice(free)
        if kind == 8:
            return f"{one} + {other}"
        if kind == 9:
            return f"{rng.choice([2, 3])} * {one} + {other} - {rng.randint(0, 2)}"
        if kind == 10:
            return f"{rng.choice([2, 3, 4])} * {one} - {rng.choice([2, 3])} * {other} + 1"
        return f"{one} - {other} + 1"
