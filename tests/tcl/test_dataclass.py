"""``tcl.common.dataclass``: what the standard library's does, with methods made late."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, astuple, field, fields
from dataclasses import dataclass as standard
from dataclasses import replace as standard_replace
from typing import Any

import pytest

from tcl.common.dataclass import dataclass, made_often, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A point with a name, whose hash is computed once."""

    name: str = ""
    length: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.name))


class _Hashes:
    __slots__ = ("_hash",)


@dataclass(frozen=True, slots=True)
class Hashed(_Hashes):
    parts: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Basket:
    content: list[int] = field(default_factory=list)
    size: int = field(default_factory=int, init=False)


@made_often(frozen=True, slots=True)
class Often:
    x: int
    y: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Itself:
    x: int


def test_values() -> None:
    point = Point(1, tags=("a",))
    assert (point.x, point.y, point.tags) == (1, 2, ("a",))
    assert point == Point(1, 2) != Point(2, 2)
    assert len({point, Point(1), Point(x=1, y=2)}) == 1
    assert repr(point) == "Point(x=1, y=2)"
    assert replace(point, y=5) == Point(1, 5) and astuple(point) == (1, 2, ("a",))
    assert [f.name for f in fields(Named)] == ["x", "y", "tags", "name", "length"]
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
    assert list(inspect.signature(Point).parameters) == ["x", "y", "tags"]


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@standard(frozen=True)
class Below(Point):
    more: int = field(default=1, kw_only=True)


@pytest.mark.parametrize(
    ("one", "changes"),
    [
        (Point(1, tags=("a",)), {"y": 5}),
        (Point(1), {"x": 3, "tags": ("b",)}),
        (Named(1, name="here"), {"name": "there"}),
        (Basket(content=[1]), {"content": [2, 3]}),
        (Empty(), {}),
        (Below(1, more=4), {"y": 7}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_another_one_with_changes(one: Any, changes: dict[str, Any]) -> None:
    """As the standard library makes it, of its own classes, too."""
    for given in ({}, changes):
        made = replace(one, **given)
        assert type(made) is type(one) and made == standard_replace(one, **given)
        assert repr(made) == repr(standard_replace(one, **given))
    with pytest.raises(TypeError):
        replace(one, none=1)


def test_inherited_fields_and_what_is_set_afterwards() -> None:
    named = Named(1, name="here")
    assert repr(named) == "Named(x=1, y=2, name='here', length=4)"
    assert named != Point(1, 2) and Named(1, name="x").length == 1


def test_defaults_are_made_for_each_and_given_by_name() -> None:
    one, other = Basket(), Basket(content=[1])
    one.content.append(3)
    assert (Basket().content, one.content, other.content, one.size) == ([], [3], [1], 0)
    assert one == Basket(content=[3])
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    with pytest.raises(TypeError, match=r"Basket\.__init__\(\) takes 1 positional"):
        Basket([1])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required"):
        Point()  # type: ignore[call-arg]


def test_frozen_and_copied() -> None:
    point = Named(1, name="n")
    with pytest.raises(FrozenInstanceError, match="x"):
        setattr(point, "x", 3)  # noqa: B010
    with pytest.raises(FrozenInstanceError, match="x"):
        delattr(point, "x")
    for again in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert again == point and again is not point and again.tags == point.tags
    assert not hasattr(point, "__dict__")


def test_what_is_made_often_is_frozen_for_type_checkers_alone() -> None:
    one = Often(1)
    one.x = 2  # type: ignore[misc]
    assert one == Often(2) and hash(one) == hash(Often(2)) and replace(one, y=5) == Often(2, 5)
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == one
    assert not hasattr(one, "__dict__")


def test_hashes() -> None:
    assert hash(Hashed((1, 2))) == hash(Hashed((1, 2)))
    assert pickle.loads(pickle.dumps(Hashed((1,)))) == Hashed((1,))
    assert Itself(1) != Itself(1) and hash(Itself(1))


def test_classes_of_both_kinds_are_derived_from_each_other() -> None:
    @standard(frozen=True, slots=True)
    class Below(Point):
        z: int = 0

    @dataclass(frozen=True, slots=True)
    class Lowest(Below):
        w: int = 1

    one, other = Below(1, z=3), Lowest(1, 2, z=3, w=4)
    assert (one.z, other.z, other.w) == (3, 3, 4) and one == Below(1, z=3) != other
    assert hash(other) == hash(Lowest(1, 2, z=3, w=4))
    for point in (one, other):
        with pytest.raises(FrozenInstanceError):
            point.z = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="non-frozen"):

        @dataclass(slots=True)
        class Thawed(Point):  # type: ignore[misc]
            pass
