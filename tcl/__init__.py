"""Tensor Comprehensions for today: index notation in, tuned kernels out.

    import numpy as np, tcl

    T = tcl.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }")
    C = T.mm(A, B)

Everything is loaded when it is first used, so ``import tcl`` takes very little time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcl import jax as jax
    from tcl import torch as torch
    from tcl.almost_equal import assert_almost_equal as assert_almost_equal
    from tcl.api import Definitions as Definitions
    from tcl.api import compile as compile
    from tcl.api import define as define
    from tcl.api import release_memory as release_memory
    from tcl.block_tuning.result import BlockTuningResult as BlockTuningResult
    from tcl.block_tuning.tuner import BlockTuner as BlockTuner
    from tcl.cached_options import MappingOptionsCache as MappingOptionsCache
    from tcl.cached_options import (
        make_load_from_cache_options_factory as make_load_from_cache_options_factory,
    )
    from tcl.codegen.options.options import MappingOptions as MappingOptions
    from tcl.common.errors import ArgumentError as ArgumentError
    from tcl.common.errors import CacheError as CacheError
    from tcl.common.errors import CompileError as CompileError
    from tcl.common.errors import OptionsError as OptionsError
    from tcl.common.errors import TclError as TclError
    from tcl.common.errors import TclWarning as TclWarning
    from tcl.einsums.einsum import einsum as einsum
    from tcl.einsums.einsum import from_einsum as from_einsum
    from tcl.einsums.einsum import tensordot as tensordot
    from tcl.einsums.einsum import transpose as transpose
    from tcl.executors.cuda_executor import CudaExecutor as CudaExecutor
    from tcl.executors.executor import Executor as Executor
    from tcl.gradients.grad import grad as grad
    from tcl.grammar.syntax.errors import RangeInferenceError as RangeInferenceError
    from tcl.grammar.syntax.errors import TclSemanticError as TclSemanticError
    from tcl.grammar.syntax.errors import TclSyntaxError as TclSyntaxError
    from tcl.options_factories import (
        make_autotuned_options_factory as make_autotuned_options_factory,
    )
    from tcl.options_factories import make_naive_options_factory as make_naive_options_factory
    from tcl.reference_call import reference as reference
    from tcl.tuner.config import SettingError as SettingError
    from tcl.tuner.config import TunerConfig as TunerConfig
    from tcl.tuning import Tuner as Tuner
    from tcl.tuning import autotune as autotune
    from tcl.tuning import autotune_and_compile as autotune_and_compile

__version__ = "0.1.0"

_HOMES = {
    "tcl.almost_equal": ("assert_almost_equal",),
    "tcl.api": ("Definitions", "compile", "define", "release_memory"),
    "tcl.block_tuning.result": ("BlockTuningResult",),
    "tcl.block_tuning.tuner": ("BlockTuner",),
    "tcl.cached_options": ("MappingOptionsCache", "make_load_from_cache_options_factory"),
    "tcl.einsums.einsum": ("einsum", "from_einsum", "tensordot", "transpose"),
    "tcl.executors.cuda_executor": ("CudaExecutor",),
    "tcl.executors.executor": ("Executor",),
    "tcl.common.errors": (
        *("ArgumentError", "CacheError", "CompileError", "OptionsError", "TclError", "TclWarning"),
    ),
    "tcl.codegen.options.options": ("MappingOptions",),
    "tcl.gradients.grad": ("grad",),
    "tcl.grammar.syntax.errors": (*("RangeInferenceError", "TclSemanticError", "TclSyntaxError"),),
    "tcl.reference_call": ("reference",),
    "tcl.tuner.config": ("SettingError", "TunerConfig"),
    "tcl.options_factories": ("make_autotuned_options_factory", "make_naive_options_factory"),
    "tcl.tuning": ("Tuner", "autotune", "autotune_and_compile"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

_PACKAGES = ("jax", "torch")
"""Those that are attributes without an import: ``tcl.jax.call``, ``tcl.torch.op``."""

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"tcl.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tcl' has no attribute {name!r}")
    from tcl.common.forks import whole

    with whole():  # a child forked meanwhile would wait for a half made module for ever
        value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_HOME})
