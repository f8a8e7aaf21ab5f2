/* The rules of pool.c by a clock that a test sets: a pool of one worker, which is played. */

#define _GNU_SOURCE
#include <time.h>

static struct timespec times[2]; /* wall, CPU of the worker */

static int test_clock(clockid_t clock, struct timespec *time) {
    *time = times[clock == CLOCK_THREAD_CPUTIME_ID];
    return 0;
}

#define clock_gettime test_clock
#include "pool.c"

void set_clock(int64_t wall, int64_t used) {
    times[0] = (struct timespec){wall / 1000000000, wall % 1000000000};
    times[1] = (struct timespec){used / 1000000000, used % 1000000000};
}

void begin(struct pool *pool) { note(&pool->workers[0], now()); }

int32_t should_run_alone(struct pool *pool, struct call *call) { return runs_alone(pool, call); }

/* The worker's job on both threads ended now. */
void job_ended(struct pool *pool, int64_t begun) { account(pool, &pool->workers[0], begun, 1); }

int64_t slice(void) { return SLICE; }

static void *sleep_on(void *unused) {
    for (;;) pause();
    return 0;
}

/* The worker is in the middle of its part, and ran for so much of the microsecond that the caller
   watched it: the number of cores that it may run on after the caller looked. */
int32_t cores_after(struct pool *pool, int64_t ran) {
    struct worker *worker = &pool->workers[0];
    if (pthread_create(&worker->thread, 0, sleep_on, 0)) return -1;
    pool->others = 1;
    atomic_store(&worker->ticket, JOINED);
    watch(pool);
    times[0].tv_nsec += ran; /* test_clock has the same for all other clocks */
    bool found = fetch(pool, 1000);
    cpu_set_t may;
    CPU_ZERO(&may);
    pthread_getaffinity_np(worker->thread, sizeof may, &may);
    pthread_cancel(worker->thread);
    pthread_join(worker->thread, 0);
    return found == (atomic_load(&worker->moved) == 1) ? CPU_COUNT(&may) : -1;
}

/* Whether the next call of a kernel would run alone as that is faster. */
int32_t goes_alone(struct call *call) { return way(call) == ALONE; }

void call_took(struct call *call, int64_t took) { remember(call, took); }
