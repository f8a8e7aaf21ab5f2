"""Defs whose gradients take what was made on the way, and make something on the way themselves."""

from __future__ import annotations

SOFTMAX = """
def softmax(float(N, D) I) -> (O, most, total) {
    most(n) max=! I(n, d)
    total(n) +=! exp(I(n, d) - most(n))
    O(n, d) = exp(I(n, d) - most(n)) / total(n)
}
def softmax_grad(float(N, D) O, float(N, D) d_O) -> (dot, d_I) {
    dot(n) +=! O(n, d) * d_O(n, d)
    d_I(n, d) = O(n, d) * (d_O(n, d) - dot(n))
}
"""

RMS_NORM = """
def rms_norm(float(N, D) X, float(D) G) -> (scale, O) {
    scale(n) +=! X(n, d) * X(n, d)
    scale(n) = rsqrt(scale(n) / D + 1e-5)
    O(n, d) = X(n, d) * scale(n) * G(d)
}
def rms_norm_grad(float(N) scale, float(N, D) d_O, float(D) G, float(N, D) X) -> (d_G, d_X, dot) {
    dot(n) +=! d_O(n, d) * G(d) * X(n, d)
    dot(n) = dot(n) * scale(n) * scale(n) / D
    d_X(n, d) = scale(n) * (d_O(n, d) * G(d) - X(n, d) * dot(n))
    d_G(d) +=! d_O(n, d) * X(n, d) * scale(n)
}
"""

LAYER_NORM = """
def layer_norm(float(N, D) I, float(D) gamma, float(D) beta) -> (O, mean, scale) {
    mean(n) +=! I(n, d)
    mean(n) = mean(n) / D
    scale(n) +=! (I(n, d) - mean(n)) * (I(n, d) - mean(n))
    scale(n) = rsqrt(scale(n) / D + 1e-5)
    O(n, d) = (I(n, d) - mean(n)) * scale(n) * gamma(d) + beta(d)
}
def layer_norm_grad(float(N, D) I, float(D) gamma, float(N) mean, float(N) scale, float(N, D) d_O)
    -> (x, a, b, d_I, d_gamma, d_beta)
{
    x(n, d) = (I(n, d) - mean(n)) * scale(n)
    a(n) +=! d_O(n, d) * gamma(d)
    b(n) +=! d_O(n, d) * gamma(d) * x(n, d)
    d_I(n, d) = scale(n) * (d_O(n, d) * gamma(d) - (a(n) + x(n, d) * b(n)) / D)
    d_gamma(d) +=! d_O(n, d) * x(n, d)
    d_beta(d) +=! d_O(n, d)
}
"""
