"""``tcl.einsum`` beside ``numpy.einsum(optimize=True)`` and ``torch.einsum``.

    python -m benchmarks.einsum

The expressions were chosen, with their sizes, before any of them was measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An expression, as people write it, with sizes that they write it for."""

    name: str
    expression: str
    shapes: tuple[tuple[int, ...], ...]


ROWS = (
    Row("attention scores", "bhqd,bhkd->bhqk", ((4, 8, 128, 64), (4, 8, 128, 64))),
    Row("attention scores, heads inside", "bqhd,bkhd->bhqk", ((2, 256, 8, 64), (2, 256, 8, 64))),
    Row("attention output", "bhqk,bhkd->bhqd", ((4, 8, 128, 128), (4, 8, 128, 64))),
    Row("projection into heads", "bsd,dhk->bshk", ((4, 128, 512), (512, 8, 64))),
    Row("batched products, small", "bij,bjk->bik", ((1000, 8, 8), (1000, 8, 8))),
    Row("batched products, ellipsis", "...ij,...jk->...ik", ((16, 4, 32, 32), (16, 4, 32, 32))),
    Row("linear layer, ellipsis", "...i,ij->...j", ((32, 100, 64), (64, 64))),
    Row("matrix product, tiny", "ij,jk->ik", ((4, 4), (4, 4))),
    Row("rotating points", "ij,nj->ni", ((3, 3), (1000, 3))),
    Row("bilinear layer", "bi,oij,bj->bo", ((128, 64), (32, 64, 64), (128, 64))),
    Row("quadratic form", "ni,ij,nj->n", ((2000, 64), (64, 64), (2000, 64))),
    Row("dot products of rows", "ij,ij->i", ((10000, 64), (10000, 64))),
    Row("outer products, batched", "bi,bj->bij", ((256, 64), (256, 64))),
    Row("trace of a product", "ij,ji->", ((512, 512), (512, 512))),
    Row("traces, batched", "bii->b", ((1000, 32, 32),)),
    Row("chain of matrices", "ij,jk,kl->il", ((256, 256), (256, 256), (256, 16))),
    Row("matrix product state", "ab,apc,bpd->cd", ((64, 64), (64, 2, 64), (64, 2, 64))),
    Row("Tucker", "abc,ia,jb,kc->ijk", ((16, 16, 16), (64, 16), (64, 16), (64, 16))),
    Row("MTTKRP", "ijk,jr,kr->ir", ((128, 128, 128), (128, 16), (128, 16))),
    Row("Khatri-Rao", "ir,jr->ijr", ((200, 32), (200, 32))),
)
