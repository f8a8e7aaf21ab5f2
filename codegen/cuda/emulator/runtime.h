// What emulated kernels ask of the runtime, and what they share with it. No standard header is
// included by what kernels see, as NVRTC offers them none either.
#pragma once

// Functions of the emulator itself are not observed: neither their own accesses, nor as parts of
// the kernels that call them.
#define EMULATOR __attribute__((noinline, no_sanitize("thread", "undefined")))
// Where in the kernel the call stands.
#define EMULATOR_PLACE __builtin_return_address(0)

namespace emulator {

struct Index {
  unsigned x, y, z;
};

// Of the thread that runs now, and of the launch.
struct Indices {
  Index thread, block, block_size, grid_size;
};
extern Indices indices;

enum class Access { read, write, atomic };

// An access that the compiler does not report by itself. False if it should not be made, though it
// does no harm; an access that would does not return.
bool access(const void* address, unsigned size, unsigned alignment, Access kind, void* place);

// Notes an access for the sums of requests, where a launch asks for these.
void trace_access(const void* address, unsigned size, Access kind, void* place);
// A row of a matrix that a warp reads.
void trace_matrix_row(const void* row, void* place);

// An iteration of a loop in the kernel's source, where requests are traced.
void enter_iteration(unsigned line, long long number);
void leave_iteration();
struct Iteration {
  EMULATOR Iteration(unsigned line, long long number) { enter_iteration(line, number); }
  EMULATOR ~Iteration() { leave_iteration(); }
};

// __threadfence(). With atomic operations it orders what blocks do: what a block did before a
// barrier, a fence of one of its threads after that and an atomic operation of this thread comes
// before what another one's thread does after an atomic operation on the same place and a fence,
// and before what that one's block does after a barrier. What a thread does between its block's last
// barrier and its fence is not taken to be ordered, though it is.
void fence();
// An atomic operation on this place.
void synchronise(const void* place);

// For threads that meet in a warp: what each brings, and takes along.
struct Payload {
  unsigned words[6];
};

// Waits for all threads of the block; what each did before is then visible to the others.
void barrier(unsigned line);
// Likewise; whether any of them brought true.
bool barrier_or(unsigned line, bool mine);

// Waits for the threads of the warp in `mask`; afterwards `taken(lane)` is what that lane brought,
// until the next exchange. nullptr if the lane was not there.
void exchange(const Payload& mine, unsigned mask, unsigned line);
const Payload* taken(unsigned lane);

// cp.async: the copy happens as late as is allowed, in `wait_copies`.
void copy_async(void* to, const void* from, unsigned size, bool valid, void* place);
void commit_copies();
void wait_copies(unsigned pending);

// wgmma: what this thread has of a product of its warpgroup. The sums are added up as late as is
// allowed, in `wait_products`; what is read has to be there from the beginning until then.
struct Product {
  void (*add)(const Product&);  // only asks for what it reads, if it has no sums
  float* sums;
  unsigned long long a, b;
  void* place;
};
void fence_panels();
void begin_products();
void issue_product(const Product& product);
void commit_products();
void wait_products(unsigned pending);
// The shared memory of the block.
unsigned char* shared_memory();

// The address has to lie in shared memory.
void require_shared(const void* address, unsigned alignment, void* place);

// An argument of a kernel, as the pointer that the kernel takes.
struct Argument {
  void* address;
  template <class T>
  EMULATOR operator T*() const {
    return static_cast<T*>(address);
  }
  EMULATOR operator int() const { return (int)(long long)address; }
  EMULATOR operator long long() const { return (long long)address; }
};

}  // namespace emulator
