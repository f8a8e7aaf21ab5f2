"""What every room of the compiler needs: errors, kept files, recursion, NumPy's types."""
