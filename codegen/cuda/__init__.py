"""CUDA: scheduled loops as CUDA C++, compiled by NVRTC, launched through CuPy."""
