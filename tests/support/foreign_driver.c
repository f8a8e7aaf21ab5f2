/* Runs kernels that were compiled for another machine: calls come in on standard input, and what
   became of them goes out on standard output. All are 64-bit words and bytes in this machine's
   order, which is the other one's, too.

   A call: its kernel's number, threads, bytes of the team's memory, number of tensors; then of each
   tensor its bytes, whether it is given, and if so, its contents. An answer: the kernel's result,
   site and value of the first thread's failed check, whether memory around the tensors was left
   alone, and the tensors that were not given. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

typedef kernel_function Kernel;
typedef int32_t Alone(struct call *);

#include "kernels.h" /* COUNT, KERNELS and ALONES; MOST_THREADS */

int32_t tcl_pool_run(struct call *);
int64_t tcl_pool_bytes(int64_t threads);
void tcl_pool_reset(struct pool *, int64_t threads);

enum { MARGIN = 256, POISON = 0xA7, MOST = 64 };

static void need(int good, const char *what) {
    if (!good) {
        fprintf(stderr, "%s\n", what);
        exit(3);
    }
}

static int64_t word(void) {
    int64_t found;
    need(fread(&found, sizeof found, 1, stdin) == 1, "the input ends early");
    return found;
}

static void tell(int64_t value) { need(fwrite(&value, sizeof value, 1, stdout) == 1, "no output"); }

static char *room(int64_t bytes) {
    void *found = NULL;
    need(posix_memalign(&found, LINE, bytes + LINE) == 0, "no memory");
    return found;
}

int main(void) {
    struct pool *pool = (struct pool *)room(tcl_pool_bytes(MOST_THREADS));
    tcl_pool_reset(pool, MOST_THREADS);
    int64_t calls = word();
    while (calls-- > 0) {
        int64_t number = word(), threads = word(), team = word(), tensors = word();
        need(number < COUNT && tensors <= MOST, "no such call");
        char *addresses[MOST], *memory[MOST];
        int64_t sizes[MOST], given[MOST];
        for (int64_t k = 0; k < tensors; k++) {
            sizes[k] = word();
            given[k] = word();
            memory[k] = room(sizes[k] + 2 * MARGIN);
            memset(memory[k], POISON, sizes[k] + 2 * MARGIN);
            addresses[k] = memory[k] + MARGIN;
            if (given[k] && sizes[k])
                need(fread(addresses[k], sizes[k], 1, stdin) == 1, "the input ends early");
        }
        struct error *errors = (struct error *)room(LINE * threads), *first = errors;
        memset(errors, 0, LINE * threads);
        struct call call = {KERNELS[number], (int64_t *)addresses, errors, room(team), threads,
                            team, pool, 0};
        int64_t result = threads > 1 ? tcl_pool_run(&call) : ALONES[number](&call);
        while (!first->failed && first < errors + threads - 1) first++;
        int64_t intact = 1;
        for (int64_t k = 0; k < tensors; k++)
            for (int64_t b = 0; b < MARGIN; b++)
                intact &= (unsigned char)memory[k][b] == POISON &&
                          (unsigned char)addresses[k][sizes[k] + b] == POISON;
        tell(result);
        tell(first->site);
        tell(first->value);
        tell(intact);
        for (int64_t k = 0; k < tensors; k++) {
            if (!given[k] && sizes[k])
                need(fwrite(addresses[k], sizes[k], 1, stdout) == 1, "no output");
            free(memory[k]);
        }
        fflush(stdout);
        free(errors);
        free(call.team);
    }
    return 0;
}
