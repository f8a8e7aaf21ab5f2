"""C++ expressions."""
