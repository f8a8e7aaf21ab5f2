"""``einsum``: NumPy's subscripts become a def."""
