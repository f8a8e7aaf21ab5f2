"""What every search strategy is: it proposes configurations and is told their times.

A strategy knows nothing of compilers or clocks, so it can be replayed on recorded results, and
the same random state with the same results makes the same proposals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tcl.tuner.space.search_space import Config

Result: TypeAlias = tuple[Config, float | None]
"""A configuration and its time in seconds; None when it failed."""

State: TypeAlias = dict[str, object]
"""A strategy at any moment, as JSON data."""

SELECTIONS = ("rank", "roulette")


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings that strategies share; each reads those that it has a use for."""

    population: int = 20
    """Configurations of the first generation; as many of the best are parents of later ones."""
    elites: int = 10
    """How many fewer are measured in later generations, of strategies that breed: the best so far
    count as members, and keep their times."""
    crossover: float = 0.8
    """Probability that a child mixes parents; otherwise it begins as the copy of one. Not of those
    children that are a parent with one knob changed, nor is ``mutation``."""
    mutation: float = 0.1
    """Probability of a mutation, per knob of a child."""
    selection: str = "rank"
    """How parents are drawn: by ``rank``, or by ``roulette``, in proportion to 1 / time."""
    parents: int = 3
    """Of a child that mixes them: two or three."""

    @property
    def children(self) -> int:
        """How many are measured in a generation after the first."""
        return max(1, self.population - self.elites)


class Strategy(Protocol):
    """The one signature. ``ask`` and ``tell`` alternate, a generation at a time; the results of a
    generation may come in any order, in parts, or not at all. Where there is more to be done it
    may be asked again before it is told: what is pending is not proposed again."""

    @property
    def pending(self) -> tuple[Config, ...]:
        """What was asked and not told: after ``restore``, what is still to be measured."""

    def ask(self) -> tuple[Config, ...]:
        """The next generation: valid, different, never proposed before. Empty: nothing is left."""

    def tell(self, results: Sequence[Result]) -> None:
        """What became of them, or of others, measured elsewhere."""

    def state(self) -> State:
        """Everything needed to go on from here, at any moment."""

    def restore(self, state: Mapping[str, object]) -> None:
        """Go on from a state of a strategy of the same kind, space and settings."""
