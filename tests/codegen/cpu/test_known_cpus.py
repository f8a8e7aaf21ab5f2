"""Profiles of CPUs that are not here, and this one without some of its features."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import nests
import pytest

from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.devices import features
from tcl.codegen.devices.cpu import VARIABLE, CpuProfile, host_cpu, narrowed
from tcl.codegen.devices.gpu import H200
from tcl.codegen.devices.known_cpus import PROFILES, find
from tcl.codegen.devices.named import device_named
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.common.errors import ArgumentError
from tcl.tuner.cache.fingerprint import device_identity

TITLES = [p.title for p in PROFILES]
HASWELL, ZEN4, GRAVITON3 = (device_named(n) for n in ("haswell", "zen 4", "graviton3"))


@pytest.mark.parametrize("profile", PROFILES, ids=TITLES)
def test_each_is_found_and_compiled_for(
    profile: CpuProfile, capfd: pytest.CaptureFixture[str]
) -> None:
    assert find(profile.title) is find(profile.title.lower().replace(" ", "-")) is profile
    assert find(profile.name) is not None
    lanes = profile.vector_bits // 32
    type_ = f"<{lanes} x float>"
    text = f"define {type_} @f({type_} %x) {{\n  %y = fadd {type_} %x, %x\n  ret {type_} %y\n}}\n"
    assert compile_object(text, profile)
    assert capfd.readouterr().err == "", "LLVM knows all of its features"
    assert profile.present >= features.BASELINE[profile.architecture]
    assert profile.l1_bytes < profile.l2_bytes


# GCC's macro for a feature, where the name does not say it.
_MACROS = {"sahf": "LAHF_SAHF"}
_WITHOUT_MACRO = {*features.BASELINE["x86_64"], "adx", "crc32", "cx16"}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs GCC's tables of processors")
@pytest.mark.parametrize(
    "profile", [p for p in PROFILES if p.architecture == "x86_64"], ids=lambda p: p.title
)
def test_features_are_those_that_gcc_knows(profile: CpuProfile) -> None:
    found = subprocess.run(
        ["gcc", f"-march={profile.name}", "-dM", "-E", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        pytest.skip(f"this GCC does not know {profile.name}, or is for another architecture")
    defined = set(re.findall(r"__(\w+?)__ ", found.stdout))
    for feature in profile.present - _WITHOUT_MACRO:
        macro = _MACROS.get(feature, re.sub(r"[.-]", "_", feature).upper())
        assert macro in defined, feature
    vectors = ("AVX", "AMX", "FMA", "F16C", "SSE")
    # Sapphire Rapids has no VP2INTERSECT, whatever GCC says.
    left = {m for m in defined if m.startswith(vectors) and not m.endswith("_MATH")}
    left -= {re.sub(r"[.-]", "_", f).upper() for f in profile.present} | {"AVX512VP2INTERSECT"}
    assert not {m for m in left if not m.startswith(("AVX10", "EVEX"))}


def test_what_follows_from_features() -> None:
    v1, v2, v3, v4 = (device_named(f"x86-64{level}") for level in ("", "-v2", "_v3", " v4"))
    for device in (v1, v2, v3, v4, GRAVITON3):
        assert isinstance(device, CpuProfile)
        said = (
            *(device.vector_bits, device.vector_registers),
            *(device.fused, device.rounds, device.converts_half),
        )
        wanted = {
            "x86-64": (128, 16, False, False, False),
            "x86-64-v2": (128, 16, False, True, False),
            "x86-64-v3": (256, 16, True, True, True),
            "x86-64-v4": (512, 32, True, True, True),
            "Graviton3": (128, 32, True, True, True),
        }
        assert said == wanted[device.title]


def test_names_of_no_device() -> None:
    assert device_named("h200") is H200
    for name, near in (("znver6", "Zen"), ("haswel", "Haswell"), ("h300", "H"), ("abacus", "")):
        with pytest.raises(ArgumentError, match=f"there is no device profile {name}; ") as error:
            device_named(name)
        assert (f"did you mean {near}" in str(error.value)) == bool(near)


def test_narrowed() -> None:
    assert isinstance(ZEN4, CpuProfile) and isinstance(HASWELL, CpuProfile)
    as_haswell = narrowed(ZEN4, "haswell")
    assert as_haswell.vector_bits == 256 and as_haswell.vector_registers == 16
    assert as_haswell.present == HASWELL.present
    assert device_identity(as_haswell) != device_identity(ZEN4)
    # What needs a feature goes with it.
    plain = narrowed(ZEN4, " -avx ,-avx512vnni")
    assert plain.vector_bits == 128 and not plain.fused and plain.rounds
    assert not {"avx", "avx2", "fma", "f16c", "avx512f", "vaes"} & plain.present
    assert plain.title == "Zen 4, narrowed to -avx, -avx512vnni"
    assert narrowed(ZEN4, "x86-64-v3,-fma") == narrowed(ZEN4, "-fma, x86-64-v3")
    assert narrowed(ZEN4, "zen 3") == narrowed(ZEN4, "Zen3") == narrowed(ZEN4, "znver3")
    # What is not there can be left out.
    assert narrowed(HASWELL, "-avx512f,zen 4") == HASWELL


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("-avx3", "no x86_64 processor has a feature 'avx3'; did you mean -avx?"),
        ("+avx2", "takes features to turn off, as in -avx512f, and names of processors"),
        ("avx2", "not 'avx2'"),
        ("haswell;-fma", "not 'haswell;-fma'"),
        ("haswell,", "not ''"),
        ("-", "no x86_64 processor has a feature ''"),
        ("-sse2", "kernels for x86_64 need sse2"),
        ("graviton3", "Graviton3 is aarch64, but this machine is x86_64"),
        ("-neon", "no x86_64 processor has a feature 'neon'"),
    ],
)
def test_what_the_variable_cannot_say(text: str, sentence: str) -> None:
    assert isinstance(ZEN4, CpuProfile)
    with pytest.raises(ArgumentError) as error:
        narrowed(ZEN4, text)
    assert str(error.value).startswith(VARIABLE) and sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_the_variable_narrows_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = host_cpu()
    if whole.architecture not in features.BASELINE:
        pytest.skip("no features are known of this architecture")
    least = {"x86_64": "x86-64", "aarch64": "AArch64"}[whole.architecture]
    monkeypatch.setenv(VARIABLE, f" {least} ")
    baseline = features.BASELINE[whole.architecture]
    assert host_cpu().present == baseline & whole.present
    assert host_cpu().vector_bits == 128
    monkeypatch.setenv(VARIABLE, "")
    assert host_cpu() is whole
    monkeypatch.setenv(VARIABLE, "-much")
    with pytest.raises(ValueError, match="has a feature 'much'"):
        host_cpu()


def test_features_that_linux_tells_on_aarch64() -> None:
    text = (
        "processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 "
        "crc32 atomics fphp asimdhp cpuid asimdrdm asimddp sve bf16 i8mm\nCPU implementer\t: 0x41\n"
    )
    found = features.of_hwcaps(text)
    assert found == {"bf16", "dotprod", "fullfp16", "i8mm", "rdm", "sve"}
    assert features.of_hwcaps(text.replace(" asimdhp", "")) == found - {"fullfp16"}
    assert features.of_hwcaps("") == frozenset()


def test_threads_are_no_part_of_the_machine() -> None:
    assert isinstance(HASWELL, CpuProfile)
    two = replace(HASWELL, threads=2)
    assert device_identity(two) == f"{device_identity(HASWELL)}; 2 threads"


def test_results_are_streamed_where_cores_read_what_they_overwrite() -> None:
    sized = nests.sized("float(M, N) X) -> (Y) { Y(m, n) = 2 * X(m, n) }", (8192, 8192))
    for name, streamed in (("skylake-sp", True), ("x86-64", True), ("graviton3", False)):
        device = device_named(name)
        assert isinstance(device, CpuProfile)
        (chosen,) = plan(sized, MappingOptions("mlp"), device).options.values()
        assert bool(chosen.stream) == streamed, name


@pytest.mark.parametrize("feature", ["avx512bw", "avx512dq", "avx512vl"])
def test_what_all_processors_have_together_goes_together(feature: str) -> None:
    """LLVM aborts for comparisons of float16 where one of the three is missing."""
    device = find("Sapphire Rapids")
    assert device is not None
    left = narrowed(device, f"-{feature}").present
    assert not {"avx512bw", "avx512dq", "avx512vl", "avx512fp16", "avx512vnni"} & left
    assert "avx512f" in left


def test_what_needs_a_missing_feature_is_missing_too() -> None:
    """As it is for LLVM, which would call functions that nobody has for float16 otherwise."""
    device = find("Sapphire Rapids")
    assert device is not None
    device = replace(device, features=device.features.replace("+f16c", "-f16c"))
    assert not device.converts_half
    assert not {"avx512f", "avx512fp16"} & device.present
