"""What a device is called, field by field, and look-ups that pass some of them over."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cpu_kernels import cache_key

import tcl
from tcl.arrays.arguments import Array
from tcl.codegen.devices import gpu, known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.executors.call_kernels import size
from tcl.tuner.cache.fingerprint import (
    FIELDS,
    NONE,
    device_identity,
    differing,
    fields,
    relaxed_fields,
    remoteness,
)
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.nearby import nearby
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
I7 = "Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz; 256-bit vectors; 8 cores; L2 256 KiB"
CHOICES = (
    "there are: model, architecture, vectors, matrix-unit, narrowing, multiprocessors, cores, l2, "
    "clock, threads"
)


def named(**values: str) -> dict[str, str]:
    """Fields: those given, ``_`` for ``-``, and nothing in the others."""
    found = dict.fromkeys(FIELDS, NONE) | {"threads": "1"}
    return found | {name.replace("_", "-"): value for name, value in values.items()}


def test_fields_of_identities() -> None:
    name = "Intel(R) Core(TM) i7-6700 CPU"
    cpu = named(model=name, vectors="256-bit", cores="8", l2="256 KiB", clock="3.40GHz")
    assert fields(I7) == cpu
    assert fields(f"{I7}; matrix unit; 6 threads") == cpu | {"matrix-unit": "yes", "threads": "6"}
    narrowed = I7.replace("GHz", "GHz, narrowed to -avx512f, Haswell")
    assert fields(narrowed) == cpu | {"narrowing": "-avx512f, Haswell"}
    assert fields("NVIDIA H200; sm_90a; 132 multiprocessors, emulated") == named(
        model="NVIDIA H200, emulated", architecture="sm_90a", multiprocessors="132"
    )
    for unknown in ("", "a cpu", "x; y; z", "\n; 256-bit vectors; many cores; L2 1 KiB"):
        assert fields(unknown) == named(model=unknown)


@pytest.mark.parametrize("profile", [*known_cpus.PROFILES, *gpu.PROFILES], ids=lambda p: p.name)
def test_identities_that_we_write_are_read_in_full(profile: gpu.GpuProfile) -> None:
    found = fields(device_identity(profile))
    kind = {"cores", "l2", "vectors"} if hasattr(profile, "cores") else {"architecture"}
    assert kind <= {name for name, value in found.items() if value != NONE}
    assert ";" not in found["model"]


def test_what_differs_and_how_far_apart() -> None:
    faster, wider = I7.replace("3.40", "4.00"), I7.replace("8 cores", "64 cores")
    assert differing(I7, I7) == ()
    assert differing(I7, faster) == ("clock",)
    assert differing(I7, f"{wider}; 64 threads") == ("cores", "threads")
    others = [
        I7,
        I7.replace("3.40", "3.80"),
        faster,
        I7.replace("8 cores", "16 cores"),
        wider,
        I7.replace("i7", "i9"),
        wider.replace("3.40", "4.00"),
    ]
    assert sorted(reversed(others), key=lambda other: remoteness(I7, other)) == others


def test_relaxed_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCL_RELAX", raising=False)
    assert relaxed_fields(None) == frozenset()
    assert (
        relaxed_fields(" clock , cores")
        == relaxed_fields(["cores", "clock"])
        == {
            "clock",
            "cores",
        }
    )
    monkeypatch.setenv("TCL_RELAX", "l2,threads")
    assert relaxed_fields(None) == {"l2", "threads"}
    assert relaxed_fields(()) == relaxed_fields("") == frozenset()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("clok", f"relax=: a device has no field 'clok'; did you mean clock? {CHOICES}"),
        (["cores", "colour"], f"relax=: a device has no field 'colour'; {CHOICES}"),
        ("clock,,l2", f"relax=: a device has no field ''; {CHOICES}"),
        ([3], f"relax=: a device has no field 3; {CHOICES}"),
        (3, "relax= takes names of fields, as in ('clock', 'cores'), not int"),
        (b"l2", "relax= takes names of fields, as in ('clock', 'cores'), not bytes"),
        ({"l2": 1}, "relax= takes names of fields, as in ('clock', 'cores'), not dict"),
    ],
)
def test_unknown_fields_are_refused(given: object, message: str) -> None:
    """As ``ValueError``, and as an error of ours."""
    for kind in (ValueError, tcl.ArgumentError):
        with pytest.raises(kind) as caught:
            tcl.define(MM, relax=given)  # type: ignore[arg-type]
        assert str(caught.value) == message
    with pytest.raises(ValueError, match=re.escape(message)):
        tcl.make_load_from_cache_options_factory("x.db", relax=given)  # type: ignore[arg-type]


def test_an_unknown_field_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_RELAX", "clock,Cores")
    with pytest.raises(
        ValueError,
        match=r"^TCL_RELAX: a device has no field 'Cores'; did you mean cores\? there are: ",
    ):
        tcl.define(MM)
    tcl.define(MM, "naive")  # nothing is looked up


KEY = CacheKey("def mm", "cpu", (ArrayLayout((64,), (4,), "float32"),), I7, "14")


def correct(time: float) -> Outcome:
    return Outcome(Verdict.CORRECT, (time,))


def test_nearby_on_devices_that_differ_in_relaxed_fields_alone(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    sizes = replace(KEY, inputs=(ArrayLayout((128,), (4,), "float32"),))
    for options, change in {
        "clock": {"3.40": "3.60"},
        "far clock": {"3.40": "5.00"},
        "cores": {"8 cores": "16 cores"},
        "both": {"3.40": "3.60", "8 cores": "16 cores"},
        "model": {"6700": "7700"},
    }.items():
        device = I7
        for words, others in change.items():
            device = device.replace(words, others)
        cache.store(replace(KEY, device=device), options, correct(1.0), run="r")
        cache.store(replace(sizes, device=device), f"sizes {options}", correct(1.0), run="r")
    cache.store(sizes, "sizes", correct(1.0), run="r")

    def found(relax: str, *, sizes: bool = False) -> list[str]:
        names = relaxed_fields(relax)
        return [n.record.options for n in nearby(cache, KEY, sizes=sizes, relax=names)]

    assert found("") == []
    assert found("clock") == ["clock", "far clock"]
    assert found("cores") == ["cores"]
    assert found("clock,cores") == ["clock", "far clock", "cores", "both"]
    assert found("l2,threads,vectors,narrowing") == []
    assert found("", sizes=True) == ["sizes"]
    assert found("cores", sizes=True) == ["cores", "sizes", "sizes cores"]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningCache:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TCL_RELAX", raising=False)
    return TuningCache(default_path())


A, B = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
SIZED = size(tcl.define(MM).definition("mm"), (A, B))
FITS = tcl.MappingOptions("naive").tile(8, 8, 8)
OTHER = tcl.MappingOptions("naive").tile(4, 4, 4)
REFUSED = tcl.MappingOptions("naive").nest(1).tile(4)
"""For a nest that the def has not."""
SAID = (
    r"mm was not tuned on this device for float32\[16,16\] float32\[16,16\]; options that were "
    rf"measured on another device \(cores 4096 instead of {host_cpu().cores}\) are used, because "
    "relax allows it"
)


def elsewhere(cores: int = 4096) -> CacheKey:
    """The key of the product on a machine with so many cores."""
    key = cache_key(SIZED, (A, B))
    here = f"; {host_cpu().cores} cores;"
    assert here in key.device
    return replace(key, device=key.device.replace(here, f"; {cores} cores;"))


def options_of(function: tcl.Definitions, *arrays: Array) -> tcl.MappingOptions:
    return function.executor("mm", arrays or (A, B))[0].options


def test_another_devices_options_are_used_when_asked_and_never_silently(
    own_cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.store(elsewhere(), FITS.to_json(), correct(1e-6), run="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert options_of(tcl.define(MM, threads=1)) != FITS
        assert options_of(tcl.define(MM, threads=1, relax="clock,l2")) != FITS
    function = tcl.define(MM, threads=1, relax=("cores",))
    for each in (function, pickle.loads(pickle.dumps(function))):
        with pytest.warns(tcl.TclWarning, match=f"^{SAID}$"):
            assert options_of(each) == FITS
    with pytest.warns(tcl.TclWarning, match=SAID):
        compiled = tcl.compile(MM, "mm", None, A, B, threads=1, relax="cores")
    assert compiled.options == FITS
    np.testing.assert_allclose(compiled(A, B), A @ B)
    monkeypatch.setenv("TCL_RELAX", "cores")
    with pytest.warns(tcl.TclWarning, match=SAID):
        assert options_of(tcl.define(MM, threads=1)) == FITS
    own_cache.store(cache_key(SIZED, (A, B)), OTHER.to_json(), correct(1.0), run="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert options_of(tcl.define(MM, threads=1)) == OTHER  # this device's own come first


def test_the_nearest_device_whose_options_apply(own_cache: TuningCache) -> None:
    for cores, options in ((4096, FITS), (100_000, OTHER), (2048, REFUSED)):
        own_cache.store(elsewhere(cores), options.to_json(), correct(1.0), run="r")
    with pytest.warns(tcl.TclWarning, match=SAID):
        assert options_of(tcl.define(MM, threads=1, relax="cores")) == FITS


def test_what_replaces_ones_own_options_is_said_to_be_anothers(own_cache: TuningCache) -> None:
    own_cache.store(cache_key(SIZED, (A, B)), REFUSED.to_json(), correct(1.0), run="r")
    own_cache.store(elsewhere(), FITS.to_json(), correct(1.0), run="r")
    said = (
        r"rank 1 for float32\[16,16\] float32\[16,16\], measured on another device \(cores 4096 "
        rf"instead of {host_cpu().cores}\), is used$"
    )
    with pytest.warns(tcl.TclWarning, match=said):
        executor = tcl.compile(MM, "mm", None, A, B, threads=1, relax="cores")
    assert executor.options == FITS


def test_a_cache_of_ones_own(own_cache: TuningCache, tmp_path: Path) -> None:
    path = tmp_path / "shipped.db"
    TuningCache(path).store(elsewhere(), FITS.to_json(), correct(1e-6), run="r", entry="mm")
    strict = tcl.make_load_from_cache_options_factory(path, threads=1)
    call = rf"make_load_from_cache_options_factory\('{path}', relax='cores'\)"
    with pytest.warns(tcl.TclWarning, match=rf"\(what differs: cores\)\); to use its .*{call}"):
        tcl.define(MM, strict, threads=1).mm(A, B)
    factory = tcl.make_load_from_cache_options_factory(path, threads=1, relax="cores")
    with pytest.warns(tcl.TclWarning, match=SAID):
        assert options_of(tcl.define(MM, factory, threads=1)) == FITS
    cache = tcl.MappingOptionsCache(path)
    assert cache.load(MM, "mm", (A, B), threads=1) == []
    for winners in (False, True):
        with pytest.warns(tcl.TclWarning, match=SAID):
            found = cache.load(MM, "mm", (A, B), threads=1, relax=["cores"], winners=winners)
        assert found == [FITS]


def test_relax_is_honoured_or_refused() -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(MM, "naive", relax="cores")
    assert str(caught.value) == (
        "relax= is for the user's own tuning cache, and options were given; for a cache of yours: "
        'tcl.make_load_from_cache_options_factory("my.db", relax=...)'
    )
