/* The pool of threads that kernels run on. It runs without Python, on Linux.

   A job is offered to workers, and nobody waits for one that does not come: those that come join
   it, take parts of its work until none is left (codegen/cpu/emit/sharing.py), and leave. The
   caller does the same; when it finds no more work, it withdraws the offer from those who have not
   come, and waits for the others to leave. So a worker whose core is taken costs its share of the
   speed, and not the time until it has a core.

   A worker's ticket says how things stand:

       IDLE     it waits awake, or is about to
       ASLEEP   it waits in the system's futex, for the ticket to change
       OFFERED  there is a job; the caller writes that, and takes it back if nobody came
       JOINED   it is at work; only the worker itself goes on from there, to IDLE

   A worker waits awake for a while after its last job, then sleeps. Sleepers are woken in a tree:
   the caller wakes two, and everyone who joins two more, whoever is next.

   Workers keep off each other's cores and the caller's. The system likes to wake a thread where its
   waker runs, where it then waits until the caller has done its part alone. A worker that finds
   somebody at the same job on its core keeps to the cores that are left, and the caller sends
   workers away that last ran where it runs; for a while, as the cores may be others' by then.

   A worker that loses its core in the middle of its part makes all others wait. A caller that has
   nothing else to do moves such a worker to its own core, and sleeps until that has left. It never
   lets others go first while it waits: the system may give it its core back at the next tick only,
   some milliseconds later.

   A worker that had so little of its core in the last jobs that one thread would have been faster
   says so; the next calls then run alone, for longer and longer as long as that happens again.

   Threads also lose where each reads what others wrote. A line takes 30 ns from one core to another,
   or 180 if they share no cache, and a hypervisor changes that as it moves them. So short calls try
   now and then which is faster, all threads or one, and do as that found. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

enum {
    PAUSES = 32, /* looks, each with a pause, between two looks at the clock */
    STACK = 4 << 20,
    LEVELS = 5, /* see runs_alone */
    CORES = CPU_SETSIZE,
};

/* All in nanoseconds. So long a worker looks for a job without letting others go first, and a
   caller for workers to leave before it asks what they do: a caller in a loop in Python comes back
   sooner than that. */
static const int64_t SPIN = 50000;
/* A caller that waits for workers that are at work sleeps after so long, for as long at a time. */
static const int64_t PATIENCE = 1000000;
/* So long a worker goes on looking, but lets others run on its core after each look, if its last
   job came within that time: to be woken takes ten times as long as to find a job awake. */
static const int64_t LINGER = 4000000;
/* Its core was somebody else's if it took that long to get it back. Then to sleep is better: the
   system gives a core sooner to a thread that it wakes than to one that let others go first. */
static const int64_t TAKEN = 100000;
/* So long a worker sleeps at once after a job when its core was taken: at first, and at most. */
static const int64_t HASTE = 16000000, MOST_HASTE = 128000000;
/* So long a worker keeps to the cores that nobody else had when it shared one. */
static const int64_t APART = 100000000;
/* How often a worker that waits notes how much of its core it had. So long a caller watches whether
   a worker runs. */
static const int64_t NOTE = 20000;
/* What calls on all threads are taken to have gained at most, compared to calls alone. What a
   worker waits for its core is set against that: a core that is gone now and then, for some
   milliseconds as schedulers give it to others, costs less than to run alone meanwhile. */
static const int64_t CREDIT = 32000000;
/* What a short call risks when it tries all threads again after a longer one was crowded: for about
   as long schedulers give a core to somebody else. */
static const int64_t SLICE = 4000000;

/* Calls that take at most SHORT by all threads in all try whether they are faster alone: so many of
   them each way, of which the first one finds its lines where the other way left them. They go the
   other way once two trials in a row said so. They try again after so many calls, twice as many
   each time that nothing changes. */
enum { TRIAL = 4, DONE = 2 * TRIAL, PAUSE = 64, MOST_PAUSE = 2048 };
static const int64_t SHORT = 4000000;

enum { IDLE, ASLEEP, OFFERED, JOINED };

enum { TOGETHER, ALONE };

/* What different threads write lies on different lines. */
struct worker {
    _Alignas(LINE) _Atomic uint32_t ticket;
    _Atomic uint32_t to_wake; /* 1: it slept when the job was offered, and nobody woke it yet */
    _Atomic int64_t last_core;
    struct pool *pool;
    pthread_t thread;
    int64_t noted, used; /* a time, and its CPU time then */
    int64_t balance;     /* nanoseconds that all threads gained by the last jobs */
    _Atomic int64_t apart;  /* since when it keeps to some cores; 0: it does not */
    _Atomic uint32_t moved; /* 1: to the caller's core, in the middle of its part */
    int64_t watched;        /* its CPU time when the caller last looked */
};

/* What a worker knows of the way it waits. */
struct habit {
    int64_t ended; /* its last job */
    bool soon;     /* whether that came soon after the one before */
    int64_t haste, hasty_until; /* for how long it sleeps at once, and until when */
    int64_t switches; /* of its core to other threads, when it began to wait */
};

struct pool {
    /* Of the caller that has the pool. */
    _Alignas(LINE) _Atomic int64_t taken;
    int64_t started;             /* workers */
    int64_t until, level, pause; /* calls run alone until then; see runs_alone */
    int64_t trial, cause;
    int64_t together; /* wait for every worker, and never run alone */
    /* The job. */
    _Alignas(LINE) struct call *call;
    int64_t others; /* workers that it is offered to */
    int64_t begun;
    pthread_t caller;
    int64_t core; /* the caller's */
    uint32_t number; /* of jobs so far */
    /* Of the workers. */
    _Alignas(LINE) _Atomic uint32_t left; /* workers that joined and left */
    _Atomic uint32_t waits;               /* 1: the caller sleeps until that changes */
    _Atomic int64_t failed;
    _Atomic int64_t crowded, busy; /* how long the longest crowded job took, and would have taken */
    _Alignas(LINE) _Atomic int64_t next; /* the worker that is to be woken next */
    _Alignas(LINE) _Atomic uint32_t cores[CORES]; /* the last job that somebody did on each */
    struct worker workers[];
};

static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t nanoseconds(clockid_t clock) {
    struct timespec time = {0};
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
#if defined __aarch64__
    __builtin_arm_isb(15); /* "yield" does nothing on most cores, a barrier takes a while */
#else
    __builtin_ia32_pause();
#endif
}

static int64_t this_core(void) { return sched_getcpu(); }

/* Let a worker run where the caller may, but not where others are at this job; if no such core is
   left, then just not where the caller is. */
static void keep_off(struct pool *pool, struct worker *worker, pthread_t thread, int64_t core) {
    cpu_set_t may, free;
    CPU_ZERO(&may);
    if (pthread_getaffinity_np(pool->caller, sizeof may, &may)) return;
    if (pool->core >= 0 && pool->core < CORES) CPU_CLR(pool->core, &may);
    free = may;
    for (int k = 0; k < CORES; k++)
        if (atomic_load_explicit(&pool->cores[k], memory_order_relaxed) == pool->number)
            CPU_CLR(k, &free);
    if (!CPU_COUNT(&may) || (!CPU_COUNT(&free) && core != pool->core)) return;
    pthread_setaffinity_np(thread, sizeof may, CPU_COUNT(&free) ? &free : &may);
    atomic_store_explicit(&worker->apart, pool->begun, memory_order_relaxed);
}

/* Let a worker run where the process may again, if that was long ago. */
static void come_back(struct worker *worker, int64_t time) {
    int64_t since = atomic_load_explicit(&worker->apart, memory_order_relaxed);
    cpu_set_t may;
    CPU_ZERO(&may);
    if (!since || time - since < APART || sched_getaffinity(getpid(), sizeof may, &may)) return;
    sched_setaffinity(0, sizeof may, &may);
    atomic_store_explicit(&worker->apart, 0, memory_order_relaxed);
}

/* Say that this thread is at the job on this core; whether somebody was before. */
static bool share_core(struct pool *pool, int64_t core) {
    if (core < 0 || core >= CORES) return false;
    return atomic_exchange_explicit(&pool->cores[core], pool->number, memory_order_relaxed) ==
           pool->number;
}

/* Or until something else happens, such as a signal. */
static void sleep_until_changed(_Atomic uint32_t *word, uint32_t value,
                                const struct timespec *at_most) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, at_most, 0, 0);
}

static void wake_one(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* Wake some sleepers, whoever is next. */
static void wake(struct pool *pool, int count) {
    while (count > 0 && atomic_load_explicit(&pool->next, memory_order_relaxed) < pool->others) {
        int64_t k = atomic_fetch_add_explicit(&pool->next, 1, memory_order_acquire);
        if (k >= pool->others) return;
        struct worker *worker = &pool->workers[k];
        if (!atomic_exchange_explicit(&worker->to_wake, 0, memory_order_relaxed)) continue;
        wake_one(&worker->ticket);
        count--;
    }
}

/* ---- A worker ---- */

static void note(struct worker *worker, int64_t time) {
    worker->noted = time;
    worker->used = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Whether all threads gained by the last jobs, compared to one thread that does them alone, and
   notes for the next time. By a job they gain the time of the others, but lose what a worker waits
   for its core, as all wait with it. A worker that finds that more was lost says how long the job
   took, and would have without the wait. */
static void account(struct pool *pool, struct worker *worker, int64_t begun, int64_t others) {
    int64_t noted = worker->noted, used = worker->used, time = now();
    note(worker, time);
    int64_t took = time - begun;
    int64_t harm = min(max((time - noted) - (worker->used - used), 0), took);
    int64_t balance = worker->balance + others * took - (others + 1) * harm;
    worker->balance = max(min(balance, CREDIT), 0);
    if (balance < 0) {
        raise_to(&pool->crowded, took);
        raise_to(&pool->busy, took - harm);
    }
}

/* How often this thread's core was given to another one. A machine of many that are one in truth
   stands still, too, but then nobody else had the core. */
static int64_t switches(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

/* Until a job is offered, which may be taken back before it is joined. */
static void wait_for_offer(struct worker *worker, struct habit *habit) {
    int64_t begin = worker->noted, time = begin;
    bool hasty = begin < habit->hasty_until, linger = habit->soon && !hasty;
    if (!hasty) habit->switches = switches();
    for (int64_t looks = 0;; looks++) {
        if (atomic_load_explicit(&worker->ticket, memory_order_relaxed) == OFFERED) return;
        wait_a_little();
        if (looks % PAUSES) continue;
        int64_t before = time;
        time = now();
        if (time - before > TAKEN && switches() != habit->switches) {
            habit->haste = min(max(2 * habit->haste, HASTE), MOST_HASTE);
            habit->hasty_until = time + habit->haste;
            break;
        }
        if (hasty) break;
        if (time - begin > SPIN) {
            if (!linger || time - begin > LINGER) break;
            sched_yield();
            looks = -1;
        }
        if (time - worker->noted > NOTE) note(worker, time);
    }
    come_back(worker, time);
    /* It is ASLEEP already if an offer was taken back from one that had just woken. */
    uint32_t found = IDLE;
    if (!atomic_compare_exchange_strong(&worker->ticket, &found, ASLEEP) && found == OFFERED)
        return;
    do sleep_until_changed(&worker->ticket, ASLEEP, 0);
    while (atomic_load_explicit(&worker->ticket, memory_order_relaxed) == ASLEEP);
    note(worker, now());
}

static void work(struct pool *pool, struct worker *worker) {
    struct call *call = pool->call;
    wake(pool, 2);
    int64_t core = this_core();
    atomic_store_explicit(&worker->last_core, core, memory_order_relaxed);
    if (share_core(pool, core)) {
        keep_off(pool, worker, pthread_self(), core);
        share_core(pool, this_core());
    }
    int64_t thread = worker - pool->workers + 1;
    if (call->kernel(call->tensors, call->errors, thread, pool->others + 1, call->team))
        atomic_store_explicit(&pool->failed, 1, memory_order_relaxed);
}

static void *live(void *argument) {
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    struct habit habit = {0};
    note(worker, now());
    habit.ended = worker->noted;
    for (;;) {
        wait_for_offer(worker, &habit);
        uint32_t offered = OFFERED;
        if (!atomic_compare_exchange_strong(&worker->ticket, &offered, JOINED)) continue;
        int64_t begun = pool->begun, others = pool->others, time = now();
        if (time - worker->noted > 2 * NOTE) note(worker, time); /* it lost its core before */
        work(pool, worker);
        atomic_store_explicit(&worker->ticket, IDLE, memory_order_relaxed);
        atomic_fetch_add(&pool->left, 1);
        /* From here on the caller may write the next job. */
        if (atomic_load(&pool->waits)) wake_one(&pool->left);
        account(pool, worker, begun, others);
        habit.soon = begun - habit.ended < LINGER;
        habit.ended = worker->noted;
        /* Where it was moved to, the caller goes on. */
        if (atomic_exchange_explicit(&worker->moved, 0, memory_order_relaxed))
            habit.hasty_until = max(habit.hasty_until, habit.ended + 1);
        if (habit.ended > habit.hasty_until + 4 * MOST_HASTE) habit.haste = 0;
    }
    return 0;
}

/* ---- A caller ---- */

/* Start workers until there are so many; the number that there are then. They block all signals,
   which are the main thread's, and end with the process. */
static int64_t grow(struct pool *pool, int64_t wanted) {
    sigset_t all, before;
    _Alignas(pthread_attr_t) char size[64]; /* so large on AArch64; 56 on x86-64 */
    pthread_attr_t *how = (pthread_attr_t *)size;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(how);
    pthread_attr_setdetachstate(how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(how, STACK);
    for (; pool->started < wanted; pool->started++) {
        struct worker *worker = &pool->workers[pool->started];
        atomic_store_explicit(&worker->ticket, IDLE, memory_order_relaxed);
        atomic_store_explicit(&worker->to_wake, 0, memory_order_relaxed);
        atomic_store_explicit(&worker->last_core, -1, memory_order_relaxed);
        worker->pool = pool;
        worker->balance = 0;
        atomic_store_explicit(&worker->apart, 0, memory_order_relaxed);
        atomic_store_explicit(&worker->moved, 0, memory_order_relaxed);
        if (pthread_create(&worker->thread, how, live, worker)) break;
    }
    pthread_attr_destroy(how);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return pool->started;
}

/* Offer a job to as many workers as there are, at most one less than its threads. */
static void offer(struct pool *pool, struct call *call) {
    int64_t wanted = call->threads - 1;
    int64_t others = min(pool->started < wanted ? grow(pool, wanted) : pool->started, wanted);
    pool->call = call;
    pool->others = others;
    pool->caller = pthread_self();
    pool->begun = now();
    pool->number++;
    int64_t core = pool->core = this_core();
    share_core(pool, core);
    atomic_store_explicit(&pool->left, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->failed, 0, memory_order_relaxed);
    /* Nobody is woken before all tickets are set. */
    atomic_store_explicit(&pool->next, others, memory_order_relaxed);
    bool asleep = false;
    for (int64_t k = 0; k < others; k++) {
        struct worker *worker = &pool->workers[k];
        if (atomic_load_explicit(&worker->last_core, memory_order_relaxed) == core)
            keep_off(pool, worker, worker->thread, core);
        if (atomic_exchange(&worker->ticket, OFFERED) == ASLEEP) {
            atomic_store_explicit(&worker->to_wake, 1, memory_order_relaxed);
            asleep = true;
        }
    }
    if (asleep) {
        atomic_store_explicit(&pool->next, 0, memory_order_release);
        wake(pool, 2);
    }
}

/* Take a job back from those who did not join; how many did. */
static int64_t withdraw(struct pool *pool) {
    int64_t joined = 0;
    for (int64_t k = 0; k < pool->others; k++) {
        struct worker *worker = &pool->workers[k];
        bool sleeps = atomic_exchange_explicit(&worker->to_wake, 0, memory_order_relaxed);
        uint32_t offered = OFFERED;
        joined += !atomic_compare_exchange_strong(&worker->ticket, &offered,
                                                  sleeps ? ASLEEP : IDLE);
    }
    return joined;
}

/* Look for so long whether so many workers have left. */
static bool have_left(struct pool *pool, uint32_t joined, int64_t at_most) {
    int64_t begin = 0;
    for (int64_t looks = 1; atomic_load_explicit(&pool->left, memory_order_acquire) != joined;) {
        wait_a_little();
        if (looks++ % PAUSES) continue;
        if (!begin) begin = now();
        else if (now() - begin > at_most) return false;
    }
    return true;
}

static int64_t cpu_time(pthread_t thread) {
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) ? 0 : nanoseconds(clock);
}

static void watch(struct pool *pool) {
    for (int64_t k = 0; k < pool->others; k++)
        pool->workers[k].watched = cpu_time(pool->workers[k].thread);
}

/* Move workers to this core that are at work, but did not run for half of the time since they were
   watched; whether there was one. */
static bool fetch(struct pool *pool, int64_t time) {
    int64_t core = this_core();
    if (core < 0 || core >= CORES) return false;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(core, &here);
    bool found = false;
    for (int64_t k = 0; k < pool->others; k++) {
        struct worker *worker = &pool->workers[k];
        if (atomic_load_explicit(&worker->ticket, memory_order_relaxed) != JOINED) continue;
        if (2 * (cpu_time(worker->thread) - worker->watched) > time) continue;
        atomic_store_explicit(&worker->moved, 1, memory_order_relaxed);
        atomic_store_explicit(&worker->last_core, core, memory_order_relaxed);
        atomic_store_explicit(&worker->apart, 1, memory_order_relaxed); /* until it sleeps */
        pthread_setaffinity_np(worker->thread, sizeof here, &here);
        found = true;
    }
    return found;
}

static void sleep_while_missing(struct pool *pool, uint32_t joined) {
    const struct timespec at_most = {.tv_nsec = PATIENCE};
    atomic_store(&pool->waits, 1);
    uint32_t left = atomic_load(&pool->left);
    if (left != joined) sleep_until_changed(&pool->left, left, &at_most);
    atomic_store_explicit(&pool->waits, 0, memory_order_relaxed);
}

/* Until so many workers have left. */
static void wait_for(struct pool *pool, uint32_t joined) {
    for (int64_t waited = 0; !have_left(pool, joined, SPIN); waited += SPIN + NOTE) {
        int64_t begin = now();
        watch(pool);
        if (have_left(pool, joined, NOTE)) return;
        if (fetch(pool, now() - begin) || waited > PATIENCE) sleep_while_missing(pool, joined);
    }
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

/* Which way the next call goes: in the second half of a trial the other one. */
static int64_t way(struct call *call) {
    return call->way ^ (call->tried >= TRIAL && call->tried < DONE);
}

static int64_t *took_by(struct call *call, int64_t way) {
    return way == ALONE ? &call->alone_took : &call->together_took;
}

/* Remember how long a call took, and what that says of the next ones. */
static void remember(struct call *call, int64_t took) {
    if (call->varies) return;
    if (call->tried == DONE) {
        if (!--call->left) call->tried = 0;
        return;
    }
    int64_t *sum = took_by(call, way(call));
    *sum = call->tried % TRIAL ? *sum + took : 0;
    call->tried++;
    int64_t own = *took_by(call, call->way), other = *took_by(call, !call->way);
    bool faster = false;
    if (call->tried <= TRIAL) {
        bool is_short = call->way == ALONE || own * call->threads <= SHORT * (TRIAL - 1);
        if (call->tried < TRIAL || is_short) return;
    } else {
        /* What is many times as long needs no more calls; the first of them may be, all the same. */
        int64_t times = call->tried == TRIAL + 1 ? 16 : 4;
        bool hopeless = took > times * own / (TRIAL - 1);
        if (call->tried < DONE && !hopeless) return;
        faster = !hopeless && other < own - own / 16;
    }
    bool changes = faster && call->seemed;
    call->seemed = faster && !changes;
    call->tried = DONE;
    call->way ^= changes;
    call->left = call->pause = faster ? PAUSE : min(max(2 * call->pause, PAUSE), MOST_PAUSE);
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
    bool slower = way(call) == ALONE && !pool->together;
    if (slower || ((pool->until | pool->level | crowded) && runs_alone(pool, call))) {
        atomic_store_explicit(&pool->taken, 0, memory_order_release);
        int64_t begun = now();
        int32_t result = alone(call);
        int64_t took = now() - begun;
        if (slower) remember(call, took);
        else call->alone = took;
        return result;
    }
    offer(pool, call);
    int64_t begun = pool->begun;
    int32_t own = call->kernel(call->tensors, call->errors, 0, pool->others + 1, call->team);
    wait_for(pool, pool->together ? pool->others : withdraw(pool));
    int32_t theirs = atomic_load_explicit(&pool->failed, memory_order_relaxed);
    bool remembers = !pool->together;
    atomic_store_explicit(&pool->taken, 0, memory_order_release);
    if (remembers) remember(call, now() - begun);
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
}

/* Whether all workers take part in every call, whatever else they find; for tests. */
void tcl_pool_together(struct pool *pool, int64_t always) { pool->together = always; }
