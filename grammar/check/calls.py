"""Calls of one def by another: the callee's statements, over the caller's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from tcl.grammar.check.scope import DefScope, dims_of
from tcl.grammar.syntax import ast
from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.reference import Section
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import rename

Declared: TypeAlias = Mapping[str, ast.TensorType]
"""Output → its declared type, of those that have one."""


def expand(
    call: ast.Apply,
    results: tuple[ast.Name, ...],
    callee: c.CheckedDef,
    scope: DefScope,
    declared: Declared,
    prefix: str,
) -> tuple[tuple[c.Statement, ...], tuple[c.SizeBinding, ...], list[c.Tensor]] | None:
    """The call's statements and size bindings, and its ``results`` as it defines them; None after
    noting what is wrong with it. ``prefix``: of the names of the callee's size symbols in the
    caller; no name of the language."""
    before = len(scope.problems)
    arguments = _arguments(call, callee, scope)
    targets = _targets(call, results, callee, scope, declared)
    # A tensor that a faulty statement writes is passed on in silence.
    if len(scope.problems) > before or len(arguments) < len(callee.inputs):
        return None
    names = {p.name: a for p, a in zip(callee.inputs, arguments, strict=True)}
    names |= {o.name: n for o, n in zip(callee.outputs, targets, strict=True)}
    symbols = (b.size for b in callee.bindings if isinstance(b.size, str))
    sizes = {symbol: f"{prefix}.{symbol}" for symbol in symbols}
    bindings = tuple(
        replace(
            b,
            size=sizes[b.size] if isinstance(b.size, str) else b.size,
            tensor=names[b.tensor],
            span=call.span,
        )
        for b in callee.bindings
    )
    tensors = []
    for output in callee.outputs:
        name = names[output.name]
        dims = dims_of(declared[name]) if name in declared else None
        tensors.append(replace(output, name=name, dims=dims, span=scope.outputs[name]))
    statements = tuple(rename(s, names, sizes) for s in callee.statements)
    return statements, bindings, tensors


def _arguments(call: ast.Apply, callee: c.CheckedDef, scope: DefScope) -> list[str]:
    if len(call.arguments) != len(callee.inputs):
        scope.refuse(
            call.span,
            f"'{callee.name}' takes {len(callee.inputs)} inputs, found {len(call.arguments)}",
            Section.CALLS,
        )
        return []
    names: list[str] = []
    for argument, param in zip(call.arguments, callee.inputs, strict=True):
        if not isinstance(argument, ast.Name):
            scope.refuse(
                argument.span, f"'{callee.name}' takes whole tensors: pass a name", Section.CALLS
            )
            continue
        tensor = scope.readable(argument.name, argument.span)
        if tensor is None:
            continue
        if (tensor.type, tensor.rank) != (param.type, param.rank):
            scope.refuse(
                argument.span,
                f"'{callee.name}' takes {_shape(param)} as '{param.name}', "
                f"but '{argument.name}' is {_shape(tensor)}",
                Section.CALLS,
            )
        names.append(argument.name)
    return names


def _targets(
    call: ast.Apply,
    results: tuple[ast.Name, ...],
    callee: c.CheckedDef,
    scope: DefScope,
    declared: Declared,
) -> list[str]:
    if len(results) != len(callee.outputs):
        scope.refuse(
            results[0].span,
            f"'{callee.name}' returns {len(callee.outputs)} outputs, "
            f"but is assigned to {len(results)} targets",
            Section.CALLS,
        )
        return []
    passed = {a.name for a in call.arguments if isinstance(a, ast.Name)}
    names: list[str] = []
    for target, output in zip(results, callee.outputs, strict=True):
        name = target.name
        if name in scope.inputs:
            scope.refuse(
                target.span, f"'{name}' is an input, and inputs are immutable", Section.CALLS
            )
        elif name not in scope.outputs:
            listed = ", ".join([*scope.outputs, name])
            scope.refuse(
                target.span,
                f"'{name}' is neither an input nor an output; add it to the outputs: -> ({listed})",
                Section.CALLS,
            )
        elif name in passed or name in names:
            scope.refuse(
                target.span, f"'{name}' appears twice in the call; use two tensors", Section.CALLS
            )
        else:
            _check_type(target, output, scope, declared)
        names.append(name)
    return names


def _check_type(target: ast.Name, output: c.Tensor, scope: DefScope, declared: Declared) -> None:
    known = scope.written.get(target.name)
    if target.name in declared:
        type_ = declared[target.name]
        expected = (t.scalar_type(type_.scalar), len(type_.dims))
    elif known is not None:
        expected = (known.type, known.rank)
    else:
        return
    if expected != (output.type, output.rank):
        scope.refuse(
            target.span,
            f"'{target.name}' is {expected[0]} of rank {expected[1]}, "
            f"but the call gives {_shape(output)}",
            Section.CALLS,
        )


def _shape(tensor: c.Tensor) -> str:
    return f"{tensor.type} of rank {tensor.rank}"
