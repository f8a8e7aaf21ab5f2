"""AST → text. ``parse(to_text(tree)) == tree`` for every tree that came out of the parser."""

from __future__ import annotations

from typing import assert_never

from tcl.grammar.syntax import ast

_PRECEDENCE = {
    "?": 1,
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!="), 4),
    **dict.fromkeys(("<", "<=", ">", ">="), 5),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
_UNARY = 8
_ATOM = 9


def to_text(node: ast.Module | ast.Def) -> str:
    """The text of a module or a def, one statement a line."""
    match node:
        case ast.Module(defs=defs):
            return "\n".join(to_text(d) for d in defs)
        case ast.Def():
            params = ", ".join(_param(p) for p in node.params)
            outputs = ", ".join(_param(p) for p in node.outputs)
            body = "".join(f"    {statement_text(s)}\n" for s in node.statements)
            return f"def {node.name}({params}) -> ({outputs}) {{\n{body}}}\n"
        case _:
            assert_never(node)


def _param(param: ast.Param) -> str:
    if param.type is None:
        return param.name
    dims = ", ".join(expr_text(d) for d in param.type.dims)
    return f"{param.type.scalar}{f'({dims})' if dims else ''} {param.name}"


def statement_text(statement: ast.Statement) -> str:
    match statement:
        case ast.Call(targets=targets, value=value):
            return f"{', '.join(t.name for t in targets)} = {expr_text(value)}"
        case ast.Assign():
            target = statement.target + (_list(statement.indices) if statement.indices else "")
            text = f"{target} {statement.op} {expr_text(statement.rhs)}"
            if statement.equivalent is not None:
                text += f" <=> {statement.equivalent.name}{_list(statement.equivalent.arguments)}"
            if statement.where:
                text += " where " + ", ".join(_where(w) for w in statement.where)
            return text
        case _:
            assert_never(statement)


def _where(clause: ast.Where) -> str:
    match clause:
        case ast.Range(index=index, start=start, stop=stop):
            return f"{index} in {expr_text(start)}:{expr_text(stop)}"
        case ast.Let(name=name, value=value):
            return f"{name} = {expr_text(value)}"
        case ast.Exists(value=value):
            return f"exists {expr_text(value)}"
        case _:
            assert_never(clause)


def _list(arguments: tuple[ast.Expr, ...]) -> str:
    return f"({', '.join(expr_text(a) for a in arguments)})"


def expr_text(expr: ast.Expr) -> str:
    """The text of an expression, with no more parentheses than it needs."""
    return _expr(expr, 0)


def _expr(expr: ast.Expr, outer: int) -> str:
    """``expr`` for a place that takes only operators binding tighter than ``outer``."""
    text, precedence = _with_precedence(expr)
    return text if precedence > outer else f"({text})"


def _with_precedence(expr: ast.Expr) -> tuple[str, int]:
    match expr:
        case ast.Number(value=value):
            return (repr(value) if isinstance(value, float) else str(value)), _ATOM
        case ast.Name(name=name):
            return name, _ATOM
        case ast.Apply(name=name, arguments=arguments):
            return name + _list(arguments), _ATOM
        case ast.Dimension(tensor=tensor, axis=axis):
            return f"{tensor}.{axis}", _ATOM
        case ast.Unary(op=op, operand=operand):
            return op + _expr(operand, _UNARY - 1), _UNARY
        case ast.Binary(op="min" | "max" as op, left=left, right=right):
            return f"{op}({_expr(left, 0)}, {_expr(right, 0)})", _ATOM
        case ast.Binary(op=op, left=left, right=right):
            precedence = _PRECEDENCE[op]
            # Left-associative: the right operand has to bind tighter.
            text = f"{_expr(left, precedence - 1)} {op} {_expr(right, precedence)}"
            return text, precedence
        case ast.Select(condition=condition, then=then, otherwise=otherwise):
            precedence = _PRECEDENCE["?"]
            parts = _expr(condition, precedence), _expr(then, 0), _expr(otherwise, precedence - 1)
            return "{} ? {} : {}".format(*parts), precedence
        case ast.Cast(type=type_, operand=operand):
            return f"{type_}({_expr(operand, 0)})", _ATOM
        case _:
            assert_never(expr)
