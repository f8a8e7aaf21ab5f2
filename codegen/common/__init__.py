"""What every part of the compiler needs: kept files, recursion, NumPy's types, rounding."""
