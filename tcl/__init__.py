"""Tensor Comprehensions for today: index notation in, tuned kernels out."""
