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

typedef int32_t Kernel(void *, void *, int64_t, int64_t, void *);
typedef int32_t Alone(void *);

#include "kernels.h" /* COUNT, KERNELS and ALONES; the words of a call's record; LINE, POOL_BYTES */

int32_t tcl_team_run(void *);
void tcl_team_reset(void *, int64_t);

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
    char *pool = room(POOL_BYTES);
    tcl_team_reset(pool, POOL_BYTES);
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
        int64_t record[WORDS] = {0};
        char *errors = room(LINE * threads);
        memset(errors, 0, LINE * threads);
        record[KERNEL] = (int64_t)KERNELS[number];
        record[TENSORS] = (int64_t)addresses;
        record[ERROR] = (int64_t)errors;
        record[TEAM] = (int64_t)room(team);
        record[THREADS] = threads;
        record[CLEAR] = team;
        record[POOL] = (int64_t)pool;
        int64_t result = threads > 1 ? tcl_team_run(record) : ALONES[number](record);
        int64_t *first = (int64_t *)errors;
        for (int64_t k = 1; k < threads && !first[0]; k++) first += LINE / 8;
        int64_t intact = 1;
        for (int64_t k = 0; k < tensors; k++)
            for (int64_t b = 0; b < MARGIN; b++)
                intact &= (unsigned char)memory[k][b] == POISON &&
                          (unsigned char)addresses[k][sizes[k] + b] == POISON;
        tell(result);
        tell(first[1]);
        tell(first[2]);
        tell(intact);
        for (int64_t k = 0; k < tensors; k++) {
            if (!given[k] && sizes[k])
                need(fwrite(addresses[k], sizes[k], 1, stdout) == 1, "no output");
            free(memory[k]);
        }
        fflush(stdout);
        free(errors);
        free((void *)record[TEAM]);
    }
    return 0;
}
