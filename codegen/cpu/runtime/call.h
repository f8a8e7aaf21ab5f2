/* How a kernel is entered. codegen/cpu/abi.py has the same words for Python and for what emits
   kernels; a test compares the two. */

#ifndef TCL_CALL_H
#define TCL_CALL_H

#include <stdint.h>

enum { LINE = 64 }; /* bytes of a line of the cache */
enum { PAGE = 4096 }; /* see abi.py */

/* What one thread of a call reports, on a line of its own. */
struct error {
    int64_t failed; /* 1 if a check of a data-dependent subscript failed */
    int64_t site;
    int64_t value;
    int64_t unused[4];
    int64_t stop; /* in the first thread's: once it is not 0, threads leave soon */
};

/* One thread's part of a call; 1 if its check failed, else 0. */
typedef int32_t kernel_function(int64_t *tensors, struct error *errors, int64_t thread,
                                int64_t threads, void *team);

struct call {
    kernel_function *kernel;
    int64_t *tensors;     /* the addresses of the tensors' first elements */
    struct error *errors; /* one for each thread */
    void *team;           /* memory by which the threads meet */
    int64_t threads;
    int64_t clear; /* bytes of the team's memory, which is cleared when a call begins */
    struct pool *pool;
    int64_t alone; /* nanoseconds that the last call took that ran alone as cores were taken */
    /* Whether calls run alone as that is faster, by pool.c. */
    int64_t way;           /* TOGETHER or ALONE */
    int64_t tried;         /* calls of the trial that is under way, DONE between trials */
    int64_t together_took; /* nanoseconds of those that ran together ... */
    int64_t alone_took;    /* ... and alone, without the first ones */
    int64_t left;          /* calls before the next trial */
    int64_t pause;         /* those after the last one */
    int64_t seemed;        /* 1: in the last trial the other way was faster */
    int64_t varies;        /* 1: calls with this record have sizes of their own, and try nothing */
};

#endif
