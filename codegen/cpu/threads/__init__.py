"""The pool of threads that kernels run on."""
