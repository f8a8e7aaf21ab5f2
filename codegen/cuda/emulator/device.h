// CUDA C++ in plain C++, as far as kernels are made of it: keywords, built-in variables, exchanges
// within warps, atomics. All of it lies in the namespace that holds the kernels, so it hides what the
// C library offers globally.
#pragma once
#include "runtime.h"

#define TCL_EMULATED 1
#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))

#define threadIdx (emulator::indices.thread)
#define blockIdx (emulator::indices.block)
#define blockDim (emulator::indices.block_size)
#define gridDim (emulator::indices.grid_size)

namespace device {

// The same bits as another type.
template <class To, class From>
static inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline float __int_as_float(int x) { return bits_as<float>(x); }

// Barriers and warps. The line tells one barrier from another.
#define __syncthreads() emulator::barrier(__LINE__)
#define __syncthreads_or(x) emulator::barrier_or(__LINE__, (x) != 0)
#define __threadfence() emulator::fence()
#define __shfl_xor_sync(...) device::shuffle_xor(__LINE__, __VA_ARGS__)
static inline unsigned lane() { return threadIdx.x % 32; }

template <class T>
EMULATOR T shuffle_xor(unsigned line, unsigned mask, T value, int by) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  emulator::Payload mine = {};
  __builtin_memcpy(mine.words, &value, sizeof value);
  emulator::exchange(mine, mask, line);
  const emulator::Payload* other = emulator::taken(lane() ^ by);
  if (other)
    __builtin_memcpy(&value, other->words, sizeof value);
  else
    __builtin_memset(&value, 0xff, sizeof value);  // undefined
  return value;
}

// Atomic operations: each is one step, as only one thread runs at a time. The pointer alone says
// what type they are of.
template <class T>
struct Same {
  typedef T type;
};
template <class T>
EMULATOR T atomicAdd(T* p, typename Same<T>::type value) {
  emulator::access(p, sizeof *p, sizeof *p, emulator::Access::atomic, EMULATOR_PLACE);
  emulator::synchronise(p);
  T old = *p;
  *p = T(old + value);
  return old;
}
template <class T>
EMULATOR T atomicCAS(T* p, typename Same<T>::type expected, typename Same<T>::type value) {
  emulator::access(p, sizeof *p, sizeof *p, emulator::Access::atomic, EMULATOR_PLACE);
  emulator::synchronise(p);
  T old = *p;
  if (old == expected) *p = value;
  return old;
}
static EMULATOR unsigned atomicInc(unsigned* p, unsigned most) {
  emulator::access(p, sizeof *p, sizeof *p, emulator::Access::atomic, EMULATOR_PLACE);
  emulator::synchronise(p);
  unsigned old = *p;
  *p = old >= most ? 0 : old + 1;
  return old;
}

}  // namespace device
