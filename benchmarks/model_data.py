"""Measures candidates for a model to learn from, those first from which it learns most.

    python -m benchmarks.model_data --cache model.db                     # an hour
    python -m benchmarks.model_data --cache model.db --seconds 60 --problems matmul,softmax

Problems are taken in turns, so that it may be stopped at any time; a second run goes on where the
first one ended. The first turn of a problem measures candidates at random: from anywhere in its
search space, and from around the default. Later ones measure those that a model of everything so
far expects to be fastest, those about which its members disagree most, and a few at random. See
``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tcl.api import size
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.cpu_backend import CpuBackend
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.scratch_folder import workspace
from tcl.grammar.check import check
from tcl.selection.best_options import DEFAULT, cache_key
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.model.candidates import candidates
from tcl.tuner.model.model import Model
from tcl.tuner.model.subject import Subject
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.training.history import history
from tcl.tuner.training.learn import learn

EXAMPLES = Path(__file__).parent.parent / "examples"
PROBLEMS = {
    "matmul": (
        *("M=256,N=256,K=256", "M=64,N=512,K=128", "M=130,N=200,K=310", "M=384,N=192,K=128"),
        *("M=100,N=100,K=100", "M=512,N=512,K=64"),
    ),
    "tmm": ("M=128,N=256,K=512", "M=64,N=512,K=256", "M=31,N=400,K=333"),
    "batch_matmul": ("B=64,M=26,N=26,K=72", "B=30,M=40,N=48,K=64"),
    "mlp1": ("B=64,M=500,N=128", "B=32,M=256,N=256"),
    "convolution": (
        *("N=2,C=16,F=16,H=28,W=28,KH=3,KW=3", "N=1,C=32,F=32,H=20,W=20,KH=3,KW=3"),
        *("N=4,C=8,F=8,H=30,W=30,KH=3,KW=3",),
    ),
    "group_convolution": (
        *("N=2,G=16,C=8,F=8,H=28,W=28,KH=3,KW=3", "N=1,G=8,C=16,F=16,H=14,W=14,KH=3,KW=3"),
        *("N=4,G=8,C=4,F=4,H=28,W=28,KH=3,KW=3",),
    ),
    "softmax": ("N=256,D=1024", "N=1024,D=200", "N=512,D=512", "N=100,D=2000"),
    "layernorm": ("N=256,D=768", "N=128,D=1024", "N=500,D=300"),
    "moments": ("N=128,K=2304", "N=64,K=5000"),
    "bias_relu_scale": ("M=512,N=1024", "M=256,N=700"),
    "stencil": ("N=512,M=512",),
}
"""Def → sizes: kernels of 0.02 to 0.4 ms, so that compiling takes most of the time."""
_DRAWN = 400
"""Candidates that are ranked in a turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How many candidates are measured in a turn of a problem, and of what kind."""

    best: int = 16
    doubted: int = 12
    chance: int = 12

    @property
    def count(self) -> int:
        return self.best + self.doubted + self.chance


def chosen(
    model: Model | None,
    subject: Subject,
    drawn: Sequence[MappingOptions],
    known: frozenset[str],
    turn: Turn,
) -> list[MappingOptions]:
    """Of drawn candidates, those to measure: the default, so that all turns share one, then new
    ones."""
    new = [o for o in drawn[1:] if o.to_json() not in known]
    if model is None:
        return [drawn[0], *new[: turn.count]]
    described = subject.describable(new)
    expected = model.predict(subject, [choices for _, choices in described])
    found: dict[int, None] = dict.fromkeys(expected.logs.argsort()[: turn.best].tolist())
    for k in (-expected.spread).argsort().tolist():
        if len(found) >= turn.best + turn.doubted:
            break
        found[k] = None
    for k in range(len(described)):  # in the order in which they were drawn
        if len(found) >= turn.count:
            break
        found[k] = None
    return [drawn[0], *(new[described[k][0]] for k in found)]


def _problems(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Def and sizes, one of each def after the other."""
    longest = max(len(PROBLEMS[name]) for name in names)
    for k in range(longest):
        yield from ((name, PROBLEMS[name][k]) for name in names if k < len(PROBLEMS[name]))


def measure(cache: TuningCache, name: str, sizes: str, threads: int, turn: Turn, seed: int) -> str:
    """One turn of a problem; what to say about it."""
    source = (EXAMPLES / f"{name}.tc").read_text("utf-8")
    checked = check(source)[name]
    inputs = random_inputs(checked, parse_sizes(sizes, checked), 0)
    key = cache_key(size(checked, inputs), inputs, threads)
    device = replace(host_cpu(), threads=threads)
    defs = [d for n in PROBLEMS for d in check((EXAMPLES / f"{n}.tc").read_text("utf-8")).values()]
    learned = history(cache, defs, {device_identity(device): device}).problems
    own = any(p.key == key for p in learned)
    model = learn(learned) if own else None
    began = time.monotonic()
    with workspace() as folder:
        backend = CpuBackend.create(source, name, inputs, folder, threads)
        space = MappingSpace(backend.program(), backend.device)
        subject = Subject.of(backend.program(), backend.device)
        known = frozenset(r.options for r in cache.history(key))
        drawn = candidates(space, DEFAULT, _DRAWN, seed)
        options = chosen(model, subject, drawn, known, turn)
        config = TunerConfig(
            strategy="random", population=2, elites=0, generations=1, seed=seed, cached_seeds=0
        )
        tuner = Tuner(backend, space, config=config, cache=cache, key=key, entry=name)
        result = tuner.tune(options)
    works = sum(c.time is not None for c in result.history)
    seconds = time.monotonic() - began
    how = "chosen by a model" if model is not None else "at random"
    return f"{name} {sizes}: {works} of {len(result.history)} work, {how}, in {seconds:.0f} s"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_data", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cache", type=Path, required=True, help="a tuning cache of its own")
    parser.add_argument("--seconds", type=float, default=3600, help="no turn begins after these")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names, with commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    names = given.problems.split(",")
    for name in names:
        if name not in PROBLEMS:
            parser.error(f"there is no problem {name!r}; there are {', '.join(PROBLEMS)}")
    cache, began, seed = TuningCache(given.cache), time.monotonic(), given.seed
    while True:
        for name, sizes in _problems(names):
            if time.monotonic() - began > given.seconds:
                return
            print(measure(cache, name, sizes, given.threads, Turn(), seed), flush=True)
        seed += 1


if __name__ == "__main__":
    main()
