"""Expressions of random programs."""

from __future__ import annotations

import re

from program_accesses import Accesses, Statement, Tensor
from program_values import (
    COMPARISONS,
    Value,
    binary,
    builtin,
    cast,
    compare,
    literal,
    logical,
    negate,
    rounding,
    select,
)

from tcl.grammar.syntax import types as t


class Expressions(Accesses):
    """Leaves, and ways of putting them together."""

    def leaf(self, statement: Statement, readable: list[Tensor]) -> Value | None:
        how = self.number(0, 9)
        if how == 0:
            return literal(self.pick((1, 2, 3, 0.5, 1.5, 2.25)))
        if how == 1 and statement.indices:
            i = self.pick(statement.indices)
            return Value(i.name, t.INDEX, i.values[0], i.values[-1], True)
        if how == 2 and self.sizes:
            name = self.pick(list(self.sizes))
            return Value(name, t.INDEX, self.sizes[name], self.sizes[name], True)
        if how <= 5:
            return self.guarded(statement, readable)
        return self.read(statement, readable)

    def _condition(self, statement: Statement, value: Value, other: Value) -> Value:
        """A condition that bounds no index: that would free the anchors below it."""
        found = None
        if self.chance(60) and _reads(value) | _reads(other):
            found = compare(self.pick(COMPARISONS), value, other)
        if found is None:
            found = Value("1 > 0", t.BOOL, 0, 1, True)
            if statement.indices:
                i, j = (self.pick(statement.indices).name for _ in range(2))
                forms = ("{0} % 2 == 0", "{0} * {1} != 2", "{0} * {1} > 1", "min({0}, {1}) <= 1")
                found = found.named(f"({self.pick(forms).format(i, j)})")
        if self.chance(15):
            found = found.named(f"!({found.text})")
        if self.chance(20) and _reads(other):
            further = compare(self.pick(COMPARISONS), other, literal(1))
            found = logical(self.pick(("&&", "||")), found, further) if further else found
        return found

    def _changed(self, statement: Statement, value: Value) -> Value:
        """``value``, perhaps under a function, a sign, a cast or a name."""
        how = self.number(0, 12)
        new: Value | None = None
        if how in (8, 9):
            new = builtin(self.pick, value)
        elif how == 10:
            new = cast(self.pick(self.types), value)
        elif how == 11:
            new = rounding(self.pick(("floor", "ceil", "round", "trunc")), value)
        elif how == 12:
            new = negate(value)
        value = new or value
        if not value.type.weak and self.chance(6):
            name = f"x{len(statement.lets)}"
            statement.lets.append(f"{name} = {value.text}")
            value = value.named(name)
        return value

    def combined(self, statement: Statement, values: list[Value]) -> Value:
        while len(values) > 1:
            a = self._changed(statement, values.pop(self.number(0, len(values) - 1)))
            b = values.pop(self.number(0, len(values) - 1))
            how = self.number(0, 10)
            new: Value | None = None
            if how <= 6:
                new = binary(self.pick(("*", "+", "*", "-", "+", "min", "max", "/", "%")), a, b)
            elif how <= 8:
                new = select(self._condition(statement, a, b).text, a, b)
            elif how == 9:
                new = builtin(self.pick, a, b)
            else:
                new = compare(self.pick(COMPARISONS), a, b)
            new = new or binary("max", a, b)
            if new is None:  # what ``b`` reads may anchor an index
                statement.clauses.append(f"exists {b.text}")
            values.append(new or a)
        return self._changed(statement, values[0])


def _reads(value: Value) -> bool:
    """Whether the value depends on a tensor."""
    return bool(re.search(r"\b[AT][0-9]", value.text))
