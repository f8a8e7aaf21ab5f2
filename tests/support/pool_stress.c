/* Calls from several threads at once on one pool, whose kernels and callers check each other; run
   under sanitizers. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "pool.c"

enum { THREADS = 3, CALLERS = 3, CALLS = 400 };

static struct pool *pool;

/* tensors[0]: a counter that the call's threads share; tensors[1]: how often each did its part;
   tensors[2]: the thread whose check fails. */
static int32_t kernel(int64_t *tensors, struct error *errors, int64_t thread, int64_t threads,
                      void *team) {
    atomic_fetch_add((_Atomic int64_t *)team, 1);
    ((int64_t *)tensors[1])[thread]++;
    if (thread != tensors[2]) return 0;
    errors[thread].failed = 1;
    return 1;
}

static void *calls(void *argument) {
    int64_t seen[THREADS] = {0};
    struct error errors[THREADS] = {{0}};
    _Alignas(LINE) char team[LINE];
    for (int64_t k = 0; k < CALLS; k++) {
        int64_t tensors[3] = {0, (int64_t)seen, k % 7};
        for (int t = 0; t < THREADS; t++) errors[t].failed = 0;
        struct call call = {kernel, tensors, errors, team, THREADS, LINE, pool, 0};
        int32_t failed = tcl_pool_run(&call);
        int64_t parts = *(int64_t *)team;
        /* A worker that came is among the parts; which, nobody knows. */
        int came = k % 7 < THREADS && errors[k % 7].failed;
        if (failed != came || parts < 1 || parts > THREADS || (k % 7 == 0 && !failed)) {
            fprintf(stderr, "call %d: %d parts, failed %d\n", (int)k, (int)parts, failed);
            exit(1);
        }
        if (k % 97 == 0) nanosleep(&(struct timespec){0, 200000}, 0); /* workers fall asleep */
    }
    if (seen[0] != CALLS) exit(2);
    return 0;
}

int main(void) {
    pool = aligned_alloc(LINE, tcl_pool_bytes(THREADS));
    tcl_pool_reset(pool, THREADS);
    pthread_t callers[CALLERS];
    for (int k = 0; k < CALLERS; k++) pthread_create(&callers[k], 0, calls, 0);
    for (int k = 0; k < CALLERS; k++) pthread_join(callers[k], 0);
    puts("right");
    fflush(stdout);
    _Exit(0); /* workers never end */
}
