"""Where a piece of source stands: loops around it, and what is known there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tcl.codegen.loopir import ir


@dataclass(frozen=True, slots=True)
class CudaScope:
    """What is known at a place."""

    folds: Mapping[str, str]
    """Fold → the C++ expression of its offset; those of loops around this place."""
    dims: Mapping[str, str] = field(default_factory=dict)
    """Dimension → the variable of its value, once it has one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """``Let`` → its variable."""
    loaded: Mapping[ir.TensorRef, str] = field(default_factory=dict)
    """Element → the variable that it was read to."""

    def with_fold(self, fold: ir.Fold, text: str) -> CudaScope:
        return replace(self, folds={**self.folds, fold.name: text})

    def with_dim(self, dim: str, text: str) -> CudaScope:
        return replace(self, dims={**self.dims, dim: text})

    def with_variable(self, name: str, text: str) -> CudaScope:
        return replace(self, variables={**self.variables, name: text})

    def with_loaded(self, loaded: Mapping[ir.TensorRef, str]) -> CudaScope:
        return replace(self, loaded={**self.loaded, **loaded})
