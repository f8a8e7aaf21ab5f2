"""Which nests run in the loops of another one, and what becomes of them there."""
