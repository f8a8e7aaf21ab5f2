// What the parts of the runtime share: a launch, its threads, and what is found wrong.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime.h"

namespace emulator {

// As emulated.py has them, in this order.
enum class Problem : unsigned {
  write_write,
  write_read,  // written by the other thread, read by this one
  read_write,
  atomic_plain,
  unfinished_copy,
  out_of_bounds,
  read_only,
  misaligned,
  elsewhere,
  register_array,
  arithmetic,
  divergent_barrier,
  divergent_warp,
  deadlock,
  not_shared,
  stack_overflow,
  unfenced_panel,
  unfenced_sums,
};

struct Finding {
  Problem problem;
  unsigned thread, block, other_thread, other_block;
  unsigned size;       // of the access
  unsigned shared;     // whether the address is one of shared memory
  unsigned place, other_place;  // in the code of this library; 0: none
  unsigned line, other_line;    // where these are known without
  std::int64_t offset;          // bytes from the start of the arena, or of shared memory
};

// The requests of one kind, their sectors or wavefronts, and the bytes that threads asked for.
struct Traffic {
  std::uint64_t requests, units, bytes;
};

// Where a tensor's bytes begin, and its first element, from the start of the arena.
struct Origin {
  std::int64_t begin, first;
};

// What is asked for, and the room for what is found: as emulated.py has it.
struct Launch {
  void (*kernel)(void* const* arguments);
  void* const* arguments;
  unsigned char* arena;
  const unsigned char* inside;  // per byte of the arena: READABLE, WRITABLE
  unsigned char* shared;
  Finding* findings;
  Traffic* traffic;       // per kind, see trace.h; nullptr: nobody asks for it
  const Origin* origins;  // of the tensors, by where they begin
  std::size_t number_of_origins;
  std::size_t arena_size;
  unsigned blocks, threads;
  unsigned shared_size, shared_room;
  unsigned order, seed, checked;
  unsigned most_findings, number_of_findings;
};
enum { READABLE = 1, WRITABLE = 2 };
enum { FORWARD, REVERSE, RANDOM };

// cp.async that was issued.
struct Copy {
  unsigned char* to;
  const unsigned char* from;
  unsigned size, group;
  bool valid;
  void* place;
};

// wgmma that was issued.
struct Issued {
  Product product;
  unsigned group;
};

enum class State : unsigned char { ready, block, warp, done };

// By when a block began: what it did before the second time comes before what is done now.
using Earlier = std::map<unsigned, unsigned>;

struct Fiber {
  void* stack_pointer;
  std::uint64_t* canary;
  unsigned number;
  State state;
  unsigned mask, line;
  Payload brought;
  std::vector<Copy> copies;
  std::vector<std::uint64_t> turns;  // of each loop that it is in: which iterations these are
  unsigned committed;
  std::vector<Issued> products;
  unsigned products_committed;
  bool sums_fenced;
  unsigned unfenced;  // when it first wrote to shared memory after its last fence for tensor cores
  unsigned fenced;        // the time of the barrier before its last fence; 0: none
  Earlier seen, ordered;  // by atomic operations; by these and a fence after them
};

struct Warp {
  Payload payloads[32];
  unsigned present[32];  // per lane: the lanes of its last exchange
};

// Time counts everything that orders threads. Blocks run one after another.
struct Clock {
  unsigned now, block, barrier;
};

extern Launch* launch;
extern Fiber* current;
extern Warp* current_warp;
extern Clock clock_;

// A thread that wrote to shared memory before the last barrier, and has not told the tensor cores;
// nullptr: none.
const Fiber* unfenced_writer();

// What the current thread knows to have come before, of other blocks.
bool ordered_before(unsigned time);

// Which block ran at that time.
unsigned block_at(unsigned time);

// Notes what is wrong, once for each place.
void report(Finding finding);
Finding finding(Problem problem, void* place);
unsigned offset_of(void* place);
// Ends the run; never returns to the thread.
[[noreturn]] void stop();

// A pointer that is not aligned for its type.
void misaligned(const void* pointer, unsigned alignment, void* place);

void start_observing();
void stop_observing();
bool on_a_stack(const unsigned char* address);

}  // namespace emulator
