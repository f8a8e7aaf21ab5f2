/* The pool of threads that kernels run on. It runs without Python and needs nothing but POSIX
   threads.

   A job is handed over by setting the ticket of each worker that takes part. A worker looks at its
   ticket for a while after its last job, then sleeps. Before it does, it counts itself among the
   sleepers and looks once more: so either it sees that the ticket was set, or the caller sees that
   somebody has to be woken. Both the ticket and the count are sequentially consistent for that.

   On Linux, workers keep off the caller's core. The system likes to wake a thread where its waker
   runs, where it then waits until the caller has done its part alone. A worker that finds itself
   there forbids itself that core, and the caller forbids its core to workers that last ran on it,
   as happens when it was moved.

   Where other processes keep the cores busy, a call that waits for workers can take many times as
   long as one thread would. A worker that had so little of its core in the last jobs that one
   thread would have been faster says so; the next calls then run alone, for longer and longer as
   long as that happens again. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "call.h"

enum {
    PAUSES = 32, /* looks, each with a pause, between two looks at the clock */
    STACK = 4 << 20,
    LEVELS = 5, /* see runs_alone */
};

/* All in nanoseconds. A worker waits awake so long for its next job: it takes a tenth of the time
   to begin it then, and a caller in a loop in Python comes back sooner than that. */
static const int64_t WORKER_SPIN = 50000;
/* After this, a caller that waits for workers lets others run on its core. */
static const int64_t CALLER_SPIN = 50000;
/* What a worker that slept may be late without its core being taken: to be woken takes less. */
static const int64_t SLACK = 100000;
/* What calls on all threads are taken to have gained at most, compared to calls alone. What a
   worker waits for its core is set against that: a core that is gone now and then, for some
   milliseconds as schedulers give it to others, costs less than to run alone meanwhile. */
static const int64_t CREDIT = 32000000;
/* What a short call risks when it tries all threads again after a longer one was crowded: for about
   as long schedulers give a core to somebody else. */
static const int64_t SLICE = 4000000;

/* What different threads write lies on different lines. */
struct worker {
    _Alignas(LINE) _Atomic int64_t ticket; /* 1: there is a job */
    _Atomic int64_t last_core;
    struct pool *pool;
    pthread_t thread;
    int64_t asleep;      /* since when it slept before its last job; 0: it did not */
    int64_t ended, used; /* when its last job ended, and its CPU time then */
    int64_t balance;     /* nanoseconds that all threads gained by the last jobs */
};

struct pool {
    /* Of the caller that has the pool. */
    _Alignas(LINE) _Atomic int64_t taken;
    int64_t started;                   /* workers */
    int64_t until, level, pause;       /* calls run alone until then; see runs_alone */
    int64_t trial, cause;
    int64_t together;                  /* never alone, whatever is lost */
    /* The job. */
    _Alignas(LINE) struct call *call;
    int64_t threads, core, begun;
    pthread_t caller;
    /* Of the workers. */
    _Alignas(LINE) _Atomic int64_t done;
    _Atomic int64_t failed;
    _Atomic int64_t crowded, busy; /* how long the longest crowded job took, and would have taken */
    _Alignas(LINE) _Atomic int64_t sleepers;
    _Alignas(LINE) pthread_mutex_t mutex;
    pthread_cond_t condition;
    struct worker workers[];
};

static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t now(void) { return nanoseconds(CLOCK_MONOTONIC); }

static void raise_to(_Atomic int64_t *word, int64_t value) {
    int64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               word, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static inline void wait_a_little(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb"); /* "yield" does nothing on most cores, a barrier takes a while */
#endif
}

/* Wait awake until a word has a value, but not for longer than so many nanoseconds: 0, or the time
   when it gave up. */
static inline int64_t spin(const _Atomic int64_t *word, int64_t value, int64_t limit) {
    int64_t begin = now();
    for (;;) {
        for (int k = 0; k < PAUSES; k++) {
            if (atomic_load_explicit(word, memory_order_acquire) == value) return 0;
            wait_a_little();
        }
        int64_t time = now();
        if (time - begin > limit) return time;
    }
}

#ifdef __linux__
static int64_t this_core(void) { return sched_getcpu(); }

/* Let a thread run where the caller may, but not on this core, if there is another one. */
static void forbid(pthread_t thread, pthread_t caller, int64_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < 0 || core >= CPU_SETSIZE || pthread_getaffinity_np(caller, sizeof set, &set)) return;
    CPU_CLR(core, &set);
    if (CPU_COUNT(&set)) pthread_setaffinity_np(thread, sizeof set, &set);
}
#else
static int64_t this_core(void) { return -1; }
static void forbid(pthread_t thread, pthread_t caller, int64_t core) {}
#endif

/* ---- A worker ---- */

static void note(struct worker *worker) {
    worker->ended = now();
    worker->used = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    worker->asleep = 0;
}

/* Whether all threads gained by the last jobs, compared to one thread that does them alone, and
   notes for the next time. By a job they gain the time of the others, but lose what a worker waits
   for its core, as all wait with it. A worker that finds that more was lost says how long the job
   took, and would have without the wait, and passes over what it loses in the next one: it sleeps
   until then, and may be late. */
static void account(struct pool *pool, struct worker *worker, int64_t begun, int64_t threads) {
    int64_t asleep = worker->asleep, ended = worker->ended, used = worker->used;
    note(worker);
    int64_t took = worker->ended - begun;
    int64_t without_core = (worker->ended - ended) - (worker->used - used);
    int64_t granted = asleep ? max(begun - asleep, 0) + SLACK : 0;
    int64_t harm = min(max(without_core - granted, 0), took);
    int64_t gained = (threads - 1) * took - threads * harm;
    int64_t balance = worker->balance < 0 ? max(gained, 0) : worker->balance + gained;
    worker->balance = max(min(balance, CREDIT), -1);
    if (balance < 0) {
        raise_to(&pool->crowded, took);
        raise_to(&pool->busy, took - harm);
    }
}

static void work(struct pool *pool, struct worker *worker) {
    struct call *call = pool->call;
    int64_t core = this_core();
    atomic_store_explicit(&worker->last_core, core, memory_order_relaxed);
    if (core == pool->core) forbid(pthread_self(), pool->caller, core);
    int64_t thread = worker - pool->workers + 1;
    if (call->kernel(call->tensors, call->errors, thread, pool->threads, call->team))
        atomic_store_explicit(&pool->failed, 1, memory_order_relaxed);
}

static void *live(void *argument) {
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    for (note(worker);;) {
        int64_t late = spin(&worker->ticket, 1, WORKER_SPIN);
        if (late) {
            worker->asleep = late;
            pthread_mutex_lock(&pool->mutex);
            atomic_fetch_add(&pool->sleepers, 1);
            while (!atomic_load(&worker->ticket)) pthread_cond_wait(&pool->condition, &pool->mutex);
            atomic_fetch_sub(&pool->sleepers, 1);
            pthread_mutex_unlock(&pool->mutex);
        }
        atomic_store_explicit(&worker->ticket, 0, memory_order_relaxed);
        int64_t begun = pool->begun, threads = pool->threads;
        work(pool, worker);
        /* From here on the caller may write the next job. */
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        account(pool, worker, begun, threads);
    }
    return 0;
}

/* ---- A caller ---- */

/* Start workers until there are so many; the number that there are then. They block all signals,
   which are the main thread's, and end with the process. */
static int64_t grow(struct pool *pool, int64_t wanted) {
    sigset_t all, before;
    pthread_attr_t how;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, STACK);
    for (; pool->started < wanted; pool->started++) {
        struct worker *worker = &pool->workers[pool->started];
        atomic_store_explicit(&worker->ticket, 0, memory_order_relaxed);
        atomic_store_explicit(&worker->last_core, -1, memory_order_relaxed);
        worker->pool = pool;
        worker->balance = 0;
        if (pthread_create(&worker->thread, &how, live, worker)) break;
    }
    pthread_attr_destroy(&how);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return pool->started;
}

/* Give a job to as many workers as there are, at most one less than its threads; their number. */
static int64_t hand_out(struct pool *pool, struct call *call) {
    int64_t wanted = call->threads - 1;
    int64_t others = min(pool->started < wanted ? grow(pool, wanted) : pool->started, wanted);
    pool->call = call;
    pool->threads = others + 1;
    pool->core = this_core();
    pool->caller = pthread_self();
    pool->begun = now();
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->failed, 0, memory_order_relaxed);
    for (int64_t k = 0; k < others; k++) {
        struct worker *worker = &pool->workers[k];
        if (atomic_load_explicit(&worker->last_core, memory_order_relaxed) == pool->core)
            forbid(worker->thread, pool->caller, pool->core);
        atomic_store(&worker->ticket, 1);
    }
    if (atomic_load(&pool->sleepers)) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->condition);
        pthread_mutex_unlock(&pool->mutex);
    }
    return others;
}

/* Whether a call that has the pool should run alone, as calls before it were crowded.

   Calls run alone for 2, 4, ... 2^LEVELS times as long as the one that was crowded took. They have
   to go well together for as long before the next time that they run alone is shorter. How long
   they are to run alone is a matter of what a try costs that is crowded again, and so of how long
   they are: a short one need not wait for as long as a long one that was crowded had better, nor
   may a long one try as often as a short one. */
static bool runs_alone(struct pool *pool, struct call *call) {
    int64_t time = now();
    int64_t crowded = atomic_exchange_explicit(&pool->crowded, 0, memory_order_relaxed);
    if (pool->together) return false;
    if (crowded) {
        pool->level = min(pool->level + 1, LEVELS);
        pool->pause = crowded << pool->level;
        pool->cause = atomic_exchange_explicit(&pool->busy, 0, memory_order_relaxed);
        pool->until = time + pool->pause;
        return true;
    }
    bool waited = pool->until != 0;
    if (waited) {
        int64_t risk = call->alone + SLICE;
        int64_t length = risk < pool->cause ? min(pool->pause, risk << pool->level)
                                            : max(pool->pause, call->alone << pool->level);
        if (time < pool->until - pool->pause + length) return true;
        pool->until = 0;
    } else if (time >= pool->trial) {
        pool->level /= 2;
    }
    if (waited || time >= pool->trial) pool->trial = time + pool->pause;
    return false;
}

static int32_t alone(struct call *call) {
    return call->kernel(call->tensors, call->errors, 0, 1, call->team);
}

/* A call: on the pool, or on this thread alone if another one has the pool, so that nothing is
   waited for and no core has two of our threads to run. 1 if a thread's check failed. */
int32_t tcl_pool_run(struct call *call) {
    struct pool *pool = call->pool;
    memset(call->team, 0, call->clear);
    int64_t nobody = 0;
    if (!atomic_compare_exchange_strong_explicit(&pool->taken, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return alone(call);
    int64_t crowded = atomic_load_explicit(&pool->crowded, memory_order_relaxed);
    if ((pool->until | pool->level | crowded) && runs_alone(pool, call)) {
        atomic_store_explicit(&pool->taken, 0, memory_order_release);
        int64_t begun = now();
        int32_t result = alone(call);
        call->alone = now() - begun;
        return result;
    }
    int64_t others = hand_out(pool, call);
    int32_t own = call->kernel(call->tensors, call->errors, 0, others + 1, call->team);
    if (spin(&pool->done, others, CALLER_SPIN))
        while (atomic_load_explicit(&pool->done, memory_order_acquire) != others) sched_yield();
    int32_t theirs = atomic_load_explicit(&pool->failed, memory_order_relaxed);
    atomic_store_explicit(&pool->taken, 0, memory_order_release);
    return own | theirs;
}

/* ---- The memory ---- */

/* Bytes of a pool for calls on so many threads. It begins on a line. */
int64_t tcl_pool_bytes(int64_t threads) {
    return sizeof(struct pool) + (threads - 1) * sizeof(struct worker);
}

/* A pool of no threads, whatever was there before: after a fork, none is left. */
void tcl_pool_reset(struct pool *pool, int64_t threads) {
    memset(pool, 0, tcl_pool_bytes(threads));
    pthread_mutex_init(&pool->mutex, 0);
    pthread_cond_init(&pool->condition, 0);
}

/* Whether calls run on all of their threads however little of their cores these have; for tests. */
void tcl_pool_together(struct pool *pool, int64_t always) { pool->together = always; }
