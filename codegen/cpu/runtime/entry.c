/* A kernel as a function of addresses, for callers without Python: codegen/cpu/run/native.py, which
   fills tcl_entry. All that a call needs besides its arguments is one piece of memory, a frame: the
   call's record, the errors of its threads, the memory by which these meet, the addresses of
   tensors, scratch memory.

   A call takes a frame out of a slot and puts it back after; one that finds no frame makes one, and
   one that finds no empty slot frees its own. Slots are changed by single atomic exchanges, so that
   nobody waits for anybody, not even in a process that was forked while another thread was in a
   call. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

enum { FAILED = 1, NO_MEMORY = 2, SLOTS = 8 };

struct entry {
    int32_t (*call)(struct call *);
    int64_t passed;          /* addresses, or sizes, that a caller passes */
    const int64_t *places;   /* the kernel's arguments that these are */
    int64_t bytes;           /* of a frame */
    const void *head;        /* what a new frame begins with */
    int64_t head_bytes;
    const int64_t *moved;    /* the words of it that are positions in the frame: they get addresses */
    int64_t moved_count;
    int64_t errors, tensors; /* positions in the frame */
    int64_t threads;
};

_Alignas(LINE) struct entry tcl_entry;
_Alignas(LINE) static _Atomic(char *) slots[SLOTS];

static char *make(void) {
    void *made;
    if (posix_memalign(&made, PAGE, tcl_entry.bytes)) return 0;
    int64_t *words = memcpy(made, tcl_entry.head, tcl_entry.head_bytes);
    for (int64_t k = 0; k < tcl_entry.moved_count; k++)
        words[tcl_entry.moved[k]] += (int64_t)made;
    return made;
}

static inline char *take(void) {
    for (int k = 0; k < SLOTS; k++) {
        if (!atomic_load_explicit(&slots[k], memory_order_relaxed)) continue;
        char *kept = atomic_exchange_explicit(&slots[k], 0, memory_order_acquire);
        if (kept) return kept;
    }
    return make();
}

static inline void give_back(char *frame) {
    for (int k = 0; k < SLOTS; k++) {
        char *empty = atomic_load_explicit(&slots[k], memory_order_relaxed);
        if (!empty && atomic_compare_exchange_strong_explicit(
                          &slots[k], &empty, frame, memory_order_release, memory_order_relaxed))
            return;
    }
    free(frame);
}

/* Nothing is checked of the addresses. 0, NO_MEMORY, or FAILED with site and value in error. */
int32_t tcl_entry_call(const int64_t *addresses, int64_t error[2]) {
    char *frame = take();
    if (!frame) return NO_MEMORY;
    int64_t *tensors = (int64_t *)(frame + tcl_entry.tensors);
    for (int64_t k = 0; k < tcl_entry.passed; k++) tensors[tcl_entry.places[k]] = addresses[k];
    if (!tcl_entry.call((struct call *)frame)) {
        give_back(frame);
        return 0;
    }
    const struct error *first = (struct error *)(frame + tcl_entry.errors), *each = first;
    for (int64_t k = 0; k < tcl_entry.threads; k++, each++)
        if (each->failed && (!first->failed || each->site < first->site)) first = each;
    error[0] = first->site; /* the first in the program: threads may fail in other statements */
    error[1] = first->value;
    free(frame); /* its errors are set */
    return FAILED;
}

/* Free the frames that are kept; no call may run. */
void tcl_entry_free(void) {
    for (int k = 0; k < SLOTS; k++) free(atomic_exchange(&slots[k], 0));
}
