"""``tcl model``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tcl.arrays.annotations import sizes_of
from tcl.bench.rows import EXAMPLES
from tcl.cli import common
from tcl.cli.cache_commands.common import layouts_of, needed, write_text
from tcl.cli.meant import Commands
from tcl.codegen.compiler import compiler_for
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.named import device_named
from tcl.codegen.loopir.lower import lower
from tcl.common.errors import ArgumentError
from tcl.common.folder import cache_place
from tcl.common.number_format import plural
from tcl.grammar.ranges.inference import infer
from tcl.selection.predicted_options import models_folder
from tcl.selection.suggested_options import DEFAULT
from tcl.tuner.cache.fingerprint import device_identity, known_gpu
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.model.boosting import Boosting
from tcl.tuner.model.file import read, text_of
from tcl.tuner.model.lookup import file_name, lookup
from tcl.tuner.model.model import Model
from tcl.tuner.model.ranking import ranked
from tcl.tuner.model.subject import Device
from tcl.tuner.training.history import History, history, reasons
from tcl.tuner.training.learn import Evaluation, learn, manifest, manifest_path, predictor
from tcl.tuner.training.learn import evaluate as evaluated_apart

_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))
_trees = click.option(
    "--trees",
    type=click.IntRange(1, 2000),
    default=80,
    show_default=True,
    help="Trees of each of the model's four members.",
)
_scope = click.option(
    "--for",
    "scope",
    type=click.Choice(["device", "architecture", "generic"]),
    default="device",
    show_default=True,
    help="What the model is for: this device; all devices with its architecture and, for CPUs, "
    "its vectors; or any CPU or GPU. A model for GPUs learns from all devices that it is "
    "for.",
)
_device_option = click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="The device of the kernels: cpu, or a GPU, which this machine need not have (cuda:0, "
    "h200; `tcl devices` lists them).",
)


@click.group("model", cls=Commands)
def command() -> None:
    """Learn from tuning results, to choose options without a search."""


@command.command("train")
@_files
@_scope
@_device_option
@click.option("--out", type=click.Path(path_type=Path), help="The file for the model.")
@click.option(
    "--warm-start",
    "before",
    type=click.Path(path_type=Path),
    help="A model to add trees to; it must have the features of this version.",
)
@_trees
@common.cache_option
def train(
    files: tuple[Path, ...],
    scope: str,
    device: str,
    out: Path | None,
    before: Path | None,
    trees: int,
    path: Path | None,
) -> None:
    """Train a model on all results of a tuning cache.

    FILES contain the tuned defs; the defs of the benchmark suite are known without FILES. Prints
    how good the model is at sizes and defs that it has not seen, and writes it beside the model. To
    measure this, some sizes and defs are left out of the training.
    """
    first = device_named(device)
    earlier = read(before, first.backend) if before is not None else None
    cache = needed(path)
    devices = _devices(first, scope, cache)
    known = _tuning_history(files, cache, devices)
    settings = Boosting(trees=trees)
    parts = ("sizes", "def")
    evaluations = [e for held_out in parts for e in _evaluated(known, held_out, settings)]
    model = learn(known.problems, settings, earlier)
    target = out or cache_place() / "models" / file_name(scope, first)
    if out is None:
        target.parent.mkdir(parents=True, exist_ok=True)
    write_text(str(target), text_of(model))
    if str(target) != "-":
        beside = manifest_path(target)
        write_text(str(beside), manifest(known, settings, model, evaluations))
        click.echo(f"{target}: {len(model.forest.leaves)} trees; see {beside.name}")


@command.command("evaluate")
@_files
@_scope
@_device_option
@_trees
@common.cache_option
def evaluate(
    files: tuple[Path, ...], scope: str, device: str, trees: int, path: Path | None
) -> None:
    """Show how well models of a tuning cache choose for sizes and defs they have not seen."""
    named = device_named(device)
    cache = needed(path)
    known = _tuning_history(files, cache, _devices(named, scope, cache))
    for held_out in ("sizes", "def"):
        if not any(_evaluated(known, held_out, Boosting(trees=trees))):
            click.echo(f"held out: {held_out}: there is only one, so nothing is left to learn from")


@command.command("predict")
@click.argument("file", type=click.Path(path_type=Path))
@common.entry_option
@common.sizes_option
@common.threads_option
@_device_option
@click.option(
    "--model",
    "path",
    type=click.Path(path_type=Path),
    help=("The model's file. Default: the best model for the device."),
)
@click.option(
    "--candidates",
    type=click.IntRange(2),
    show_default="1000 on a CPU; 200 on a GPU, where each one is scheduled",
)
@click.option("--top", type=click.IntRange(1), default=5, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@common.json_option
def predict(
    file: Path,
    entry: str | None,
    sizes: str | None,
    threads: int | None,
    device: str,
    path: Path | None,
    candidates: int | None,
    top: int,
    seed: int,
    as_json: bool,
) -> None:
    """Show what the model would choose for a def in FILE, and the expected times."""

    _, checked = common.choose(file, entry)
    shapes, _ = layouts_of(checked, sizes_of(checked, sizes))
    sized = infer(checked, shapes)
    target = device_named(device)
    if isinstance(target, CpuProfile):
        target = replace(target, threads=thread_count(threads))
    else:
        common.without_threads(device, threads)
    model, where = _model(path, target, device)
    layouts = compiler_for(target).layouts(sized)
    count = candidates or (1000 if isinstance(target, CpuProfile) else 200)
    ranking = ranked(model, lower(sized, layouts), target, DEFAULT, count, seed)
    if ranking is None:
        raise ArgumentError(f"{checked.name} has no options to choose at these sizes")
    preferred = next(ranking.preferred(), None)
    listed = [
        (ranking.expected_ratio(k), float(ranking.expected.spread[k]), ranking.options(k))
        for k in islice(ranking.best(), top)
    ]
    if as_json:
        chosen = None if preferred is None else ranking.options(preferred).as_dict()
        about: dict[str, Any] = {"def": checked.name, "sizes": dict(sized.sizes), "device": device}
        about |= {"threads": target.threads} if isinstance(target, CpuProfile) else {}
        about |= {"model": str(where), "candidates": len(ranking), "unseen": ranking.unseen}
        each = [
            {"time": round(ratio, 4), "spread": round(spread, 4), "options": options.as_dict()}
            for ratio, spread, options in listed
        ]
        common.print_json({**about, "chosen": chosen, "ranked": each})
        return
    click.echo(f"{checked.name}: {len(ranking)} candidates, ranked by {where}")
    if ranking.unseen:
        click.echo(
            f"the model has no similar training data ({ranking.unseen}): the default is used"
        )
    elif preferred is None:
        click.echo("no candidate promises a gain of 3 %: the default is used")
    for rank, (ratio, spread, options) in enumerate(listed, 1):
        expected = f"{ratio:.2f} of the default's time, ±{spread:.0%}"
        click.echo(f"{rank}. {expected}: {options.to_json()}")


def _model(path: Path | None, device: Device, name: str) -> tuple[Model, Path]:
    """The one in a file, else the best for a device of this name, and where it lies."""

    if path is not None:
        return read(path, device.backend), path
    found = lookup(device, models_folder())
    if found is None:
        of = "" if name == "cpu" else f" --device {shlex.quote(name)}"
        raise ArgumentError(f"there is no model yet; train one with `tcl model train{of}`")
    model, where, wrong = found
    for sentence in wrong:
        click.echo(f"warning: {sentence}", err=True)
    return model, where


def _devices(device: Device, scope: str, cache: TuningCache) -> dict[str, Device]:
    """Whose results in a cache are learned from, by identity, those of this device first: those
    of a CPU with each number of threads that it can have, those of a GPU, and of the known ones
    that a model with this scope is for as well."""

    if isinstance(device, CpuProfile):
        each = (replace(device, threads=count) for count in range(1, device.cores + 1))
        return {device_identity(d): d for d in each}
    found: dict[str, Device] = {device_identity(device): device}
    for identity in {s.key.device for s in cache.list()} - {*found}:
        other = known_gpu(identity)
        same = other == device
        if scope == "architecture":
            same = other is not None and other.architecture == device.architecture
        if other is not None and (same or scope == "generic"):
            found[identity] = other
    return found


def _tuning_history(
    files: tuple[Path, ...], cache: TuningCache, devices: dict[str, Device]
) -> History:
    texts = [*sorted(EXAMPLES.glob("*.tc")), *files]
    defs = [checked for file in texts for checked in common.load(file)[1].values()]
    known = history(cache, defs, devices)
    for line in reasons(known):
        click.echo(f"passed over: {line}")
    if not known.problems:
        raise ArgumentError(
            "there are no results to learn from; tune first, and name the FILES of the defs"
        )
    tuned = plural(len(known.problems), "tuning run")
    click.echo(f"{tuned} with {plural(known.candidates, 'candidate')}")
    return known


def _evaluated(known: History, held_out: str, settings: Boosting) -> Iterator[Evaluation]:
    """Scores are printed, too."""
    found = evaluated_apart(known.problems, held_out, lambda ps: predictor(learn(ps, settings)))
    if found is None:
        return
    click.echo(f"best time / time of the chosen options, held out: {held_out}")
    names = {
        "chosen": "model, or default if gain below 3 %",
        "model": "model alone",
        "default": "heuristic default",
        "expected": "analytic model alone",
    }
    for name, score in found.scores().items():
        click.echo(
            f"  {names[name]:<38} mean {score.mean:.3f}  10th percentile {score.tenth:.3f}  "
            f"least {score.least:.3f}"
        )
    yield found
