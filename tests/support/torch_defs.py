"""Defs for tests of operators, and what they compute in torch's own words."""

from __future__ import annotations

MM = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def mm_grad(float(M, K) A, float(K, N) B, float(M, N) d_C) -> (d_A, d_B) {
    d_A(m, k) +=! d_C(m, n) * B(k, n)
    d_B(k, n) +=! A(m, k) * d_C(m, n)
}
"""

PICK = """
def pick(float(N) X, int32(M) I) -> (O, P) {
    O(m) = X(I(m))
    P(m) = I(m) + 1
}
def pick_grad(float(N) X, int32(M) I, float(M) d_O) -> (d_X) {
    d_X(n) +=! (I(m) == n ? d_O(m) : 0.0) where n in 0:N
}
"""

SOFT = """
def soft(float(N) X) -> (Y, S) {
    S +=! exp(X(n))
    Y(n) = exp(X(n)) / S
}
def soft_grad(float(N) X, float(N) Y, float S, float(N) d_Y, float d_S) -> (d_X) {
    d_X(n) = d_S * exp(X(n)) + Y(n) * d_Y(n)
    d_X(n) += -Y(n) * Y(m) * d_Y(m)
}
"""

TYPES = """
def mix(bfloat16(N) X, float16(N) Y, uint8(N) Z, bool(N) W, float s) -> (O) {
    O(i) = W(i) ? X(i) + Y(i) + Z(i) : s
}
"""
