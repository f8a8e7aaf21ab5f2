"""A corpus of small programs, accepted and rejected.

In a rejected program «guillemets» stand around each place a message has to point at. They are
removed before the text is checked; what they enclose is the span that has to be reported, and the
line and column are those of the opening one. Beside the text stands a part of each message, in
order. Texts without ``def`` are bodies of the def ``HEADER``.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = (
    "def f(float(M, N) A, float(N) b, int32(N) idx, bool(N) c, float s) -> ({}) {{\n    {}\n}}\n"
)


def in_def(text: str) -> str:
    """A whole text: ``outputs | body`` or a body alone, which writes ``O``, go into a def."""
    if "def" in text:
        return text
    outputs, separator, body = text.partition(" | ")
    return HEADER.format(outputs, body) if separator else HEADER.format("O", text)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text and the places in it that were marked: (line, column, marked text)."""

    text: str
    places: tuple[tuple[int, int, str], ...]


def unmark(marked: str) -> Marked:
    text, places, line, column = "", [], 1, 1
    open_at: tuple[int, int, int] | None = None
    for character in marked:
        if character == "«":
            open_at = line, column, len(text)
        elif character == "»":
            assert open_at is not None
            places.append((open_at[0], open_at[1], text[open_at[2] :]))
        else:
            text += character
            line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
    return Marked(text, tuple(places))


ACCEPTED = """
O(i) = s where i in 0:(0-N)%3+5
---
O(i) = s where i in N > 9 ? 1 : 2:N > 3 ? 3 : N
---
O(i) = s where i in 0:int32(N > 3 && !(M == N))+1, exists b(i)
---
O(i) +=! w ? b(i + k) : s where k in 0:h, h = max(N, M) / 2 % 3, w = M > N || h < 2
---
O(i) = b(i)
---
O(i)=b(i)
---
O = s
---
O() = s
---
O(m,n) = A(m,n) * s() + b(n)
---
O(m) +=! A(m, n)
---
O(m) *=! A(m, n)
---
O(m) min=! A(m, n)
---
O(m) max=! A(m, n)
---
O +=! b(n)
---
O(m) += A(m, n)
---
O(m) *= A(m, n)
---
O(m) min= A(m, n)
---
O(m) max= A(m, n)
---
O(i) = b(i)  O(i) += b(i)
---
O(i) = b(i)
    O(i) = O(i) / 2
---
O(i) = 1 + 2 * 3 - 4 / 2 % 3 + b(i)
---
O(i) = -b(i) + - - b(i)
---
O(i) = !c(i) && c(i) || idx(i) != 3 ? 1 : 0
---
O(i) = b(i) < 1 ? 1 : b(i) < 2 ? 2 : 3
---
O(i) = (b(i) < 1 ? c(i) : idx(i) > 0) ? 1 : 0
---
O(i) = c(i) == c(i) ? b(i) : s
---
O(i) = c(i) == 1 && c(i) < (b(i) < s) ? b(i) : s
---
O(i) = b(i) <= s && b(i) >= s || b(i) > s == c(i) ? 1 : 0
---
O(i) = 1 * b(i) + 1.5 + .5 + 3. + 3e-3 + 1E5 + 2.5e+2 + 0.
---
O(i) = min(b(i), max(s, 1))
---
O(i) = float(idx(i)) + float32(idx(i)) + float64(idx(i)) + double(idx(i)) + half(b(i))
---
O(i) = float16(b(i)) + bfloat16(b(i))
---
O(i) = int8(b(i)) + int16(b(i)) + int32(b(i)) + int64(b(i))
---
O(i) = uint8(b(i)) + uint16(b(i)) + uint32(b(i)) + uint64(b(i)) + byte(b(i)) + bool(b(i))
---
O(m) = A.0 + A.1 + float(m) where m in 0:A.0
---
O(i) = b(i) where i in 0:N - 1
---
O(i) = b(i) where i in 1:N
---
O(m) +=! A(m, n) where n in 0:min(N, 4), m in 0:M / 2 * 1 + max(0, M % 2)
---
O(i) = x * x where x = b(i) + 1
---
O(i) = y where x = b(i), y = x * x
---
O(i) = s where exists b(i)
---
O(i) = k * s where i in 0:N, k = i + 1, exists b(i)
---
O(m, n) +=! A(m, k) * A(k, n) <=> gemm(A, A, O)
---
O(i) = b(i) <=> copy()
---
O(m, n) +=! A(m, k) * A(k, n) <=> gemm(A, A) where k in 0:N
---
O(i) = b(idx(i))
---
O(i) = b(idx(idx(i)) + 1)
---
O(i) = b(i + 1) - b(i - 1)
---
O(i) = b(2 * i) + b(N - 1 - i)
---
O(i) = i - 1 >= 0 && i - 1 < N ? b(i - 1) : 0 where i in 0:N
---
O(i) = fmax(b(i), 0) + pow(b(i), 2) + fma(b(i), s, 1) + norm4d(s, s, s, s)
---
O(y0) = x0 * y1(b(y0)) where x0 = b(y0), y1 = x0
---
O(j0) +=! A(j0, j1) * b(j1) where j1 in 0:N
---
O(i) = exp(idx(i)) + sqrt(2) + atan2(c(i), 1.0)
---
O, P | O(i) = b(i) P(i) = O(i) + 1
---
O, P | O(i) = b(i) * 2
P +=! O(i)
---
float(N) O | O(i) = b(i)
---
float(N) O | O(i) = 1
---
double(N) O | O(i) = b(i)
---
int64(N) O | O(i) = idx(i)
---
int32(N) O | O(i) = int32(b(i))
---
float(N) O | O(idx(i)) +=! b(i)
---
float(N, M) O | O(k, m) max= b(i) where k = 2 * idx(i), m in 0:M
---
float(M, N) O | O(m, n) = A(m, n)
---
float O | O +=! b(i)
---
float() O | O +=! b(i)
---
float16(N) O | O(i) = half(b(i))
---
uint8(N) O | O(i) = 255
---
int8(N) O | O(i) = -128
---
bool(N) O | O(i) = b(i) > 0
---
bool(N) O | O(i) max=! A(m, i) > 0
---
float(P) O | O(p) = s where p in 0:N + 2
---
float(7) O | O(i) = s
---
O, float(N) P | O(i) = b(i) P(i) = O(i)
---
def f(float(N) b) -> (O) {
    # a comment
    O(i) = b(i) # another, after a statement

    # the last
}
# ---
---
def   f ( float ( N )  b ) -> ( O ) { O ( i ) = b ( i ) }
---
def f(float(N)b)->(O){O(i)=b(i)}
---
def f(float(N) b) -> O { O(i) = b(i) }
---
def f(float(N) b) -> O, P { O(i) = b(i) P(i) = b(i) }
---
def f(float(N) b) -> float(N) O { O(i) = b(i) }
---
def f() -> (O) { O(i) = i where i in 0:10 }
---
def f(float(3, 4) b) -> (O) { O(j, i) = b(i, j) }
---
def f(float(N, 4) b) -> (O) { O(i) +=! b(i, j) }
---
def f(float s, int32 n) -> (O) { O = s * n }
---
def f(float() s, int32() n) -> (O) { O = s() * n() }
---
def f(float(N, N) b) -> (O) { O(i) = b(i, i) }
---
def f(float(N) floats, float(N) int32s) -> (inn) { inn(i) = floats(i) + int32s(i) }
---
def main(float(N) _x, float(N) class) -> (lambda) { lambda(i) = _x(i) + class(i) }
---
def f(uint8(N) I, float(256) T) -> (O) { O(i) = T(I(i)) }
---
def g(float(N) X) -> (Y) { Y(i) = X(i) * 2 }
def f(float(N) A) -> (O) { O = g(A) }
---
def f(float(N) A) -> (O) { O = g(A) }
def g(float(N) X) -> (Y) { Y(i) = X(i) * 2 }
---
def g(float(M, N) X) -> (R, C) { R(i) +=! X(i, j) C(j) +=! X(i, j) }
def f(float(K, L) A) -> (P, Q, S) { P, Q = g(A) S(i) = P(i) * 2 }
---
def h(float(N) X) -> (Y) { Y(i) = X(i) + 1 }
def g(float(N) X) -> (Y, Z) { Y = h(X) Z = h(Y) }
def f(float(N) A) -> (O, P) { O, P = g(A) }
---
def softmax(float(N, D) I) -> (O, maxVal, expDistance, expSum) {
maxVal(n) max=! I(n, d)
expDistance(n, d) = exp(I(n, d) - maxVal(n))
expSum(n) +=! expDistance(n, d)
O(n, d) = expDistance(n, d) / expSum(n)
}
---
def softmax(float(N, D) I) -> (O, expsum, maxVal) {
maxVal(n) max=! I(n, d)
expsum(n) +=! exp(I(n, d) - maxVal(n))
O(n, d) = exp(I(n, d) - maxVal(n)) / expsum(n)
}
---
def f(
    float(B, C, H, W) I,
    float(K, C, KH, KW) W1
) -> (
    O
) {
    O(b, k, h, w)
        +=! I(b, c, h + kh, w + kw)
          * W1(k, c, kh, kw)
}
""".strip().split("\n---\n")  # fmt: skip

SYNTAX = (
    ("", "no def"),
    ("# nothing\n", "no def"),
    ("«deff» f() -> (O) {}", "expected 'def'"),
    ("def f(float(N) b) -> (O) { O(i) = b(«i»", "ends too early"),
    ("def f(float(N) b) -> (O) { O(i) = «}»", "expected an expression"),
    ("O(i) = b(i) +\n«}»", "expected an expression"),
    ("O(i) = «*» b(i)", "expected an expression"),
    ("O(i) = b«[»i]", "indexed with parentheses"),
    # = and reductions
    ("O(m) =«+» A(m, n)", "write += for =+"),
    ("O(m) =«+»! A(m, n)", "write +=! for =+!"),
    ("O(m) «!»+= A(m, n)", "write +=! for !+="),
    ("O «+»!= A(m, n)", "write +=! for +!="),
    ("O «+» = A(m, n)", "write += for + ="),
    ("O(m) «max»! = A(m, n)", "write max=! for max! ="),
    ("O(i) «:»= b(i)", "write = for :="),
    ("O(i) «==» b(i)", "write = for =="),
    ("O(i) «<»- b(i)", "write = for <-"),
    ("O(i) =«>» b(i)", "write = for =>"),
    # what is missing, or stands twice
    ("O(i) = 2 b(i)«}»", "or an operator such as * is missing before it"),
    ("O(i) = exp b(i)«}»", "'b' begins a statement, so = or a reduction has to follow it"),
    ("O(i) = b(i)«,» O(i) += b(i)", "statements need no ','; it separates the clauses of a where"),
    ("O(i) = b(i + k) where i in 0:3 k «in» 0:3", "separated by ',': where ..., k in ..."),
    ("O(i) = 2«(»b(i))", "expected an operator such as * before it"),
    ("O(i) +=! A(i «j»)", "expected an operator such as * or a comma before it"),
    ("O(i) = (b(i) + 1 «}»", "a ')' is missing before it"),
    ("O(i «=» b(i)", "a ')' is missing before it"),
    ("O(i) = b(i)«)»", "no '(' is open here"),
    ("def f(float(N) b) -> (O) { O(i) = b(i«)»", "a '}' is missing"),
    ("def f(float(N) b) «(»O) { O(i) = b(i) }", "expected '->' before the outputs"),
    ("def f(float(N) b) «=»> (O) { O(i) = b(i) }", "expected '->' before the outputs"),
    # capitals
    ("O(i) = b(i) «WHERE» i in 0:N", "keywords are written in small letters: where"),
    ("O(i) = b(i) where i «In» 0:N", "keywords are written in small letters: in"),
    ("O(i) = c(i) «AND» c(i) ? 1 : 0", "the logical and is '&&'"),
    ("O(i) = c(i) && «not» c(i)", "the logical not is '!'"),
    ("O min=! «NOT» c(i) ? 1 : 0", "the logical not is '!'"),
    ("O(i) = «not» c(i) O(i) += 1", "the logical not is '!'"),
    ("O(i) = «if» b(i) > 0 then b(i) else 0", "there is no if statement; choose between values"),
    # operators and words of other languages
    ("O(i) = b(i) <«>» 0 ? 1 : 0", "write != for <>"),
    ("O(i) = b(i) «=»> 0 ? 1 : 0", "write >= for =>"),
    ("O(i) = b(i) ==«=» 0 ? 1 : 0", "write == for ==="),
    ("O(i) = b(i) «−» 1", "MINUS SIGN; names and operators are plain ASCII: write -"),
    ("O(i) = b(i) «≤» 1 ? 1 : 0", "write <="),
    ("def f(float(N) b) «→» (O) { O(i) = b(i) }", "write ->"),
    ("O(i)«\u00a0»= b(i)", "write space"),
    ("O = b(«.»..)", "give every dimension an index"),
    ("O(i) = A(i, i«:»i + 2)", "give every dimension an index"),
    ("O(i) = np«.»exp(b(i))", "names have no prefix, and tensors no methods: write exp;"),
    ("def f(np«.»float32(N) b) -> (O) { O(i) = b(i) }", "write float32"),
    ("O(i, j) = A«.»T(i, j)", "tensors have no methods: swap the indices, A(j, i), to transpose"),
    ("O(i) = b«.»shape", "an extent is T.0"),
    ("O(i) = «1»e-3f * b(i)", "numbers have no suffix; write 1e-3"),
    ("O(i) = b(i) where i in (0«:»N)", "a range is written i in 0:N"),
    ('«"»""doc"""O(i) = b(i)', "no strings; comments start with '#'"),
    ("O(i) = b(i)«;»", "need no ';'"),
    ("O(i) = c(i) «&» c(i) ? 1 : 0", "'&&'"),
    ("O(i) = c(i) «|» c(i) ? 1 : 0", "'||'"),
    ("O(i) = b(i) «^» 2", "pow(x, y)"),
    ("O(i) = b(i) *«*» 2", "pow(x, y)"),
    ("«/»* sum */ O(i) = b(i)", "comments start with '#'"),
    ("«/»/ sum\n O(i) = b(i)", "comments start with '#'"),
    ("O(i) = b(i) /«/» 2", "divided with one '/', which truncates; comments start with '#'"),
    ("O(i) = b(i) «as» int8", "a cast is written as a call: int8(x)"),
    ("O(i) = «where»(c(i), b(i), 0)", "choose between values: condition ? a : b"),
    ("O(i) = x * x where x = b(i)«;» y = x", "',' separates the clauses of a where"),
    ("O(i) = x * x«,» where x = b(i)", "no ',' stands before where"),
    ("O(i) = x * x «with» x = b(i)", "names are bound in a where: O(i) = x * x where x = A(i)"),
    ("O(i) = b(i) where «0» <= i < N", "a where clause is a range i in 0:N, x = value"),
    ("O(i) = b(i) where i in «[»0, N)", "with ':' between"),
    ("O(i) = b(i) where i = 0«:»N", "a range is written i in 0:N"),
    ("O(i) = x(i) where x«(»i) = b(i)", "a name that a where binds has no subscripts: x = A(i)"),
    ("«where» w = 2 O(i) = w * b(i)", "a where stands at the end of its statement"),
    ("O(i) = b(i) * 1«.5»f", "numbers have no suffix; write 1.5"),
    ('O(i) = «"»x"', "comments start with '#'; write the character's code, 120 for"),
    ("O(i) = S(i) == «'»yes'", "the language has no strings"),
    ("O(i) = b(i) «@» 2", "no meaning"),
    ("O(i) = «2»b(i)", "a number runs into a name"),
    ("O(i) = «0»x7F", "numbers are decimal, without '_'; write 127 for 0x7F"),
    ("O(i) = «0»b101", "write 5 for 0b101"),
    ("O(i) = «1»_000", "write 1000 for 1_000"),
    ("O(i) = «0»xyz", "a number runs into a name"),
    ("O(i) = b(i) * «3»e", "a number runs into a name"),
    ("O(i) = b(i) «×» 2", "MULTIPLICATION SIGN"),
    ("O(m) «-»= A(m, n)", "there is no '-='"),
    ("O(m) «/»= A(m, n)", "there is no '/='"),
    ("O(m) «or»=! A(m, n) > 0", "for bools, use max=!"),
    ("O(m) «||»=! A(m, n) > 0", "for bools, use max=!"),
    ("O(m) «&»=! A(m, n) > 0", "for bools, use min=!"),
    ("O(m) «^»=! A(m, n) > 0", "sum with +=!"),
    ("O(i) = x where x = b(i) «where» i in 0:3", "put ',' between its clauses"),
    ("O(m) «%»= A(m, n)", "there is no '%='"),
    ("O(i) = b(i) «=» 2 ? 1 : 0", "'=='"),
    ("O(i) = b(i) ? «:» 2", "expected an expression"),
    ("O(i) = c(i) ? 1 «}»", "the other value is missing: condition ? a : b"),
    ("O(i) = («)»", "expected an expression"),
    ("O(i) = b(i,«)»", "expected an expression"),
    ("O(i) = min(b(i)«)»", "of many, use min=! and max=!"),
    ("O(i) = max(b(i), 1«,» 2)", "write max(max(x, y), z)"),
    ("O(i) = min(b(i), 1«,» 2)", "min takes two values; write min(min(x, y), z)"),
    ("O(i) = max(b(i), (1«,» 2))", "')'"),
    ("O(i) = b(i) where i in 0.«.»N", "with ':' between"),
    ("O(i) = b(i) where i in N«}»", "with ':' between"),
    (
        "O(i) = b(i) >«>» 4",
        "write x / 16 of an unsigned x, x / 16 - (x % 16 < 0 ? 1 : 0) of a signed",
    ),
    (
        "O(i) = b(i) >«>» 3",
        "write x / 8 of an unsigned x, x / 8 - (x % 8 < 0 ? 1 : 0) of a signed x",
    ),
    ("O(i) = b(i) <«<» 10", "write x * 1024"),
    (
        "O(i) = b(i) >«>» c(i)",
        "write x / uint32(exp2(double(n))) for a shift by n of an unsigned x, int32(floor(x / exp2",
    ),
    ("O(i) = b(i) <«<» 2 * c(i)", "write x * int32(exp2(double(n))) for a shift by n"),
    ("O(i) = b(i) «&» 4", "x % 16"),
    ("O(i) = float«+»", "'('"),
    ("O(i) = s.1«.2»", "written T.0"),
    ("«min»(i) = b(i)", "keyword"),
    ("def «in»(float(N) b) -> (O) { O(i) = b(i) }", "keyword"),
    ("def f(float(N) «where») -> (O) { O(i) = b(i) }", "keyword"),
    ("def f(float(N) b) -> («exists») { O(i) = b(i) }", "keyword"),
    ("def f(float(N) «def») -> (O) { O = 1 }", "keyword"),
    ("def f(float(N) b) -> (O) { O(i) = b(i)\n«def» g(float(N) b) -> (O) { O(i) = b(i) }", "'}'"),
    ("def f(float(N) b) «{» O(i) = b(i) }", "'->'"),
    ("def f(float(N «+» 1) b) -> (O) { O(i) = b(i) }", "a new name, such as K; a call checks"),
    ("def f(float(O, D «+» S) K, float(D, S) L) -> (M) { M(o) +=! K(o, c) }", "such as N; a call"),
    (
        "def f(float(K, L, M, N, P, Q, R, S, T «+» 1) b) -> (O) { O(i) = b(i) }",
        "write a new name, such as K1",
    ),
    (
        "def f(float(N) b) -> (O, int32(N «+» 1) S) { O(i) = b(i) S(O(i)) += 1 }",
        "; declare S without a type, and assign all of it first: S(i) = 0 where i in 0:N + 1",
    ),
    (
        "def f(float(N) b) -> (half(N, 2 «*» N) O) { O(i, k) = b(i) }",
        "all of it first: O(i0, i1) = float16(0) where i0 in 0:N, i1 in 0:2 * N",
    ),
    ("def f(float(N) b) -> (half(2 «*» (N + 1)) O) { O(i) = b(i) }", "write a new name, such as K"),
    ("def f(float(N) b) -> O «*» 2 { O(i) = b(i) }", "write a new name, such as K"),
    ("def f(float(«1.5») b) -> (O) { O(i) = b(i) }", "expected"),
    ("def f(float(N) b«;» int32 n) -> (O) { O(i) = b(i) }", "';'"),
    ("def f(«,») -> (O) { O = 1 }", "expected"),
    ("O(i) = b(i) where «}»", "expected"),
    ("O(i) = b(i) where i in 0«,» 5", "':'"),
    ("O(i) = b(i) where i «0»:5", "expected"),
    ("O(i) = b(i) where exists «,»", "expected an expression"),
    ("O(i) = «18446744073709551616»", "64 bits; a float has a '.' or an exponent: 1e20"),
    ("O(i) = «1e999»", "too large for a float64; infinity is -log(0.0)"),
    ("O(i) = 1.«.5»", "expected an operator"),
    ("O(i) = b(i) <=> «(»A)", "a name"),
    ("A, B «+=» f(A)", "'='"),
    ("O«\0»(i) = b(i)", "character code 0"),
    # types of other languages
    ("def f(«int»(N) b) -> (O) { O(i) = b(i) }", "write int32, or int64"),
    ("def f(float s, «int» n) -> (O) { O = s }", "write int32, or int64"),
    ("def f(float(N) b) -> («long»(N) O) { O(i) = b(i) }", "write int64"),
    ("def f(float(N) b) -> «f32»(N) O { O(i) = b(i) }", "write float (float32)"),
    ("def f(«bf16»(N) b) -> (O) { O(i) = b(i) }", "write bfloat16"),
    ("def f(«fp16»(N) b) -> (O) { O(i) = b(i) }", "write half (float16)"),
    ("def f(«float8»(N) b) -> (O) { O(i) = b(i) }", "as int8 with a scale"),
    ("def f(«float8_e4m3fn»(N) b) -> (O) { O(i) = b(i) }", "as int8 with a scale"),
    ("def f(«complex64»(3, N) b) -> (O) { O(i) = b(i) }", "imaginary parts"),
    ("def f(«Float»(N) b) -> (O) { O(i) = b(i) }", "small letters: float"),
    ("def f(«int32_t»(N) b) -> (O) { O(i) = b(i) }", "write int32"),
    ("def f(«flaot»(N) b) -> (O) { O(i) = b(i) }", "did you mean float?"),
    ("def f(«Tensor»(N) b) -> (O) { O(i) = b(i) }", "the types are bool, uint8"),
    ("def f(«b»: float(N)) -> (O) { O(i) = b(i) }", "the type comes before the name"),
    ("def f(float «b»(N)) -> (O) { O(i) = b(i) }", "the type comes before the name"),
    ("def f(float «N» b) -> (O) { O(i) = b(i) }", "sizes stand in parentheses: float(N) b"),
    # statements of other languages
    ("O(m) «argmin»=! A(m, n)", "min=! (A(i, j) == Best(i)) ? j : A.1"),
    ("O(m) «argmax»= A(m, n)", "Best(i) max=! A(i, j)"),
    ("O(m) «mean»=! A(m, n)", "divide by the number of elements"),
    ("O(m) «sum»=! A(m, n)", "reduce with +=!"),
    ("O(m) «cumsum»=! b(m)", "(j <= i) ? X(j) : 0"),
    ("O(i) = b(i) where i in 0:N«:»2", "a range has no step"),
    ("O(m) +=! A(m, «:»)", "give every dimension an index"),
    ("O(i) = b(i) «:» 2", "expected"),
    ("O(m) «xor»=! A(m, n)", "there is no 'xor='"),
    ("«for» i in 0:N O(i) = b(i)", "there are no loops"),
    ("«for» (int i = 0; i < N; i++) O(i) = b(i)", "there are no loops"),
    ("O(i) = b(i) «for» i in 0:N", "there are no loops"),
    ("«while» (c(0)) { O(i) = b(i) }", "a recurrence"),
    ("«if» (c(0)) O(i) = b(i)", "condition ? a : b"),
    ("«if» c(0) { O(i) = b(i) }", "condition ? a : b"),
    ("O(i) = b(i) «if» c(i) else 0", "condition ? a : b"),
    ("O(i) = if (c(i)) b(i) «else» 0", "condition ? a : b"),
    ("«let» x = 3 O(i) = x * b(i)", "after the statement that uses it"),
    ("O(i) = x where «let» x = b(i)", "after the statement that uses it"),
    ("«float» x = 3 O(i) = x * b(i)", "after the statement that uses it"),
    ("«int» x = 3 O(i) = x * b(i)", "after the statement that uses it"),
    ("«return» b(i)", "returns the outputs of its header"),
    ("O(i) = («float») b(i)", "a cast is written as a call"),
    ("O(i) = c(i) «and» c(i) ? 1 : 0", "'&&'"),
    ("O(i) = b(i) where i in «range»(3)", "a range is written 0:N"),
    ("O(i) = b(i) where i «<» 3", "a where clause is a range"),
    ("O(i) = «é»", "plain ASCII"),
)
"""Texts that do not follow the grammar, each with one place and a part of its message."""

_CYCLE = """def softmax(float(N, D) I) -> (O, tmp) {
tmp(n) max=! I(n, d)
«O(n, d) = exp(I(n, d) - tmp(n))»
tmp(n) +=! O(n, d)
O(n, d) = O(n, d) / tmp(n)
}"""

_UNLISTED = """def softmax(float(N, D) I) -> (O, maxVal, expDistance) {
maxVal(n) max=! I(n, d)
expDistance(n, d) = exp(I(n, d) - maxVal(n))
«expSum»(n) +=! expDistance(n, d)
O(n, d) = expDistance(n, d) / expSum(n)
}"""

_RECURS = (
    "elements of 'O' cannot depend on each other, because they are computed in any order; write a "
    "running sum as O(i) +=! (j <= i) ? X(j) : 0,"
)

SEMANTIC: tuple[tuple[str, ...], ...] = (
    # names
    (
        "O(i) = «Z»(i)",
        "undefined tensor or function 'Z'; it is not among the inputs (A, b, idx, c, s); list it "
        "there with its type, or correct the name",
    ),
    ("O(i) = «bb»(i)", "did you mean 'b'"),
    ("O(i) = b(i) + «t»", "undefined name 't'"),
    ("O(i) = b(i) + «B2»(i)", "undefined tensor or function 'B2'; did you mean 'b'?"),
    (
        "O(i) = «Y»(i)",
        "undefined tensor or function 'Y'; it is not among the inputs (A, b,",
    ),  # no y0
    ("O(i) = sum * «summ» where sum = b(i)", "did you mean 'sum'?"),
    ("O(i) = «fmaxx»(b(i), 0)", "did you mean 'fmax'"),
    ("O(i) = «fmaxx»(b(i))", "did you mean 'fmax'"),
    ("O(i) = «dropout»(b(i))", "undefined function 'dropout'; there is no such function"),
    ("O(i) = «softmax»(b(i))", "there is no softmax; subtract the maximum of a row, sum"),
    ("O(i) = «rms_norm»(b(i))", "there is no rms_norm; sum rows and their squares"),
    ("O(i) = «matmul»(b(i))", "there is no matmul; multiply elements and reduce with +=!"),
    ("O(i) = «silu»(b(i))", "there is no silu; write x * expit(x)"),
    ("O(i) = «fmax»", "call it: fmax(x)"),
    ("O(i) = «sign»(b(i))", "there is no sign; write (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); where"),
    ("O(i) = «int»(b(i))", "there is no type 'int'; write int32"),
    ("O(i) = «abs»(b(i))", "there is no abs; write fabs(x) for floats"),
    ("O(i) = «isnan»(b(i)) ? 0 : 1", "there is no isnan; write x != x"),
    ("O(i) = «argmin»(b(i))", "min=! (A(i, j) == Best(i)) ? j : A.1"),
    ("O(i) = b(i) > 0 ? b(i) : «inf»", "there is no inf; -log(0.0) is infinity, log(0.0) minus"),
    ("O(i) = b(i) + «Q.0»", "undefined tensor 'Q'; it is not among the inputs (A, b,"),
    ("O(i) = b(i) + «N.0»", "undefined tensor 'N'; 'N' is a size: write N"),
    ("O(i) = b(«Z.0» - 1 - i)", "undefined tensor 'Z'"),
    ("«Q»(i) = b(i) O(i) = b(i)", "nor an output; add it to the outputs: -> (O, Q)"),
    ("«o»(i) = b(i) O(i) = b(i)", "nor an output; write 'O', or add it to the outputs: -> (O, o)"),
    ("«x» = b(i) O(i) = s", "bind it in each statement that uses it, as in O(i) = x * x where x ="),
    ("«exp»(i) = b(i) O(i) = b(i)", "built-in"),
    ("«b»(i) = s O(i) = s where i in 0:3", "inputs are immutable"),
    ("O, «P» | O(i) = b(i)", "never assigned"),
    ("«O», «P» | ", "'O' is never assigned", "'P' is never assigned"),
    (_UNLISTED, "add it to the outputs: -> (O, maxVal, expDistance, expSum)"),
    ("def f(float(N) b, float(N) «b») -> (O) { O(i) = b(i) }", "already defined as an input"),
    ("def f(float(N) b) -> («b») { }", "is an input"),
    ("def f(float(N) b) -> (O, «O») { O(i) = b(i) }", "already defined as an output"),
    ("def f(float(«N») N) -> (O) { O = 1 }", "rename one of them"),
    ("def f(float(N) b, float «N») -> (O) { O(i) = b(i) }", "use it without passing it"),
    ("def f(float x, float(«x») b) -> (O) { O(i) = b(i) }", "cannot be a size: it is an input"),
    ("def f(float(«x») x) -> (O) { O = 1 }", "it is the tensor itself; a size needs its own name"),
    ("def f(float(N) b) -> («N») { }", "the extent of dimension 0 of 'b'"),
    ("def f(float(N) «exp») -> (O) { O = 1 }", "rename the input"),
    ("def f(float(N) b) -> («exp») { }", "rename the output"),
    ("def f(float(«exp») b) -> (O) { O(i) = b(i) }", "cannot be a size"),
    ("def «exp»(float(N) b) -> (O) { O(i) = b(i) }", "rename the def"),
    ("def f(«b») -> (O) { O = 1 }", "needs a type"),
    ("def «f»(float(N) b) -> () { }", "needs an output"),
    ("def f(float s) -> (O) { O = s }\ndef «f»(float s) -> (O) { O = s }", "defined twice"),
    # indices
    ("O(«N») = b(N)", "size symbol and cannot be an index"),
    ("O(«s») = s", "an input and cannot be an index"),
    ("O(i, «i») = b(i)", "appears twice"),
    ("O(«i + 1») = b(i)", "write an index there, and compute on the right: O(j) = X(j - 1) where"),
    ("O(«at») +=! b(i) where h = i / 2, at = h", "S(g) +=! X(4 * g + k) where k in 0:4"),
    ("O(«0») = s", "'0' on the left is one place; write an index there, and give it this one"),
    (
        "O(«2») +=! b(i) O(«0») +=! b(i) * b(i)",
        "assign all first: O(j) = 0.0 where j in 0:3; then write an index there, and give it this",
        "is one place; write an index there, and give it this one value: O(j) +=! ... where j in",
    ),
    ("O(i) = b(i) O(«0») = s", "is one place; write an index there"),
    ("O(i, «N - 1») = b(i)", "value: O(i, j) = ... where j in N - 1:N - 1 + 1"),
    ("O(«at») = b(i) where at = N / 2", "value: O(j) = ... where j in at:at + 1"),
    ("O(«2 * i») = b(i)", "j % 2 == 0 ? X(j / 2) : 0 where j in 0:2 * N"),
    ("O(«idx») +=! b(i)", "write idx(i) to reduce into the element that it selects"),
    ("O(idx(i)) «=» b(i)", "several points may write"),
    (
        "«O(idx(i)) += b(i)»",
        "declare it in the output list, such as -> (float32(100) O), with a number",
    ),
    ("«O(n, idx(i)) += A(i, n)»", " -> (float32(N, 100) O), "),
    ("«O(at) += 1 where at = idx(i)»", " -> (int32(100) O), "),
    ("int32(P) O | «O(at) += 1 where at = idx(i)»", "and no input has the size 'P'; declare it"),
    ("int32(9) O | O(at) +=! 1 where «i» = idx(i), at = i", "'i' is an index of its own value"),
    (
        "int32(9) O | O(at) +=! 1 where d = b(i) «at» = int32(d)",
        "put ',' before 'at = ...', to bind it in the where that ends before it; or add it to the",
    ),
    (
        "O(i) = d * «e» where d = b(i) «e» = 2 * d",
        "put ',' before 'e = ...', to bind it in the where that ends before it",
        "put ',' before 'e = ...', to bind it in the where that ends before it; or add it",
    ),
    ("O(«b(i)») += b(i)", "has to be an integer"),
    ("float(N) O | O(i) = b(i) O(idx(i)) += «O(idx(i))»", "while it is being reduced into"),
    ("O(m) «=» A(m, n)", "'n' appears only on the right"),
    ("O «=» A(m, n)", "'m', 'n' appear only on the right"),
    ("O(i) = b(i) where «k» in 0:3", "'k' is used nowhere but in its range; leave it out"),
    ("O(i) = b(«b(i)»)", "has to be an integer, found float32"),
    ("O(i) = b(«1.5»)", "has to be an integer"),
    ("O(i) = b(«c(i)»)", "has to be an integer, found bool"),
    ("O(i) = b(«i / 2.0»)", "has to be an integer"),
    ("O(i) = b(i) + «k»", "undefined name 'k'"),
    # ranks
    ("O(i) = «A(i)»", "has 2 dimensions but is read with 1 subscript"),
    ("O(i) = «b»", "is read with 0 subscripts; write b(i)"),
    ("O(i) = «s(i)»", "read with 1 subscript; write s, or give it sizes: float32(N) s"),
    ("O(i) = b(i) «O»(i, j) = A(i, j)", "'O' has 1 dimension but is assigned with 2"),
    ("float(N) O | «O»(i, j) = A(i, j)", "declared with 1 dimension but is assigned with 2"),
    (
        "float O | «O»(i, j) = A(i, j)",
        "write its sizes too, as in float32(...) O, new names for those of no input, or leave the",
    ),
    ("O(i) = «A.2» + b(i)", "'A' has 2 dimensions"),
    ("O(i) = «s.0» + b(i)", "'s' has 0 dimensions"),
    ("O(i) = b(i) + «O.0»", "not known before it is written"),
    ("O(i) = «N»(i) + b(i)", "not a tensor"),
    ("O(i) = x(i) where x = b(i)".replace("x(i)", "«x»(i)", 1), "not a tensor"),
    ("O(i) = b(i) + «i(i)»".replace("«i(i)»", "«i»(i)"), "not a tensor"),
    # types
    ("O(i) = «b(i)» ? 1 : 0", "expected a boolean, found float32"),
    ("O(i) = «idx(i)» ? 1 : 0", "expected a boolean, found int32"),
    ("O(i) = !«b(i)» ? 1 : 0", "expected a boolean, found float32; compare it: x != 0"),
    ("O(i) =!«b(i)» * 2", "=! assigns a logical not; write =, or +=! *=! min=! max=! to reduce"),
    ("O(i) = «b(i)» && c(i) ? 1 : 0", "expected a boolean"),
    ("O(i) = «b(i)» || «idx(i)» ? 1 : 0", "found float32", "found int32"),
    ("O(i) = «1» ? 1 : 0", "expected a boolean, found integer literal"),
    ("O(i) = «0 <= i < 3» ? b(i) : 0", "comparisons cannot be chained: write a < b && b < c"),
    ("O(i) = «b(i) > c(i)» ? 1 : 0", "comparisons cannot be chained"),
    ("int32(N) O | O(i) = «b(i)»", "narrower than the float32"),
    (
        "float16 O | O +=! «b(i) * 0.5»",
        "cast what is float32, float16(b(i)), or reduce into a float32",
    ),
    ("float(N) O | O(i) = «double(b(i))»", "narrower than the float64"),
    ("float16(N) O | O(i) = «b(i)»", "cast the value: float16(...)"),
    ("uint8(N) O | O(i) = «idx(i)»", "narrower than the int32"),
    ("uint8(N) O | O(i) = «256»", "uint8"),
    ("uint8(N) O | O(i) = «-1»", "uint8"),
    ("bool(N) O | O(i) = «b(i)»", "bool(...)"),
    ("bool(N) O | O(i) +=! «A(m, i) > 0»", "narrower than the int32"),
    ("bool(N) O | O(i) = «1»", "narrower than the int32"),
    ("O(i) = idx(i) O(i) = «b(i)»", "of type int32, narrower than the float32"),
    ("int32(N) O | O(i) = «1.5»", "narrower than the float32"),
    (
        "O(m) = «0» where m in 0:M O(m) += A(m, n)",
        "this makes 'O' int32, narrower than the float32 assigned to it in line 2; write 0.0, or",
    ),
    ("O(m) = «-1» where m in 0:M O(m) = double(b(m))", "write float64(-1), or declare its type"),
    ("O(m) = «0.0» where m in 0:M O(m) += double(b(m))", "write float64(0.0), or declare its"),
    ("O(i) = idx(i) O(i) = 0 O(i) = «1.5»", "of type int32, narrower than the float32"),
    (
        "def f(int8(N) a) -> (O) {\nO +=! 2 * (a(i) * y) where y = a(0)\nO = «O / N» }",
        "narrower than the int32 assigned to it; write 2 * (int32(a(i)) * y) in line 2, which "
        "gives it its type, or cast the value: int8(...)",
    ),
    ("O +=! idx(i) O = «O / 2.0»", "write float32(idx(i)) in line 2, which gives it its type, or"),
    ("O(i) = «exp()» + b(i)", "takes 1 argument, found 0"),
    ("O(i) = «pow(b(i))»", "takes 2 arguments, found 1"),
    ("O(i) = «exp(b(i), 2)»", "takes 1 argument, found 2"),
    ("O(i) = b(i) + «1 / 0»", "division of a number by zero; write another divisor"),
    ("O(i) = b(i) + «5 % 0»", "division of a number by zero; write another divisor"),
    ("O(i) = «idx(i) / 0»", "an integer by zero, which gives 0 for every value; write another"),
    ("O(i) = b(i) + «idx(i) % int8(1 - 1)»", "divisor, or 0.0 to divide as floats"),
    ("O(i) = b(i) where i in 0:«N % 0»", "an integer by zero"),
    ("O(i) = b(i) * («1e308 * 1e10»)", "too large for a float64"),
    ("O(i) = idx(i) + («18446744073709551615 + 1»)", "64 bits"),
    # order of evaluation
    ("O, P | P(i) = «O»(i) O(i) = b(i)", "read before it is written"),
    ("O(i) = «O»(i) + b(i)", "read before it is written"),
    ("O(i) = b(i) where exists «O»(i - 1)", "read before it is written"),
    ("O(i) = «O»(i, i)", "read before it is written"),
    # elements that depend on each other
    ("O(i) = «O(i - 1)» + b(i)", f"{_RECURS} and any other recurrence as a loop in Python"),
    ("O(i) = i > 0 ? «O(i - 1)» + b(i) : b(i) where i in 0:N", _RECURS),
    ("O(i) = x + b(i) where x = exp(«O(i - 1)»)", _RECURS),
    ("O(i, j) = «O(i - 1, j)» + A(i, j)", _RECURS),
    ("O(i) = b(idx(int32(«O(i - 1)»)))", _RECURS),
    ("O(i) +=! «O(i - 1)» + b(i)", _RECURS),
    (
        "O(i) = b(i) O(i) = «O(i - 1)» + b(i)",
        f"{_RECURS} and any other recurrence as a loop in Python; to use the earlier values of "
        "'O', write to another output",
    ),
    ("O(i) = b(i) O(i) = «O(i + 1)»", _RECURS),
    ("O(i) = b(i) O(i) += «O(i - 1)»", _RECURS),
    ("O(i) = b(i) O(i) +=! «O(i - 1)»", _RECURS),
    ("O(i) = b(i) O(j) = «O(0)» + b(j)", _RECURS),
    ("O(i, j) = A(i, j) O(i, j) = «O(j, i)»", _RECURS),
    ("O, P | O(i) = «P(i - 1)» + b(i) P(i) = O(i)", _RECURS),
    ("O, P, Q | O(i) = «Q(i - 1)» + b(i) P(i) = O(i) Q(i) = P(i)", _RECURS),
    ("O, P | O(i) = «P»(i - 1) + b(i) P(i) = b(i)", "read before it is written"),
    (
        "O, P | O(i) = b(i) «P(i) = O(i - 1) + b(i)» O(i) = P(i)",
        f"cycle; {_RECURS.replace('O', 'P')}",
    ),
    ("O(m) = s where m in 0:M O(m) += «O(m)» * A(m, n)", "while it is being reduced"),
    ("O(m) = s where m in 0:M O(m) +=! «O(m)» * A(m, n)", "clears it first"),
    (_CYCLE, "O -> tmp -> O depend on each other in a cycle; write the later value of 'tmp'"),
    (
        "O, P | O(i) = b(i) «P max=! O(i)» O(i) = exp(O(i) - P)",
        "write the later value of 'O' to another output, such as O2",
    ),
    (
        "O, float(N) P | O(i) = b(i) «P(idx(i)) +=! O(i)» O(i) = O(i) / P(idx(i))",
        "write the later value of 'O' to another output, such as O2",
    ),
    (
        "O(i) = b(i) + «k»",
        "list it there with its type, or correct the name; or make it an index: where k in 0:M",
    ),
    ("O(i) = «MAX»(b(i), 0)", "did you mean 'max'"),
    (
        "P, Q, R | P(i) = b(i) Q(i) = P(i) R(i) = Q(i) «P(i) = R(i)»".replace(
            "«P(i) = R(i)»", "P(i) = R(i)"
        ).replace("Q(i) = P(i)", "«Q(i) = P(i)»"),
        "in a cycle",
    ),
    # ranges
    (
        "«O(i) = 1»",
        "the range of 'i' cannot be inferred from the accesses; add: where i in 0:..., or declare "
        "the sizes of the output: -> (int32(...) O)",
    ),
    ("«O(i, m) +=! A(m, k) * i where m in 0:2»", "add to its where clause: i in 0:..., or"),
    # where
    ("O(i) = s where i in 0:«idx(0)»", "the range of 'i' reads 'idx', but ranges may use only"),
    ("O(i) = s where i in 0:«s»", "the range of 'i' reads 's', but"),
    (
        "O(i) = s where i in «int32(idx(0) * 0.5)»:9".replace("«int32(", "int32(«").replace(
            " * 0.5)»", "» * 0.5)"
        ),
        "the range of 'i' reads 'idx'",
    ),
    ("O(i) = s where i in 0:«k»", "ranges use only sizes and whole numbers; a size is a dimension"),
    ("O(i) = s where i in 0:«n», exists A(i, 0)", "'n' is not a size; did you mean 'N'?"),
    ("O(i) +=! s where i in 0:«j», j in 0:3", "the range of 'i' uses the index 'j', but ranges"),
    ("O(i) = s where h = i + 1, i in 0:«h»", "uses 'h', which uses the index 'i', but"),
    ("O(i) = s where h = idx(0), g = 2 * h, i in 0:«g»", "uses 'g', which reads 'idx', but"),
    (
        "O(i) = s where i in 0:int32(«N * 0.5»)",
        "uses a float32, but ranges may use only sizes and "
        "whole numbers; compute in integers, as in N * 3 / 2",
    ),
    ("O(i) = s where i in 0:int32(«sqrt(N)»)", "the range of 'i' uses a float32"),
    ("O(i) = s where half_n = N / 2.0, i in 0:int32(«half_n»)", "which uses a float32"),
    ("O(i) = s where i in 0:«2.0»", "the range of 'i' uses a float literal"),
    ("O(i) = s where i in «N > 3»:N", "the start of a range has to be an integer, found bool"),
    ("O(i) = s where i in «c.0 > 2»:3", "has to be an integer"),
    ("O(i) = s where i in 0:3, «i» in 0:4", "has two ranges"),
    ("O(i) = s where i in 0:3, «N» in 0:4", "only an index can have a range"),
    ("O(i) = s where i in 0:3, «i» = 4", "choose another name"),
    ("O(i) = s where i in 0:3, x = 1, «x» = 4", "bound already"),
    ("O(i) = x where i in 0:3, x = «y», y = 1", "by a later clause"),
    ("O, P | O(i) = x where x = b(i) P(i) = «x»", "in another statement only"),
    ("O(i) = b(i) where «s» = 4", "an input"),
    ("O(i) = b(i) where exists «Q»(i)", "undefined tensor"),
    ("O(i) = b(i) where exists «A(i)»", "read with 1 subscript"),
    ("O(i) = b(i) <=> gemm(«Q»)", "undefined"),
    ("float(P) O | O(i) = b(i) + «P» where i in 0:N", "not known before its output"),
    # calls
    ("def f(float(N) A) -> (O) { O = «f(A)» }", "cannot recurse"),
    (
        "def g(float(N) A) -> (O) { O = f(A) }\ndef f(float(N) A) -> (O) { O = «g(A)» }",
        "cannot recurse",
    ),
    ("def f(float(N) A) -> (O) { O = «g»(A) }", "undefined tensor or function 'g'"),
    ("def f(float(N) A) -> (O, P) { «O, P = exp(A)» }", "several targets"),
    ("def f(float(N) A) -> (O, P) { «O, P = A(0)» }", "several targets"),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\n"
        "def f(float(N) A) -> (O) { O(i) = «g»(A) + A(i) }",
        "'g' is a def",
    ),
    ("def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) A) -> (O) { O = «g()» }", "1 input"),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) A) -> (O) { O = g(«A + 1») }",
        "whole tensors",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(int32(N) A) -> (O) { O = g(«A») }",
        "'A' is int32 of rank 1",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N, N) A) -> (O) { O = g(«A») }",
        "'A' is float32 of rank 2",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\ndef f(float(N) A) -> (O, P) { «O», P = g(A) }",
        "assigned to 2 targets",
    ),
    (
        "def g(float(N) X) -> (Y, Z) { Y(i) = X(i) Z(i) = X(i) }\n"
        "def f(float(N) A) -> (O) { O, «O» = g(A) }",
        "appears twice",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\n"
        "def f(float(N) A) -> (O) { «A» = g(A) O = g(A) }",
        "inputs are immutable",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\n"
        "def f(float(N) A) -> (O) { «Q» = g(A) O = g(A) }",
        "add it to the outputs",
    ),
    (
        "def g(float(N) X) -> (Y) { Y(i) = X(i) }\n"
        "def f(float(N) A) -> (int32(N) O) { «O» = g(A) }",
        "int32 of rank 1",
    ),
    # several problems, of one def and of several, in order
    (
        "O, «P» | O(i) = «x»(i) + «y» \n «Q»(i) = «exp()»",
        "'P' is never assigned",
        "undefined tensor or function 'x'",
        "undefined name 'y'",
        "'Q' is neither",
        "takes 1 argument",
    ),
    (
        "def g(float(N) A) -> (O) { O(i) = «B»(i) }\n"
        "def f(float(N) A) -> (O) {\n    O(i) «=» A(j)\n    O(i) = «C»(i)\n}\n"
        "def h(float(N) A) -> (O) { O = g(A) }",
        "'B'",
        "only on the right",
        "'C'",
    ),
)
"""Texts that parse but break a rule: the marked text, then a part of each message in order."""

WARNED = (
    ("«O(m) += A(m, n)»", "+=!"),
    ("«O(m) max= A(m, n)»", "max=!"),
    ("«O(i) *= b(i)»", "*=!"),
    ("O, P | O(i) = b(i) O(i) += b(i) «P += O(i)»", "'P'"),
)
"""Texts that reduce into something never initialised."""
