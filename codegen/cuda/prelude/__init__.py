"""Functions that CUDA C++ lacks, which kernels bring along."""
