/* An operator of torch on the CPU without Python: tcl/torch/stub.py, which fills tcl_operator.

   torch calls a function that was registered through its C interface with the handles of the inputs
   in a list of words, and takes those of the outputs from its beginning. Handles belong to whom
   they are handed to. The function reads what a kernel depends on, the inputs' sizes and strides,
   and looks for these words, the key, in a hash table of rows.

   Where one size varies, rows of kinds of sizes follow (kind_of in grammar/sizes/size_classes.py).
   They hold two words, a and b, for each one of the key and of the outputs' layouts, which is then
   a + b * size. From such a row one for the size at hand is made on the stack.

   Rows never change, and are published by one atomic store. Where there is none, where an input is
   not what the def declares, or a call fails, Python is asked to do the call (missed), which adds a
   row, or says what is wrong; this is raised as a C++ exception, which passes through the function:
   it is compiled with tables for unwinding. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t ask(void *tensor, void *answer);

struct input {
    int64_t rank, dtype, itemsize;
};

struct output {
    int64_t rank, dtype;
};

/* A row of words: the kernel's entry; the key; for each input the least address that it may have (1
   if it has elements); for each output its sizes and its strides; the sizes that vary. */
typedef int32_t entry_function(const int64_t *addresses, int64_t error[2]);

/* A hash table with open addressing. */
struct table {
    int64_t mask; /* slots - 1 */
    _Atomic(const int64_t *) slots[];
};

struct operator {
    /* torch's functions: its libraries' symbols are not this process's. */
    ask *dim, *dtype, *sizes, *strides, *data;
    int32_t (*empty_strided)(int64_t rank, const int64_t *sizes, const int64_t *strides,
                             int32_t dtype, int32_t device_type, int32_t device, void *answer);
    int32_t (*delete)(void *tensor);
    void (*check)(bool holds, const char *function, const char *file, uint32_t line,
                  const char *message);
    const struct input *inputs;
    const struct output *outputs;
    int64_t input_count, output_count;
    int64_t key;     /* words of a key */
    int64_t words;   /* of a row */
    int64_t varying; /* sizes that vary */
    int64_t size;    /* the word of the key that is the only one of them */
    int64_t largest, multiple; /* kinds are of sizes below, and of their multiples of this */
    void *(*missed)(void **stack);
    _Atomic(struct table *) table;
    _Atomic(const int64_t *) *kinds;
} tcl_operator;

static const struct operator *const op = &tcl_operator;

static inline int64_t mixed(int64_t before, int64_t word) {
    uint64_t product = (uint64_t)(before ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return product ^ product >> 32;
}

/* Read the inputs' addresses and the key, and mix a hash; false if one is not as declared. */
static inline bool read_inputs(void **stack, int64_t *addresses, int64_t *key, int64_t *hash) {
    *hash = 0;
    for (int64_t k = 0; k < op->input_count; k++) {
        const struct input *input = &op->inputs[k];
        int64_t rank;
        int32_t dtype;
        const int64_t *layout[2];
        if (op->dim(stack[k], &rank) || op->dtype(stack[k], &dtype) ||
            op->sizes(stack[k], &layout[0]) || op->strides(stack[k], &layout[1]) ||
            op->data(stack[k], &addresses[k]))
            return false;
        if (rank != input->rank || dtype != input->dtype || addresses[k] & (input->itemsize - 1))
            return false;
        for (int side = 0; side < 2; side++)
            for (int64_t axis = 0; axis < rank; axis++)
                *hash = mixed(*hash, *key++ = layout[side][axis]);
    }
    return true;
}

static inline bool have_memory(const int64_t *addresses, const int64_t *least) {
    for (int64_t k = 0; k < op->input_count; k++)
        if ((uint64_t)addresses[k] < (uint64_t)least[k]) return false;
    return true;
}

static inline bool is_row(const int64_t *row, const int64_t *key, const int64_t *addresses) {
    for (int64_t k = 0; k < op->key; k++)
        if (row[1 + k] != key[k]) return false;
    return have_memory(addresses, row + 1 + op->key);
}

/* The row of the kind of the size, if there is one, made one for the size itself. */
static const int64_t *row_of_kind(const int64_t *key, const int64_t *addresses, int64_t *made) {
    int64_t size = key[op->size];
    if (size < 0 || size >= op->largest) return 0;
    int64_t bits = size ? 64 - __builtin_clzll(size) : 0;
    int64_t kind = 2 * bits + (size % op->multiple == 0);
    const int64_t *all = atomic_load_explicit(&op->kinds[kind], memory_order_acquire);
    if (!all) return 0;
    const int64_t *pairs = all + 1;
    for (int64_t k = 0; k < op->key; k++, pairs += 2)
        if (pairs[0] + pairs[1] * size != key[k]) return 0;
    if (!have_memory(addresses, pairs)) return 0;
    int64_t first = 1 + op->key + op->input_count, last = op->words - 1;
    made[0] = all[0];
    pairs += op->input_count;
    for (int64_t k = first; k < last; k++, pairs += 2) made[k] = pairs[0] + pairs[1] * size;
    made[last] = size;
    return made;
}

static inline const int64_t *find(const int64_t *key, int64_t hash, const int64_t *addresses,
                              int64_t *made) {
    const struct table *table = atomic_load_explicit(&op->table, memory_order_acquire);
    for (int64_t at = hash;; at++) {
        const int64_t *row =
            atomic_load_explicit(&table->slots[at & table->mask], memory_order_acquire);
        if (!row) return op->varying == 1 ? row_of_kind(key, addresses, made) : 0;
        if (is_row(row, key, addresses)) return row;
    }
}

/* Make the outputs, call the kernel, and hand the outputs over; false if something failed: then all
   is as before. */
static inline bool call(const int64_t *row, void **stack, int64_t *addresses) {
    const int64_t *layout = row + 1 + op->key + op->input_count;
    void *outputs[op->output_count];
    int64_t error[2], made = 0;
    for (; made < op->output_count; made++) {
        const struct output *output = &op->outputs[made];
        if (op->empty_strided(output->rank, layout, layout + output->rank, output->dtype, 0,
                                    0, &outputs[made]))
            goto undo;
        op->data(outputs[made], &addresses[op->input_count + made]);
        layout += 2 * output->rank;
    }
    for (int64_t k = 0; k < op->varying; k++)
        addresses[op->input_count + op->output_count + k] = layout[k];
    if (((entry_function *)row[0])(addresses, error)) goto undo;
    for (int64_t k = 0; k < op->input_count; k++) op->delete(stack[k]);
    for (int64_t k = 0; k < op->output_count; k++) stack[k] = outputs[k];
    return true;
undo:
    while (made > 0) op->delete(outputs[--made]);
    return false;
}

/* What torch calls. */
void tcl_operator_call(void **stack, int64_t arguments, int64_t results) {
    int64_t addresses[op->input_count + op->output_count + op->varying];
    int64_t key[op->key + 1], made[op->words], hash;
    if (read_inputs(stack, addresses, key, &hash)) {
        const int64_t *row = find(key, hash, addresses, made);
        if (row && call(row, stack, addresses)) return;
    }
    const char *message = op->missed(stack);
    if (message) op->check(false, "tcl_operator_call", "", 0, message);
}

/* Publish a row, or a table: what reads it finds all that was written before. */
void tcl_operator_publish(_Atomic(void *) *place, void *value) {
    atomic_store_explicit(place, value, memory_order_release);
}
