"""Loop IR as CUDA C++."""
