/* A call whose arrays are like those of an earlier one: tcl/arrays/likeness.py. What Python has to
   be asked for, array by array, takes longer than a small kernel; here it is read from where
   Python's, NumPy's, torch's and CuPy's objects keep it. Where these lie is tried on objects of the process
   before anything here is called. */

#include <stdbool.h>
#include <stddef.h>

#include "call.h"

/* Of an array that is called for; see Record in likeness.py. */
struct wanted {
    int64_t type;         /* its Python type's address */
    int64_t element_type; /* its dtype's address; torch's number */
    int64_t rank;
    int64_t unaligned; /* bits that no address has */
    int64_t flags;     /* bits that NumPy's flags have; torch's word of its kind; CuPy's device */
    int64_t filled;    /* whether there are elements */
    const int64_t *layout; /* sizes, then strides */
    int64_t place;         /* among the kernel's arguments */
};

/* Two arguments that may not overlap: the distance of the one from the other is not between. */
struct pair {
    int64_t one, other, low, high;
};

struct likeness {
    int64_t inputs, outputs, pairs;
    int32_t (*kernel)(struct call *);
    struct wanted arrays[]; /* inputs, outputs; the pairs follow */
};

enum { UNLIKE = 2, NOWHERE = -1 }; /* besides a kernel's results; no address */

/* ---- Python: functions of its C API, and where its objects keep things ---- */

struct python {
    void *(*save_thread)(void);
    void (*restore_thread)(void *);
    void *(*as_pointer)(void *integer);
    void *(*integer)(long);
    int64_t items; /* bytes from a tuple's beginning to its items */
} tcl_python;

struct object {
    int64_t references, type;
};

struct tuple {
    struct object object;
    int64_t size;
};

/* As PyArrayObject_fields of NumPy's C API. */
struct numpy_array {
    struct object object;
    int64_t data;
    int32_t rank;
    const int64_t *sizes, *strides;
    void *base;
    int64_t dtype;
    int32_t flags;
};

/* ---- CuPy: as Cython lays out its classes ---- */

struct cupy_memory {
    struct object object;
    void *methods;
    int64_t address;
    int32_t device;
};

struct cupy_array {
    struct object object;
    void *methods, *weak;
    int64_t size;
    const int64_t *sizes, *sizes_end, *sizes_room, *strides, *strides_end, *strides_room;
    int32_t row_major, column_major;
    int64_t short_indices;
    int64_t dtype;
    const struct cupy_memory *memory;
};

/* ---- torch: what libtorch exports for compiled code ---- */

typedef int32_t ask(const void *tensor, void *answer);

struct torch {
    ask *dim, *dtype, *sizes, *strides, *data;
    /* What may watch calls: a mode of this thread; a dispatch key; what torch.jit.trace records. */
    bool (*any_modes)(bool skip_infra);
    bool (*key_included)(uint16_t key);
    void **(*tracing_state)(void);
    int64_t key;  /* the dispatch key that is on while operators are recorded before dispatch */
    int64_t keys; /* bytes from a tensor's implementation to the word of its kind */
} tcl_torch;

struct torch_tensor {
    struct object object;
    const char *implementation;
};

static inline bool same(const int64_t *one, const int64_t *other, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (one[k] != other[k]) return false;
    return true;
}

static inline bool like(const struct wanted *wanted, const int64_t *sizes, const int64_t *strides) {
    return same(sizes, wanted->layout, wanted->rank) &&
           same(strides, wanted->layout + wanted->rank, wanted->rank);
}

/* Where an array's elements lie; NOWHERE if it is not as wanted. */
static inline int64_t numpy_address(const void *object, const struct wanted *wanted) {
    const struct numpy_array *array = object;
    if (array->dtype != wanted->element_type || array->rank != wanted->rank ||
        (array->flags & wanted->flags) != wanted->flags ||
        !like(wanted, array->sizes, array->strides))
        return NOWHERE;
    return array->data;
}

static inline int64_t cupy_address(const void *object, const struct wanted *wanted) {
    const struct cupy_array *array = object;
    if (array->dtype != wanted->element_type || array->memory->device != wanted->flags ||
        array->sizes_end - array->sizes != wanted->rank ||
        !like(wanted, array->sizes, array->strides))
        return NOWHERE;
    return array->memory->address;
}

static inline int64_t torch_address(const void *object, const struct wanted *wanted) {
    const struct torch_tensor *tensor = object;
    const void *handle = &tensor->implementation;
    if (*(const int64_t *)(tensor->implementation + tcl_torch.keys) != wanted->flags)
        return NOWHERE;
    int32_t dtype;
    int64_t rank, data;
    const int64_t *sizes, *strides;
    tcl_torch.dtype(handle, &dtype);
    tcl_torch.dim(handle, &rank);
    if (dtype != wanted->element_type || rank != wanted->rank) return NOWHERE;
    tcl_torch.sizes(handle, &sizes);
    tcl_torch.strides(handle, &strides);
    if (!like(wanted, sizes, strides)) return NOWHERE;
    tcl_torch.data(handle, &data);
    return data || !wanted->filled ? data : NOWHERE; /* its memory may have been freed */
}

/* Whether torch records nothing in this thread, so that nobody misses a call. */
static bool torch_is_plain(void) {
    return !tcl_torch.any_modes(false) && !tcl_torch.key_included(tcl_torch.key) &&
           !*tcl_torch.tracing_state();
}

typedef int64_t address_function(const void *array, const struct wanted *wanted);

static inline void *item(const struct tuple *tuple, int64_t k) {
    return ((void **)((char *)tuple + tcl_python.items))[k];
}

/* Whether arrays are as wanted; then the addresses of their elements are in ``tensors``. */
static inline bool alike(address_function *address, const struct tuple *inputs,
                         const struct tuple *outputs, const struct likeness *likeness,
                         int64_t *tensors) {
    int64_t all = likeness->inputs + likeness->outputs;
    if (inputs->size != likeness->inputs || outputs->size != likeness->outputs) return false;
    for (int64_t k = 0; k < all; k++) {
        const struct wanted *wanted = &likeness->arrays[k];
        const struct object *array =
            k < likeness->inputs ? item(inputs, k) : item(outputs, k - likeness->inputs);
        if (array->type != wanted->type) return false;
        int64_t found = address(array, wanted);
        if (found == NOWHERE || found & wanted->unaligned) return false;
        tensors[wanted->place] = found;
    }
    const struct pair *pairs = (const struct pair *)&likeness->arrays[all];
    for (const struct pair *pair = pairs; pair < pairs + likeness->pairs; pair++) {
        int64_t distance = tensors[pair->one] - tensors[pair->other];
        if (pair->low < distance && distance < pair->high) return false;
    }
    return true;
}

static inline int64_t run(address_function *address, const struct tuple *inputs,
                          const struct tuple *outputs, const struct likeness *likeness,
                          struct call *call) {
    if (!alike(address, inputs, outputs, likeness, call->tensors)) return UNLIKE;
    void *thread = tcl_python.save_thread();
    int32_t result = likeness->kernel(call);
    tcl_python.restore_thread(thread);
    return result;
}

/* Methods for Python (METH_FASTCALL): self is a likeness's address; inputs and outputs, two tuples,
   and the address of a call's record are given. A kernel's result, or UNLIKE, and nothing ran. */

void *tcl_call_numpy(void *self, void **given, int64_t count) {
    return tcl_python.integer(run(numpy_address, given[0], given[1], tcl_python.as_pointer(self),
                                  tcl_python.as_pointer(given[2])));
}

void *tcl_call_torch(void *self, void **given, int64_t count) {
    if (!torch_is_plain()) return tcl_python.integer(UNLIKE);
    return tcl_python.integer(run(torch_address, given[0], given[1], tcl_python.as_pointer(self),
                                  tcl_python.as_pointer(given[2])));
}

/* Likewise, but the kernel is the caller's to launch; the last is where to write addresses. */
void *tcl_call_cupy(void *self, void **given, int64_t count) {
    bool found = alike(cupy_address, given[0], given[1], tcl_python.as_pointer(self),
                       tcl_python.as_pointer(given[2]));
    return tcl_python.integer(found ? 0 : UNLIKE);
}
