"""``tcl.einsum`` beside NumPy's."""

from __future__ import annotations

import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import opt_einsum
import pytest
from sampling import sampled, swept

import tcl
from tcl.einsums import einsum as room
from tcl.einsums.notation import read_letters, with_shapes
from tcl.einsums.order import steps_of

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = dict(zip("abcdefghij", (2, 3, 4, 5, 4, 3, 2, 6, 5, 4), strict=True))
EXPRESSIONS = """
a,ab,abc->abc  a,b,ab->ab
ea,fb,gc,hd,abcd->efgh  ea,fb,abcd,gc,hd->efgh  abcd,ea,fb,gc,hd->efgh
acdf,jbje,gihb,hfac,gfac,gifabc,hfac  cd,bdhe,aidb,hgca,gc,hgibcd,hgac  abhe,hidj,jgba,hiab,gab
bde,cdh,agdb,hica,ibd,hgicd,hiac  chd,bde,agbc,hiad,hgc,hgi,hiad  chd,bde,agbc,hiad,bdi,cgh,agdb
bdhe,acad,hiab,agac,hibd
ab,ab,c->  ab,ab,c->c  ab,ab,cd,cd->  ab,ab,cd,cd->ac  ab,ab,cd,cd->cd  ab,ab,cd,cd,ef,ef->
ab,cd,ef->abcdef  ab,cd,ef->acdf  ab,cd,de->abcde  ab,cd,de->be  ab,bcd,cd->abcd  ab,bcd,cd->abd
eb,cb,fb->cef  dd,fb,be,cdb->cef  bca,cdb,dbf,afc->  dcc,fce,ea,dbf->ab  fdf,cdd,ccd,afe->ae
abcd,ad  ed,fcd,ff,bcf->be  baa,dcf,af,cde->be  bd,db,eac->ace  fff,fae,bef,def->abd
efc,dbc,acf,fd->abe  ba,ac,da->bcd
ab,ab  ab,ba  abc,abc  abc,bac  abc,cba
aab,fa,df,ecc->bde  ecb,fef,bad,ed->ac  bcf,bbb,fbf,fc->  bb,ff,be->e  bcb,bb,fc,fff->
fbb,dfd,fc,fc->  afd,ba,cc,dc->bf  adb,bc,fa,cfc->d  bbd,bda,fc,db->acf  dba,ead,cad->bce
aef,fbc,dca->bde
ab  ba  ab->  ab->a  aa  aa->a  abb->ba  aaa->a  aab->b  abc->cab  abab->  aabb->ab
a,a  a,b  ab,b  ab,bc  ab,bc,cd  abc,bad->cd  ,a->  a,->a  ,  cab,cdd->ab  a,a,a->a  a,a,a,a->
""".split()
"""Those of NumPy's own tests of einsum, with ``SIZES`` as there."""

BROADCAST: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("...", ((2, 3),)),
    ("...i->...", ((2, 3, 4),)),
    ("i...->...", ((2, 3, 4),)),
    ("...ii->...i", ((2, 3, 3),)),
    ("ii...->...i", ((3, 3, 2),)),
    ("i...i->i...", ((3, 2, 3),)),
    ("..., ...", ((3, 4), (2, 3, 4))),
    ("...i, ...i", ((2, 3, 4), (4,))),
    ("i..., i...", ((4, 3, 2), (4,))),
    ("ij...,j...->i...", ((1, 2), (2, 2, 1))),
    ("ij...,...j->ij...", ((2, 3, 4), (3,))),
    ("...k,kj", ((4, 3), (3, 2))),
    ("...kl,k...", ((2, 3, 4, 5), (4,))),
    ("...lmn,lmno->...o", ((1, 1, 1, 4, 5, 6), (4, 5, 6, 3))),
    ("...ij,...jk->...ik", ((1, 5), (5, 5))),
    ("...ij,...jk->...ik", ((2, 1, 3, 4), (5, 4, 2))),
    ("ij,ij->j", ((10, 2), (1, 2))),
    ("i,i", ((2,), (1,))),
    ("ijk,kl,jl", ((1, 5, 4), (4, 6), (5, 6))),
    ("ijk,kl,jl,i->i", ((1, 5, 4), (4, 6), (5, 6), (10,))),
    ("abjk,kl,jl,ab->ab", ((1, 1, 5, 4), (4, 6), (5, 6), (7, 7))),
    ("obk,ijk->ioj", ((2, 4, 8), (2, 4, 8))),
    ("bbcdc->d", ((1, 1, 3, 1, 3),)),
    ("ijp,ipq,ikq->ijk", ((3, 1, 1), (3, 1, 3), (1, 3, 3))),
    ("baegffahgc,hdggeff->dhg", ((2, 1, 4, 1, 1, 1, 1, 2, 1, 1), (1, 1, 1, 1, 4, 1, 1))),
    ("gah,cdbcghefg->ef", ((2, 3, 1), (1, 3, 1, 1, 1, 2, 1, 4, 1))),
    ("cacc,bcb->", ((1, 1, 1, 1), (1, 4, 1))),
    ("ab,bc->ac", ((2, 0), (0, 3))),
    ("ab,bc->ac", ((0, 2), (2, 3))),
    ("a,ab->b", ((1,), (0, 3))),
]


def rand(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random(shape)


def operands_of(expression: str) -> list[Array]:
    terms = expression.split("->")[0].split(",")
    return [rand(*(SIZES[c] for c in term), seed=n) for n, term in enumerate(terms)]


def check(expression: Any, *operands: Any, **options: Any) -> None:
    """Ours is NumPy's: values, type and shape."""
    expected = np.asarray(np.einsum(expression, *operands, **options))
    result = tcl.einsum(expression, *operands, **options)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12 if result.dtype == "d" else 1e-5)


# --- the notation ---


@pytest.mark.parametrize("expression", sampled(EXPRESSIONS, 3))
def test_expressions_of_numpys_tests(expression: str) -> None:
    check(expression, *operands_of(expression))


@pytest.mark.parametrize(("expression", "shapes"), BROADCAST)
def test_ellipses_and_extents_of_1(expression: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    check(expression, *(rand(*shape, seed=n) for n, shape in enumerate(shapes)))


def test_numbers_for_letters() -> None:
    a, b = rand(2, 3), rand(3, 4)
    check(a, [0, 1], b, [1, 2], [0, 2])
    check(a, [1, 0], b, [0, 2])
    check(a, [0, 20], b, [20, 2], [0, 2])
    check(a, [0, 51], b, [51, 26])
    check(a, [Ellipsis, 0], b.T[1:3].T, [0, Ellipsis], [Ellipsis])
    check(rand(3, 3), np.asarray([0, 0]))
    check(rand(2, 3), range(2), [1, 0])


def test_spaces_mean_nothing() -> None:
    a = rand(2, 3, 3)
    for text in ("...aa->...a", " ... a a ->  ...a", "...aa -> ... a"):
        np.testing.assert_array_equal(tcl.einsum(text, a), np.einsum("...aa->...a", a))


def test_implicit_outputs_are_in_the_order_of_the_alphabet() -> None:
    check("bA,Ca", rand(2, 3), rand(4, 5))
    check("iJ,Ij", rand(2, 3), rand(4, 5))
    check("zy", rand(2, 3))


def test_what_is_no_array() -> None:
    check("...i,...i", [1, 2, 3], [2, 3, 4])
    check(",i->", 3, rand(4))
    check("i,->i", np.arange(4, dtype=np.float32), 2.5)
    check("i,->i", np.arange(4, dtype=np.int8), np.int8(3))
    check("..., ...", 3, 4)
    check("", True)
    check("i,j", [1], [2], out=None)


def test_a_result_without_dimensions_is_a_number() -> None:
    for _ in range(2):
        assert type(tcl.einsum("i,i", rand(5), rand(5))) is np.float64
    out = np.array(0.0)
    assert tcl.einsum("i,i->", np.ones(7), np.ones(7), out=out) is out
    assert out == 7


# --- types ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("?", "?"), ("?", "i1"), ("i1", "i1"), ("u1", "i1"), ("u4", "i1"), ("u8", "i8")),
        *(("f2", "f2"), ("f2", "f4"), ("i2", "f2"), ("i4", "f4"), ("i1", "f4"), ("f4", "f8")),
    ],
)
def test_types_are_promoted_as_numpy_does(one: str, other: str) -> None:
    a = np.random.default_rng(1).integers(-128, 127, (6, 40)).astype(one)
    b = np.random.default_rng(2).integers(-128, 127, (40, 5)).astype(other)
    if one == "f2":
        a, b = a % 4, b % 4
    check("ij,jk->ik", a, b)
    check("ij,jk->ijk", a, b)
    if one != "f2":  # NumPy rounds on the way
        check("ij,jk->", a, b)


def test_bfloat16() -> None:
    a = rand(4, 8).astype(ml_dtypes.bfloat16)
    found = tcl.einsum("ij,kj->ik", a, a)
    assert found.dtype == ml_dtypes.bfloat16
    expected = a.astype(np.float32) @ a.astype(np.float32).T
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=1e-2)


def test_sums_of_float16_are_rounded_once() -> None:
    """NumPy rounds where its inner loop ends, and so loses what is small beside the sum."""
    a = np.ones((3, 4096), np.float16)
    a[:, 0] = 0.5
    assert tcl.einsum("ij->", a) == np.float16(3 * 4095.5)


def test_intermediate_results_of_float16_do_not_overflow() -> None:
    a, b, c = np.full((64, 64), 60, "e"), np.full((64, 64), 60, "e"), np.full((64, 64), 1e-4, "e")
    assert len(steps("ij,jk,kl->il", *[(64, 64)] * 3)) == 2
    found = tcl.einsum("ij,jk,kl", a, b, c)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, a.astype("f") @ b @ c, rtol=1e-3)


def test_dtype_and_casting() -> None:
    a, b = rand(3, 4), rand(4, 5)
    check("ij,jk", a, b, dtype="f4", casting="same_kind")
    check("ij,jk", a * 9, b * 9, dtype=np.int32, casting="unsafe")
    check("ij->i", a.astype("f4"), dtype="f8")
    kinds = [np.array([1, 3, 0, 12]), np.array([0, 0.5, 2.0, 3.5]), np.array([True] * 3 + [False])]
    check("i,i,i->i", *kinds, dtype="?", casting="unsafe")


def test_out_is_written_and_returned() -> None:
    a, b = rand(3, 4), rand(4, 5)
    wide = np.zeros((3, 10))
    for out in (np.empty((3, 5)), wide[:, ::2], np.empty((5, 3)).T, np.empty((3, 5), order="F")):
        for _ in range(3):
            out[:] = -1
            assert tcl.einsum("ij,jk", a, b, out=out) is out
            np.testing.assert_allclose(out, a @ b)
    assert (wide[:, 1::2] == 0).all()
    narrow = np.empty((3, 5), np.float32)
    assert tcl.einsum("ij,jk", a, b, out=narrow, casting="same_kind") is narrow
    np.testing.assert_allclose(narrow, a @ b, rtol=1e-6)


def test_out_takes_part_in_the_promotion() -> None:
    """As in ``numpy.einsum`` where nothing is optimised."""
    a = np.full(5, 100, np.int8)
    for _ in range(2):
        assert tcl.einsum("i->", a) == np.int8(-12)
        out = np.zeros((), np.int64)
        tcl.einsum("i->", a, out=out)
        assert out == 500
    whole = np.zeros(2, np.uint8)
    a, b = np.array([[1.0, 300.0], [2.0, -1.0]]), np.array([2.0, 3.0])
    tcl.einsum("ij,j", a, b, out=whole, dtype="f8", casting="unsafe")
    np.testing.assert_array_equal(whole, (a @ b).astype(np.int64).astype(np.uint8))  # wraps


def test_out_of_several_steps() -> None:
    a, b, c = rand(60, 60), rand(60, 60), rand(60, 60)
    out = np.empty((60, 60))
    for _ in range(3):
        assert tcl.einsum("ij,jk,kl", a, b, c, out=out) is out
        np.testing.assert_allclose(out, a @ b @ c)
    with pytest.raises(tcl.ArgumentError, match=r"shape \(60, 60\), but an array of \(1, 60, 60\)"):
        tcl.einsum("ij,jk,kl", a, b, c, out=np.empty((1, 60, 60)))
    with pytest.raises(tcl.ArgumentError, match="overlaps input 'A' in memory"):
        tcl.einsum("ij,jk,kl", a, b, c, out=a)


def test_order() -> None:
    a, b = rand(3, 4), rand(4, 5)
    for order, columns in (("C", False), ("K", False), ("f", True), ("A", False), (None, False)):
        found = tcl.einsum("ij,jk", a, b, order=order)
        assert found.flags.f_contiguous == columns
        np.testing.assert_allclose(found, a @ b)
    assert tcl.einsum("ij,jk", a.T.copy().T, b.T.copy().T, order="A").flags.f_contiguous


# --- what is refused ---

A34, B45 = np.ones((3, 4)), np.ones((4, 5))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "einsum takes its subscripts as a string"),
        (("",), "there are subscripts for 1 operand, but 0 operands were given"),
        ((0, 0), "the subscripts of operand 0 have to be a list of numbers, not int"),
        (("ij,jk", A34), "there are subscripts for 2 operands, but 1 operand was given"),
        (("ij,jk->iz", A34, B45), "the output has the index 'z', but no operand has it"),
        (("ij,jk->iik", A34, B45), "the output has the index 'i' 2 times"),
        (("ij,j%->i", A34, B45), "operand 1 has '%' at position 4"),
        (("ij,jk->ik->a", A34, B45), "there is a second '->' at position 9"),
        (("i..j", A34), "operand 0 has a single '.' at position 1 instead of '...'"),
        (("...i...", A34), "operand 0 has a second '...' at position 4"),
        (("j->..j", A34), "the output has a single '.' at position 3"),
        (("i", A34), "operand 0 has 2 dimensions, but its subscripts 'i' are for 1; write '...'"),
        (("...ijk", A34), "its subscripts '...ijk' are for at least 3"),
        (("...j->j", A34), "'...' means 1 dimension, which the output does not have"),
        (("ii", A34), "index 'i' on dimensions of extents 3 and 4"),
        (("ij,ij", A34, B45), "index 'i' has extent 3 in operand 0, but 4 in operand 1"),
        (("...,...", A34, B45), "dimension 0 of '...' has extent 3 in operand 0, but 4"),
        (("ij", A34 * 1j), "operand 0 is complex128; complex numbers are not supported"),
        (("i", np.array([None])), "operand 0 is object, which is not supported"),
        (("ij", A34.astype(">f8")), "foreign byte order"),
        (("i", None), "operand 0 has to be an array or a number, not None"),
        (("i", [1, [2, 3]]), "operand 0 is a list whose parts have different lengths"),
        ((A34, [0, 52]), "operand 0 has 52 in its subscripts; they must be from 0 to 51"),
        ((A34, [-1, 5]), "operand 0 has -1 in its subscripts"),
        ((A34, [0, "j"]), "operand 0 has 'j' in its subscripts"),
        ((A34, [Ellipsis, Ellipsis]), "operand 0 has a second Ellipsis"),
        ((A34, [0, 1], [0, 9]), "the output has the index 'J', but no operand has it"),
    ],
)
def test_expressions_that_are_refused(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.einsum(*arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"optimize": "fast"}, "optimize has to be True, False, 'greedy'"),
        ({"optimize": 7}, "optimize has to be"),
        ({"optimize": [(0, 5)]}, "step 0 of the path takes (0, 5), which are not positions"),
        ({"optimize": [(0, 0)]}, "step 0 of the path takes (0, 0)"),
        ({"optimize": ["einsum_path", (0,)]}, "the path leaves 2 operands"),
        ({"optimize": ["einsum_path", 3]}, "a step of a path is a tuple"),
        ({"out": "x"}, "out= has to be an array, not str"),
        ({"out": np.ones((3, 4))}, "has shape (3, 5), but an array of (3, 4) was given"),
        ({"out": np.ones((3, 5), np.float32)}, "the result is float64, which casting='safe'"),
        ({"dtype": "bad"}, "dtype= has to be a type of elements, not 'bad'"),
        (
            {"dtype": np.float32},
            "operand 0 is float64, which casting='safe' does not allow to cast",
        ),
        ({"dtype": complex}, "dtype= is complex128; complex numbers are not supported"),
        ({"casting": "blah"}, "casting has to be one of 'no', 'equiv'"),
        ({"order": "W"}, "order has to be 'C', 'F', 'A' or 'K', not 'W'"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.einsum("ij,jk", A34, B45, **options)
    assert sentence in str(caught.value)


# --- arrays of other libraries ---


@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_other_libraries(kind: str) -> None:
    module = pytest.importorskip({"torch": "torch", "jax": "jax.numpy"}[kind])
    given = [rand(*shape).astype("f") for shape in ((2, 3, 4), (4, 5), (5, 6))]
    expected = np.einsum("...ij,jk,kl->...il", *given)
    operands = [module.asarray(each) for each in given]
    for _ in range(2):
        found = tcl.einsum("...ij,jk,kl->...il", *operands)
        assert type(found) is type(operands[0])
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
        total = tcl.einsum("jk->", operands[1])
        assert type(total) is type(operands[0]) and total.shape == ()
    found = opt_einsum.contract("aij,jk,kl->lai", *operands, backend="tcl")
    np.testing.assert_allclose(np.asarray(found), expected.transpose(2, 0, 1), rtol=1e-5)
    with pytest.raises(tcl.ArgumentError, match="pass arrays of one library"):
        tcl.einsum("ij,jk", operands[1], given[2])
    with pytest.raises(tcl.ArgumentError, match="order='F' is for NumPy arrays"):
        tcl.einsum("jk->kj", operands[1], order="F")


def test_torchs_types_and_outputs() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    assert tcl.einsum("ij,jk", a, b, dtype=torch.float64).dtype == torch.float64
    assert tcl.einsum("ij,jk", a.bfloat16(), b).dtype == torch.float32
    assert tcl.einsum(",ij->ij", True, a).dtype == torch.float32
    for out in (torch.empty(3, 5), torch.empty(5, 3).T):
        assert tcl.einsum("ij,jk", a, b, out=out) is out
        torch.testing.assert_close(out, a @ b)
    with pytest.raises(tcl.ArgumentError, match="operand 0 is complex64"):
        tcl.einsum("ij->", a * 1j)


# --- the order of contractions ---


def steps(expression: str, *shapes: tuple[int, ...], optimize: Any = True) -> list[str]:
    """Each step as an expression."""
    indexed = with_shapes(read_letters(expression), shapes)
    terms = ["".join(t or "." for t in term) for term in indexed.terms]
    found = []
    for step in steps_of(indexed, optimize):
        terms.append("".join(step.gives))
        found.append(f"{','.join(terms[n] for n in step.takes)}->{terms[-1]}")
    return found


def test_small_expressions_are_one_statement() -> None:
    assert steps("ij,jk,kl->il", (4, 4), (4, 4), (4, 4)) == ["ij,jk,kl->il"]


def test_large_chains_are_taken_in_the_better_order() -> None:
    shapes = ((200, 200), (200, 200), (200, 8))
    assert steps("ij,jk,kl->il", *shapes) == ["jk,kl->jl", "ij,jl->il"]
    assert steps("ij,jk,kl->il", *shapes, optimize=False) == ["ij,jk,kl->il"]


def test_products_of_elements_stay_together() -> None:
    assert steps("ij,ij,ij->ij", *[(500, 500)] * 3) == ["ij,ij,ij->ij"]
    assert steps("ij,ij,ij->", *[(500, 500)] * 3) == ["ij,ij,ij->"]


def test_an_index_of_one_operand_is_summed_first() -> None:
    found = steps("ij,kl->ik", (300, 300), (300, 300))
    assert sorted(found[:2]) == ["ij->i", "kl->k"]
    assert found[2] == "i,k->ik"


@pytest.mark.parametrize("seed", range(100))
def test_steps_give_what_the_expression_says(seed: int) -> None:
    """Decided for large extents, so that there are several, and evaluated by NumPy for small."""
    random = np.random.default_rng(seed)
    letters = list("abcdefg")
    terms = [
        "".join(random.choice(letters, random.integers(1, 4))) for _ in range(random.integers(1, 7))
    ]
    known = sorted(set("".join(terms)))
    output = "".join(random.permutation(known)[: random.integers(0, 4)])
    extents = dict(zip(letters, map(int, random.integers(2, 60, 7)), strict=True))
    notation = read_letters(f"{','.join(terms)}->{output}")
    indexed = with_shapes(notation, [tuple(extents[c] for c in term) for term in terms])
    small = {c: 2 + n % 2 for n, c in enumerate(letters)}
    arrays = [random.random([small[c] for c in term]) for term in terms]
    expected = np.einsum(str(notation), *arrays)
    for step in steps_of(indexed, True):
        taken = ",".join(terms[n] for n in step.takes)
        terms.append("".join(step.gives))
        arrays.append(np.einsum(f"{taken}->{terms[-1]}", *(arrays[n] for n in step.takes)))
    np.testing.assert_allclose(arrays[-1], expected)


def test_a_path_is_followed() -> None:
    shapes = ((4, 4),) * 3
    path = ["einsum_path", (1, 2), (0, 1)]
    assert steps("ij,jk,kl->il", *shapes, optimize=path) == ["jk,kl->jl", "ij,jl->il"]
    assert steps("ij,jk,kl->il", *shapes, optimize=[(0, 1, 2)]) == ["ij,jk,kl->il"]
    found = steps("cab,cdd->ab", (4, 2, 3), (4, 5, 5), optimize=["einsum_path", (1,), (0, 1)])
    assert found == ["cdd->c", "cab,c->ab"]


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("optimize", [True, "greedy", "optimal", ("greedy", 500)])
def test_opt_einsum_is_not_needed(
    installed: bool, optimize: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "opt_einsum", None)
    shapes = ((2, 30, 4), (30, 40), (40, 50), (50, 60), (60, 3))
    indexed = with_shapes(read_letters("...aj,ab,bc,cd,de->...je"), shapes)
    found = steps_of(indexed, optimize)
    assert len(found) > 1
    assert found[-1].gives == indexed.output


def test_a_limit_of_intermediate_results_is_kept() -> None:
    shapes = ((100, 3), (3, 100), (100, 100))
    assert len(steps("ij,jk,kl->il", *shapes, optimize=("greedy", 10))) == 1


def test_any_way_gives_the_same() -> None:
    operands = [rand(20, 30), rand(30, 40), rand(40, 10), rand(10, 20)]
    expected = np.linalg.multi_dot(operands)
    path = np.einsum_path("ij,jk,kl,lm", *operands, optimize="optimal")[0]
    for optimize in (True, False, "greedy", "optimal", ("greedy", 1000), path, [(0, 1)] * 3):
        found = tcl.einsum("ij,jk,kl,lm", *operands, optimize=optimize)
        np.testing.assert_allclose(found, expected)


# --- the text ---


def test_the_text_of_a_product() -> None:
    assert tcl.from_einsum("bik,kj->bij", "float32") == (
        "# bik,kj->bij\n"
        "def einsum(float32(B, I, K) X, float32(K, J) Y) -> (Out) {\n"
        "    Out(b, i, j) +=! X(b, i, k) * Y(k, j)\n"
        "}\n"
    )


def test_the_text_of_a_chain() -> None:
    text = tcl.from_einsum("ij,jk,kl", *map(np.float32, (rand(99, 99),) * 2), rand(99, 9))
    assert text == (
        "# ij,jk,kl->il\n"
        "def einsum(float32(I, J) A, float32(J, K) B, float64(K, L) C) -> (Part1, Out) {\n"
        "    Part1(j, l) +=! float64(B(j, k)) * C(k, l)\n"
        "    Out(i, l) +=! float64(A(i, j)) * Part1(j, l)\n"
        "}\n"
    )


def test_the_text_of_what_is_repeated() -> None:
    text = tcl.from_einsum("...j,...j->...", "int8", "bool", shapes=((2, 1, 4), (3, 4)))
    assert text == (
        "# ...j,...j->...\n"
        "def einsum(int8(X0, 1, J) A, bool(X1, J) B) -> (Out) {\n"
        "    Out(x0, x1) +=! A(x0, 0, j) * int8(B(x1, j))\n"
        "}\n"
    )


def test_the_text_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = tcl.define

    def define(text: str) -> Any:
        seen.append(text)
        return real(text)

    monkeypatch.setattr(room, "define", define)
    operands = operands_of("ab,bcd,cd->abd")
    result = tcl.einsum("ab, bcd, cd -> abd", *operands)
    assert seen == [tcl.from_einsum("ab,bcd,cd->abd", *operands)]
    assert ") -> (Out) {" in seen[0]
    np.testing.assert_array_equal(real(seen[0]).einsum(*operands), result)


def test_types_without_shapes() -> None:
    text = tcl.from_einsum("ij,jk", np.int8, "float32")
    assert "Out(i, k) +=! float32(A(i, j)) * B(j, k)" in text
    assert "bfloat16(I) A" in tcl.from_einsum("i->", "bfloat16")
    for arguments, sentence in (
        (("...i", "float32"), "operands or shapes=, to define '...'"),
        (("ij,jk", "int8", "int8", "int8"), "there are 2 operands, but 3 types"),
        ((7,), "takes the expression as a string, not int"),
        (("ij", "complex64"), "are not supported"),
    ):
        with pytest.raises(tcl.ArgumentError) as caught:
            tcl.from_einsum(*arguments)
        assert sentence in str(caught.value)


# --- what is kept ---


def test_later_calls_go_straight_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = rand(3, 4), rand(4, 5)
    tcl.einsum("ij,jk->ki", a, b)
    monkeypatch.setattr(room, "element_type", lambda *_: pytest.fail("looked at again"))
    out = np.empty((5, 3))
    np.testing.assert_allclose(tcl.einsum("ij,jk->ki", a + 1, b), ((a + 1) @ b).T)
    monkeypatch.undo()
    tcl.einsum("ij,jk->ki", a, b, out=out)
    np.testing.assert_allclose(out, (a @ b).T)


def test_other_operands_are_not_taken_for_the_last_ones() -> None:
    for shape, dtype in (((3, 4), "d"), ((3, 4), "f"), ((1, 4), "f"), ((3, 4), "d"), ((3, 4), "b")):
        for columns in (False, True):
            a = np.array(rand(*shape) * 9, np.dtype(dtype), order="F" if columns else "C")
            b = np.arange(12, dtype=dtype).reshape(3, 4)
            check("ij,ij->i", a, b)
            check("ij,ij->i", b, b)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = room._Kept()
    monkeypatch.setattr(room, "_kept", kept)
    monkeypatch.setattr(room, "_MOST_CALLS", 2)
    for expression in ("i->i", "j->j", "k->k", "l->l"):
        check(expression, rand(3))
    assert len(kept) == 2
    assert list(kept.latest) == ["k->k", "l->l"]


def test_the_memory_of_intermediate_results_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = room._Kept()
    monkeypatch.setattr(room, "_kept", kept)
    monkeypatch.setattr(room, "_MOST_SCRATCH", 2 * 30 * 30 * 8)
    path = [(0, 1), (0, 1)]
    for number in range(4):
        a = rand(30, 30, seed=number)
        check(f"ij,jk,k{'lmno'[number]}", a, a, a, optimize=["einsum_path", *path])
        assert len(kept) == min(number + 1, 2)
    monkeypatch.setattr(room, "_MOST_SCRATCH", 1)
    check("ij,jk,kp", a, a, a, optimize=["einsum_path", *path])
    assert len(kept) == 1


def test_several_threads() -> None:
    operands = [rand(n, n) for n in (3, 4, 5, 6)]
    wrong: list[object] = []

    def work() -> None:
        for _ in range(20):
            for a in operands:
                if not np.allclose(tcl.einsum("ij,jk->ik", a, a), a @ a):
                    wrong.append(a.shape)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- as a backend ---


def test_opt_einsum_finds_the_backend() -> None:
    operands = [rand(4, 5), rand(5, 6), rand(6, 4, 3)]
    for expression in ("ij,jk,kil->l", "ij,jk,kml->iml", "ij,ja,abc->cb"):
        found = opt_einsum.contract(expression, *operands, backend="tcl")
        np.testing.assert_allclose(found, np.einsum(expression, *operands))


@pytest.mark.parametrize("axes", [0, 1, ([1], [0]), (0, 1), (-1, 0), ((0, 1), (1, 0)), 2])
def test_tensordot(axes: Any) -> None:
    a, b = rand(4, 4), rand(4, 4, seed=1)
    np.testing.assert_allclose(tcl.tensordot(a, b, axes), np.tensordot(a, b, axes))


@pytest.mark.parametrize("axes", [3, -1, "ab", (0,), (0, 2), ((0, 0), (0, 1)), ((0,), (0, 1))])
def test_tensordot_refuses(axes: Any) -> None:
    with pytest.raises(tcl.ArgumentError, match="tensordot: axes="):
        tcl.tensordot(rand(4, 4), rand(4, 4), axes)


# --- at random ---


@pytest.mark.parametrize("seed", swept(range(20), range(20, 400)))
def test_random_expressions(seed: int) -> None:
    """Random indices, extents (0 and 1 as well), strides, types and outputs."""
    random = np.random.default_rng(seed)
    letters = random.choice(list("abijkXY"), 4, replace=False)
    extents = {c: int(e) for c, e in zip(letters, random.integers(1, 6, 4), strict=True)}
    if random.random() < 0.1:
        extents[letters[0]] = 0
    terms, operands = [], []
    for _ in range(random.integers(1, 4)):
        term = list(random.choice(letters, random.integers(0, 4)))
        ones = {c: random.random() < 0.15 for c in term}
        shape = [1 if ones[c] else extents[c] for c in term]
        hidden = [int(n) for n in random.integers(1, 3, random.integers(0, 3))]
        term.insert(random.integers(len(term) + 1), "...")
        at = term.index("...")
        shape[at:at] = [n if n == 1 else 3 for n in hidden]
        operand = random.integers(-4, 5, [n * 2 for n in shape])
        operand = operand[tuple(slice(None, None, random.choice([2, -2])) for _ in shape)]
        dtype = random.choice(["?", "i1", "u2", "i4", "f4", "f8"])
        order = random.permutation(len(shape))
        stored = np.asarray(operand.transpose(order).astype(dtype), order="C")
        operands.append(stored.transpose(np.argsort(order)))
        terms.append("".join(term))
    expression = ",".join(terms)
    if random.random() < 0.7:
        known = sorted(set(expression) - set(".,"))
        kept = list(random.permutation(known)[: random.integers(0, len(known) + 1)])
        kept.insert(random.integers(len(kept) + 1), "...")
        expression += "->" + "".join(kept)
    check(expression, *operands)
