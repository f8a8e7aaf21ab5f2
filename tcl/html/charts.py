"""Charts as inline SVG. Colours are the page's, by class, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcl.html.markup import Markup, join, tag

_WIDE = 4.0
"""Values that differ by more than this factor are shown on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from ``low`` to ``high``, shown between two coordinates."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values on the axis, a few."""
        if self.logarithmic and self.high / self.low > 8:
            for leads in ((1, 2, 5), (1, 3), (1,)):
                found = _decades(self.low, self.high, leads)
                if len(found) <= most + 1:
                    return found
            return found[:: math.ceil(len(found) / most)]
        step = _round_step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def of_times(values: Iterable[float], start: float, end: float) -> Axis:
    """An axis for positive values, with a margin; logarithmic where they differ much."""
    values = list(values)
    low, high = min(values), max(values)
    if high / low > _WIDE:
        return Axis(low / 1.15, high * 1.15, start, end, True)
    spread = max(high - low, 0.05 * high)
    return Axis(max(low - 0.1 * spread, 0.0), high + 0.1 * spread, start, end)


def _decades(low: float, high: float, leads: tuple[int, ...]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # By a power of ten, and not by multiplying a fraction: 5e-05 and not 5.000000000000001e-05.
    found = (float(f"{lead}e{power}") for power in powers for lead in leads)
    return [value for value in found if low <= value <= high]


def _round_step(least: float) -> float:
    power = math.floor(math.log10(least)) if least > 0 else 0
    steps = (float(f"{lead}e{power}") for lead in (1, 2, 5, 10))
    return next(step for step in steps if step >= least * 0.999)


_LEFT, _RIGHT, _TOP, _BOTTOM = 76.0, 14.0, 12.0, 54.0
_MANY = 500
"""Points above which each is smaller."""
_LETTER, _APART = 7.0, 8.0
"""How wide a letter of a label is, about, and how far labels are apart at least."""
_TITLES = 1500
"""Points up to which each says what it is when pointed at."""


@dataclass(frozen=True, slots=True)
class ChartDot:
    x: float
    time: float | None
    """Seconds a call; None for one that failed, which is shown below the others."""
    title: str
    kind: str = "dot"
    """Class: ``dot``, ``winner``."""
    to: str = ""
    """The name of the place on the page to which it leads; empty for none."""


@dataclass(frozen=True, slots=True)
class ChartLine:
    points: Sequence[tuple[float, float]]
    """(x, seconds a call)"""
    kind: str
    """Class: ``best``, ``median``."""
    steps: bool = False
    """Whether a value holds until the next one."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """What is written below a chart."""

    label: str
    end: float
    """The axis runs from ``begin`` to here."""
    begin: float = 0.0
    named: Sequence[str] = ()
    """Names for 0, 1, 2, ..., of which those are written that there is room for; empty for
    numbers."""


@dataclass(frozen=True, slots=True)
class ChartSize:
    """Of a chart, in its own units: text is 12 of them high."""

    width: float = 760.0
    height: float = 310.0

    @property
    def floor(self) -> float:
        """Where the horizontal axis lies."""
        return self.height - _BOTTOM

    @property
    def right(self) -> float:
        return self.width - _RIGHT


WIDE, HALF = ChartSize(), ChartSize(380.0, 230.0)


def times_chart(
    name: str,
    ticks: Ticks,
    dots: Sequence[ChartDot],
    lines: Sequence[ChartLine] = (),
    size: ChartSize = WIDE,
) -> Markup:
    """Times of calls over something; ``name`` says what it shows to those who cannot see it."""
    times = [d.time for d in dots if d.time is not None]
    times += [y for line in lines for _, y in line.points]
    if not times:
        return tag("p", "Nothing was measured.", class_="none")
    x, floor = Axis(ticks.begin, ticks.end, _LEFT, size.right), size.floor
    failed = [d for d in dots if d.time is None]
    above = sorted(dots, key=lambda d: d.kind == "winner")  # drawn over the others
    y = of_times(times, floor - (16 if failed else 4), _TOP)
    return tag(
        "svg",
        _time_axis(y, size),
        _place_axis(x, ticks, size),
        tag("g", [_dot(d, x, y, len(dots)) for d in above], class_="dots"),
        tag("g", [_cross(d, x, floor - 7, len(dots)) for d in failed], class_="failed"),
        [_line(line, x, y) for line in lines],
        viewBox=f"0 0 {size.width:.0f} {size.height:.0f}",
        role="group",
        aria_label=name,
        class_="chart wide" if size is WIDE else "chart",
        xmlns="http://www.w3.org/2000/svg",
    )


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit in which times up to this one are written, and its length."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 10 * scale:
            return unit, scale
    return "µs", 1e-6


def _time_axis(y: Axis, size: ChartSize) -> Markup:
    unit, scale = unit_of(y.low)  # the fastest matter, however slow others are
    pieces = []
    for value in y.ticks(6 if size is WIDE else 4):
        at = y.position(value)
        pieces.append(tag("line", x1=_LEFT, x2=size.right, y1=at, y2=at, class_="grid"))
        label = f"{value / scale:,.6g}"
        pieces.append(tag("text", label, x=_LEFT - 8, y=at + 4, text_anchor="end"))
    middle = (y.start + y.end) / 2
    label = f"first reading, {unit}" + (" (log scale)" if y.logarithmic else "")
    turned = f"rotate(-90 14 {middle:.0f})"
    pieces.append(
        tag(
            "text", label, x=14.0, y=middle, text_anchor="middle", transform=turned, class_="turned"
        )
    )
    return tag("g", pieces, class_="axis")


def _place_axis(x: Axis, ticks: Ticks, size: ChartSize) -> Markup:
    floor = size.floor
    pieces = [tag("line", x1=_LEFT, x2=size.right, y1=floor, y2=floor, class_="base")]
    if ticks.named:
        labels = [(float(k), name) for k, name in enumerate(ticks.named)]
    else:
        labels = [(v, f"{v:,.6g}") for v in x.ticks(9 if size is WIDE else 5)]
    free = 0.0
    for value, label in labels:
        at, half = x.position(value), _LETTER * len(label) / 2
        pieces.append(tag("line", x1=at, x2=at, y1=floor, y2=floor + 4, class_="base"))
        if free <= at - half and at + half <= size.width:
            pieces.append(tag("text", label, x=at, y=floor + 20, text_anchor="middle"))
            free = at + half + _APART
    middle, low = (x.start + x.end) / 2, size.height - 8
    pieces.append(tag("text", ticks.label, x=middle, y=low, text_anchor="middle"))
    return tag("g", pieces, class_="axis")


def _dot(dot: ChartDot, x: Axis, y: Axis, among: int) -> Markup | None:
    if dot.time is None:
        return None
    radius = 5.0 if dot.kind == "winner" else 3.0 if among <= _MANY else 2.0
    place = {"cx": x.position(dot.x), "cy": y.position(dot.time)}
    return _drawn(dot, among, "circle", r=radius, class_=dot.kind, **place)


def _cross(dot: ChartDot, x: Axis, at: float, among: int) -> Markup:
    path = f"M{x.position(dot.x) - 3:.1f} {at - 3:.1f}l6 6m0 -6l-6 6"
    return _drawn(dot, among, "path", d=path)


def _drawn(dot: ChartDot, among: int, shape: str, **attributes: str | float) -> Markup:
    """A shape with its title, which leads to the dot's place."""
    drawn = tag(shape, tag("title", dot.title) if among <= _TITLES else None, **attributes)
    label = dot.title.partition("\n")[0]
    return tag("a", drawn, href=f"#{dot.to}", aria_label=label) if dot.to else drawn


def _line(line: ChartLine, x: Axis, y: Axis) -> Markup:
    path = ""
    for place, time in line.points:
        px, py = x.position(place), y.position(time)
        if path and line.steps:
            path += f"H{px:.1f}V{py:.1f}"
        else:
            path += f"{'L' if path else 'M'}{px:.1f} {py:.1f}"
    # A single point has no length: its round ends still show it.
    return tag("path", d=path + ("h0" if len(line.points) == 1 else ""), class_=f"line {line.kind}")


def bar(share: float, mark: float | None = None) -> Markup:
    """A horizontal bar that is filled to a share of its length, with a mark on it."""
    filled = min(max(share, 0.0), 1.0) * 200
    return tag(
        "svg",
        tag("rect", x=0.0, y=2.0, width=filled, height=10.0, class_="fill"),
        None
        if mark is None
        else tag("line", x1=mark * 200, x2=mark * 200, y1=0.0, y2=14.0, class_="mark"),
        viewBox="0 0 200 14",
        width=200.0,
        height=14.0,
        class_="bar",
        aria_hidden="true",
        xmlns="http://www.w3.org/2000/svg",
    )


def legend(*entries: tuple[str, str]) -> Markup:
    """(class, meaning) of what is in a chart."""
    return tag(
        "p", join(tag("span", tag("i", class_=kind), meaning) for kind, meaning in entries),
        class_="legend",
    )  # fmt: skip
