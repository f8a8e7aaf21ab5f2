"""Values that are computed only where they are needed: a branch, and both ways meet again."""

from __future__ import annotations

from collections.abc import Callable

from tcl.codegen.cpu.llvm.builder import Builder, Val


def any_lane(b: Builder, test: Val) -> Val:
    """Whether it holds in some lane, as a scalar bool."""
    if test.lanes == 1:
        return test
    return b.call(f"llvm.vector.reduce.or.v{test.lanes}i1", "i1", 1, test)


def either(
    b: Builder, test: Val, then: Callable[[], Val], otherwise: Callable[[], Val], hint: str
) -> Val:
    """One of both by a scalar test; the other is not computed."""
    labels = b.new_label(hint), b.new_label("otherwise")
    after = b.new_label("after")
    incoming = []
    with b.meeting(after):
        b.branch_if(test, *labels)
        for label, side in zip(labels, (then, otherwise), strict=True):
            b.start(label)
            incoming.append((side(), b.block))
            b.branch(after)
    return b.phi(incoming)


def only_if(
    b: Builder, test: Callable[[], Val], emit: Callable[[], None], hint: str, *, whole: bool = False
) -> None:
    """What is done only where a scalar test holds. ``whole``: as of ``branch_if``."""
    then, after = b.new_label(hint), b.new_label("after")
    b.branch_if(test(), then, after, whole=whole)
    b.start(then)
    emit()
    b.branch(after)
    b.start(after)


def rarely(b: Builder, test: Val, usual: Val, otherwise: Callable[[], Val]) -> Val:
    """``usual`` where the test fails. What ``otherwise`` gives is computed only if the test holds
    in some lane, and used in those lanes alone, so that no lane's result depends on another."""
    rare, after, before = b.new_label("rare"), b.new_label("after"), b.block
    holds = any_lane(b, test)
    with b.meeting(after):
        b.branch_if(holds, rare, after)
        b.start(rare)
        mixed = b.select(test, otherwise(), usual)
        last = b.block
        b.branch(after)
    return b.phi([(usual, before), (mixed, last)])
