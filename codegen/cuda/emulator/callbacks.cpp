// What the compiler calls where its sanitisers find something to look at. Linked into kernels in
// place of the sanitisers' own run time.
#include <cstring>

#include "state.h"

using emulator::Access;

static void seen(void* p, unsigned size, Access kind, void* place) {
  emulator::trace_access(p, size, kind, place);
  emulator::access(p, size, size, kind, place);
}

#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define HERE __builtin_return_address(0)

#define ACCESSES(N)                                                                            \
  HIDDEN void __tsan_read##N(void* p) { seen(p, N, Access::read, HERE); }                       \
  HIDDEN void __tsan_write##N(void* p) { seen(p, N, Access::write, HERE); }                     \
  HIDDEN void __tsan_unaligned_read##N(void* p) {                                              \
    seen(p, N, Access::read, HERE);                                                            \
  }                                                                                            \
  HIDDEN void __tsan_unaligned_write##N(void* p) {                                             \
    seen(p, N, Access::write, HERE);                                                           \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}
HIDDEN void __tsan_read_range(void* p, unsigned long size) {
  emulator::access(p, size, 1, Access::read, HERE);
}
HIDDEN void __tsan_write_range(void* p, unsigned long size) {
  emulator::access(p, size, 1, Access::write, HERE);
}
HIDDEN void* __tsan_memcpy(void* to, const void* from, unsigned long size) {
  emulator::access(from, size, 1, Access::read, HERE);
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memcpy(to, from, size);
}
HIDDEN void* __tsan_memmove(void* to, const void* from, unsigned long size) {
  emulator::access(from, size, 1, Access::read, HERE);
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memmove(to, from, size);
}
HIDDEN void* __tsan_memset(void* to, int value, unsigned long size) {
  emulator::access(to, size, 1, Access::write, HERE);
  return std::memset(to, value, size);
}

// -fsanitize=alignment: a pointer to a type that needs more (a float4, say).
struct TypeMismatch {
  const char* file;
  unsigned line, column;
  const void* type;
  unsigned char log_alignment, kind;
};
HIDDEN void __ubsan_handle_type_mismatch_v1(TypeMismatch* where, void* pointer) {
  emulator::misaligned(pointer, 1u << where->log_alignment, HERE);
}

// -fsanitize=bounds: an index into an array of known size, which lies in registers.
HIDDEN void __ubsan_handle_out_of_bounds(void*, unsigned long index) {
  emulator::Finding found = emulator::finding(emulator::Problem::register_array, HERE);
  found.offset = long(index);
  emulator::report(found);
  emulator::stop();
}

// Arithmetic whose result C++ leaves undefined: the machine's is taken, if there is one.
static void undefined(void* place, bool traps) {
  if (!emulator::current) return;
  emulator::report(emulator::finding(emulator::Problem::arithmetic, place));
  if (traps) emulator::stop();
}
#define UNDEFINED(NAME, TRAPS, ...) \
  HIDDEN void __ubsan_handle_##NAME(__VA_ARGS__) { undefined(HERE, TRAPS); }
UNDEFINED(add_overflow, false, void*, void*, void*)
UNDEFINED(sub_overflow, false, void*, void*, void*)
UNDEFINED(mul_overflow, false, void*, void*, void*)
UNDEFINED(divrem_overflow, true, void*, void*, void*)
UNDEFINED(shift_out_of_bounds, false, void*, void*, void*)
UNDEFINED(negate_overflow, false, void*, void*)
UNDEFINED(float_cast_overflow, false, void*, void*)
