"""The launch shape of kernels that users wrote: blocks of CUDA threads, chunks of a CPU's range."""
