/* A kernel as a foreign function of XLA: tcl/jax/primitive.py, which fills tcl_handler. XLA calls it
   with a call frame; the structs are as xla/ffi/api/c_api.h of jaxlib declares them, whose names
   they have without the prefix. It checks everything that it is given before it follows a pointer. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { EXECUTE = 3, METADATA = 1, BUFFER = 1 }; /* a stage; an extension; an argument's type */
enum { INVALID_ARGUMENT = 3, RESOURCE_EXHAUSTED = 8, OUT_OF_RANGE = 11 };
enum { FAILED = 1 }; /* a kernel's result: see entry.c */
enum { LONGEST = 2048 }; /* bytes of a message */

struct version {
    uint64_t struct_size;
    void *extension;
    int32_t major, minor;
};

struct metadata {
    uint64_t struct_size;
    struct version version;
    uint32_t traits;
};

struct extension {
    uint64_t struct_size;
    int32_t type;
    struct extension *next;
    struct metadata *metadata; /* of one of this type */
};

struct error_arguments {
    uint64_t struct_size;
    void *extension;
    const char *message;
    int32_t code;
};

struct api {
    uint64_t struct_size;
    void *extension;
    struct version version;
    void *internal;
    void *(*create_error)(struct error_arguments *);
};

struct buffer {
    uint64_t struct_size;
    void *extension;
    uint32_t dtype;
    int64_t data;
    int64_t rank;
    const int64_t *dims;
};

struct list {
    uint64_t struct_size;
    void *extension;
    int64_t size;
    const int32_t *types;
    const struct buffer *const *items;
};

struct call_frame {
    uint64_t struct_size;
    struct extension *extension;
    const struct api *api;
    void *context;
    int32_t stage;
    struct list arguments, results;
    char attributes[48];
};

struct handler {
    int32_t (*entry)(const int64_t *addresses, int64_t error[2]);
    int64_t major, minor;         /* of the interface */
    int64_t arguments, results;   /* how many there are */
    const int64_t *buffers;       /* of each: dtype, bits that no address has, rank, extents */
    const char *const *messages;  /* of the kernel's checks, formats of a value */
} tcl_handler;

static void *fail(const struct call_frame *frame, int32_t code, const char *message) {
    struct error_arguments arguments = {28, 0, message, code};
    return frame->api->create_error(&arguments);
}

/* Write the buffers' addresses. Where the description goes on behind these buffers; null if one of
   them is not as described. */
static const int64_t *fit(const struct list *list, const int64_t *wanted, int64_t *addresses) {
    for (int64_t k = 0; k < list->size; k++) {
        if (list->types[k] != BUFFER) return 0;
        const struct buffer *buffer = list->items[k];
        if (buffer->struct_size < sizeof *buffer || buffer->dtype != wanted[0] ||
            buffer->data & wanted[1] || buffer->rank != wanted[2])
            return 0;
        wanted += 3;
        for (int64_t axis = 0; axis < buffer->rank; axis++)
            if (buffer->dims[axis] != *wanted++) return 0;
        addresses[k] = buffer->data;
    }
    return wanted;
}

/* What XLA calls: null, or an error. */
void *tcl_handler_call(struct call_frame *frame) {
    if (frame->extension && frame->extension->type == METADATA) {
        struct metadata *metadata = frame->extension->metadata;
        metadata->version =
            (struct version){sizeof(struct version), 0, tcl_handler.major, tcl_handler.minor};
        metadata->traits = 0;
        return 0;
    }
    const struct list *arguments = &frame->arguments, *results = &frame->results;
    if (frame->struct_size < sizeof *frame || frame->stage != EXECUTE ||
        arguments->struct_size != sizeof *arguments || results->struct_size != sizeof *results)
        return fail(frame, INVALID_ARGUMENT, "tcl: called in a way that is not known");
    bool fits = arguments->size == tcl_handler.arguments && results->size == tcl_handler.results;
    int64_t addresses[tcl_handler.arguments + tcl_handler.results + 1], error[2];
    const int64_t *middle = fits ? fit(arguments, tcl_handler.buffers, addresses) : 0;
    if (!middle || !fit(results, middle, addresses + arguments->size))
        return fail(frame, INVALID_ARGUMENT, "tcl: a buffer is not what was compiled for");
    int32_t status = tcl_handler.entry(addresses, error);
    if (!status) return 0;
    if (status != FAILED)
        return fail(frame, RESOURCE_EXHAUSTED,
                    "tcl: there is no memory for what a call needs on the way");
    char text[LONGEST];
    snprintf(text, sizeof text, tcl_handler.messages[error[0]], error[1]);
    return fail(frame, OUT_OF_RANGE, text);
}
