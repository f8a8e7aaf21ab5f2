// Requests for memory, where a launch asks for them to be counted.
#pragma once
#include "state.h"

namespace emulator {

// As emulated.py has them, in this order.
enum class Traced : unsigned {
  global_read,
  global_write,
  global_copy,  // what cp.async reads
  shared_read,
  shared_write,
  shared_copy,  // what cp.async writes
  matrix_read,
};

// An access of the current thread.
void trace(Traced traced, std::int64_t offset, unsigned size, void* place);

void begin_trace(unsigned threads);
// Threads meet, or have ended: nobody adds to a request of before.
void end_requests();

}  // namespace emulator
