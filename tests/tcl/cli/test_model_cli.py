"""``tcl model``, on a cache of made-up times."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from command_line import here

from tcl.cli.cache_commands.common import layouts_of
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.selection.best_options import DEFAULT, layout_key
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.training.history import subject_of

FEW = ("--trees", "3")
MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! 3 * A(m, k) * B(k, n) }\n"
"""The suite has none like it."""
GPU = replace(H200, name="NVIDIA H200")
"""As its driver calls it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with results of ``mm`` at two sizes, as this machine could have measured, and
    as one with a GPU could have."""
    found = tmp_path_factory.mktemp("model")
    (found / "mm.tc").write_text(MM)
    checked, host = check(MM)["mm"], replace(host_cpu(), threads=1)
    cache, rng = TuningCache(found / "tuning.db"), Random(0)
    for m, device in ((32, host), (64, host), (32, GPU), (64, GPU)):
        shapes, layouts = layouts_of(checked, {"M": m, "N": 32, "K": 48})
        key = layout_key(infer(checked, shapes), layouts, device)
        subject = subject_of(key, checked, device)
        space = subject.space(subject.program, device)
        drawn = [space.space.sample(rng) for _ in range(8)]
        options = [DEFAULT, *(space.to_options(c) for c in drawn if c is not None)]
        _, seconds = subject.extract([subject.choices(o) for o in options])
        outcomes = [Outcome(Verdict.CORRECT, (float(s),)) for s in seconds]
        pairs = zip(options, outcomes, strict=True)
        cache.add(
            key, [Record.from_outcome(o.to_json(), x, 1.0, "run") for o, x in pairs], entry="mm"
        )
    return found


def test_a_model_is_trained_asked_and_trained_on(folder: Path) -> None:
    file, out = folder / "mm.tc", folder / "models/mine.json"
    out.parent.mkdir()
    done = here("model", "train", file, "--out", out, *FEW, cache=folder)
    assert done.returncode == 0, done.stderr
    assert "2 tuning runs with 18 candidates" in done.stdout
    assert "best time / time of the chosen options, held out: sizes" in done.stdout
    assert f"{out}: 12 trees; see mine.manifest.json" in done.stdout
    about = json.loads((folder / "models/mine.manifest.json").read_text())
    assert (about["searches"], about["candidates"], about["defs"]) == (2, 18, {"mm": 2})
    assert {f["group"] for f in about["schema"]["features"]} == {
        *("problem", "mapping", "interaction", "hardware")
    }

    sizes = ("--sizes", "M=48,N=32,K=48", "--threads", "1")
    asked = here(
        *("model", "predict", file, *sizes, "--model", out, "--candidates", "20", "--top", "2"),
        cache=folder,
    )
    assert asked.returncode == 0, asked.stderr
    first, *ranked = asked.stdout.splitlines()
    if ranked[0].startswith("no candidate"):  # which of them times on this machine decide
        assert ranked.pop(0) == "no candidate promises a gain of 3 %: the default is used"
    assert re.fullmatch(rf"mm: \d+ candidates, ranked by {re.escape(str(out))}", first)
    assert [line.split(" of the default's time, ")[0][:3] for line in ranked] == ["1. ", "2. "]
    again = here(
        *("model", "predict", file, *sizes, "--model", out, "--candidates", "20", "--top", "2"),
        cache=folder,
    )
    assert again.stdout == asked.stdout
    as_data = here("model", "predict", file, *sizes, "--model", out, "--json", cache=folder)
    data = json.loads(as_data.stdout)
    assert (data["def"], data["sizes"]) == ("mm", {"M": 48, "N": 32, "K": 48})
    assert [*data["ranked"][0]] == ["time", "spread", "options"]
    options = [each["options"] for each in data["ranked"]]
    assert all(MappingOptions.from_dict(each).to_json() for each in options)
    assert data["chosen"] is None or data["chosen"] in options
    run = here("run", file, *sizes, "--options", "predict", cache=folder)
    assert "agrees with the reference" in run.stdout

    more = here("model", "train", file, "--out", out, "--warm-start", out, *FEW, cache=folder)
    assert f"{out}: 24 trees" in more.stdout


def test_models_of_gpus_need_none(folder: Path) -> None:
    file, gpu = folder / "mm.tc", ("--device", "h200")
    done = here("model", "train", file, *gpu, "--for", "generic", *FEW, cache=folder)
    assert done.returncode == 0, done.stderr
    assert "passed over: 18 results of another backend" in done.stdout
    assert "2 tuning runs with 18 candidates" in done.stdout
    path = folder / "models/cuda.json"
    assert f"{path}: 12 trees; see cuda.manifest.json" in done.stdout
    about = json.loads(path.with_suffix(".manifest.json").read_text())
    assert (about["backend"], about["candidates"]) == ("cuda", 18)
    predict = ("model", "predict", file, "--sizes", "M=48,N=32,K=48", "--candidates", "20")
    asked = here(*predict, *gpu, "--json", cache=folder)
    data = json.loads(asked.stdout)
    assert (data["device"], data["model"]) == ("h200", str(path))
    assert all(MappingOptions.from_dict(each["options"]).to_json() for each in data["ranked"])
    refused = here(*predict, "--model", path, cache=folder)
    assert refused.returncode == 1
    assert (
        refused.stderr == f"error: the model {path} is for GPUs; a model for CPUs is needed here\n"
    )


def test_what_lies_outside_is_said(folder: Path) -> None:
    file = folder / "mm.tc"
    assert here("model", "train", file, *FEW, cache=folder).returncode == 0
    sizes = ("--sizes", "M=2000,N=32,K=48", "--threads", "1")
    done = here("model", "predict", file, *sizes, "--candidates", "4", cache=folder)
    assert "the model has no similar training data (flops): the default is used" in done.stdout


def test_how_good_it_is(folder: Path) -> None:
    done = here("model", "evaluate", folder / "mm.tc", *FEW, cache=folder)
    assert done.stdout.splitlines()[-1] == (
        "held out: def: there is only one, so nothing is left to learn from"
    )


def test_what_is_missing_is_said(folder: Path, tmp_path: Path) -> None:
    done = here("model", "evaluate", cache=folder)
    assert done.returncode == 1
    assert "passed over: 18 results of another backend" in done.stdout
    assert "passed over: 18 results of defs whose text was not given" in done.stdout
    assert done.stderr == (
        "error: there are no results to learn from; tune first, and name the FILES of the defs\n"
    )
    (tmp_path / "mm.tc").write_text(MM)
    sizes = ("--sizes", "M=4,N=4,K=4")
    none = here("model", "predict", tmp_path / "mm.tc", *sizes, cache=tmp_path)
    assert none.stderr == "error: there is no model yet; train one with `tcl model train`\n"
    (tmp_path / "bad.json").write_text("{}")
    bad = ("--model", tmp_path / "bad.json")
    done = here("model", "predict", tmp_path / "mm.tc", *sizes, *bad, cache=tmp_path)
    assert done.stderr == (
        f"error: the model {tmp_path / 'bad.json'} is damaged: it does not say that it is a "
        "'tcl model 1'\n"
    )
