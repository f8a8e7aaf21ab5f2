// CUDA C++ in plain C++: keywords, vector types, built-in variables and functions, atomics. All of
// it lies in the namespace that holds the kernels, so it hides what the C library offers globally.
#pragma once
#include "runtime.h"

#define TCL_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#define __builtin_assume_aligned(pointer, ...) (pointer)
#endif
#define __assume(condition) ((void)0)

#define threadIdx (emulator::indices.thread)
#define blockIdx (emulator::indices.block)
#define blockDim (emulator::indices.block_size)
#define gridDim (emulator::indices.grid_size)

namespace device {

typedef decltype(sizeof 0) size_t;
enum { warpSize = 32 };

#define EMULATOR_VECTOR(T, NAME, ALIGN2, ALIGN4)                                               \
  struct NAME##1 {                                                                             \
    T x;                                                                                       \
  };                                                                                           \
  struct alignas(ALIGN2) NAME##2 {                                                             \
    T x, y;                                                                                    \
  };                                                                                           \
  struct NAME##3 {                                                                             \
    T x, y, z;                                                                                 \
  };                                                                                           \
  struct alignas(ALIGN4) NAME##4 {                                                             \
    T x, y, z, w;                                                                              \
  };                                                                                           \
  static inline NAME##1 make_##NAME##1(T x) { return {x}; }                                    \
  static inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                            \
  static inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                    \
  static inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATOR_VECTOR(signed char, char, 2, 4)
EMULATOR_VECTOR(unsigned char, uchar, 2, 4)
EMULATOR_VECTOR(short, short, 4, 8)
EMULATOR_VECTOR(unsigned short, ushort, 4, 8)
EMULATOR_VECTOR(int, int, 8, 16)
EMULATOR_VECTOR(unsigned, uint, 8, 16)
EMULATOR_VECTOR(long long, longlong, 16, 16)
EMULATOR_VECTOR(unsigned long long, ulonglong, 16, 16)
EMULATOR_VECTOR(float, float, 8, 16)
EMULATOR_VECTOR(double, double, 16, 16)

struct dim3 {
  unsigned x, y, z;
};

// The same bits as another type.
template <class To, class From>
static inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline int __float_as_int(float x) { return bits_as<int>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline float __int_as_float(int x) { return bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
static inline int __double2hiint(double x) { return int(bits_as<long long>(x) >> 32); }
static inline int __double2loint(double x) { return int(bits_as<long long>(x)); }
static inline double __hiloint2double(int high, int low) {
  return bits_as<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

// Reads and writes that say how to use caches.
#define EMULATOR_LOAD(NAME) \
  template <class T>        \
  static inline T NAME(const T* p) { return *p; }
#define EMULATOR_STORE(NAME) \
  template <class T>         \
  static inline void NAME(T* p, T value) { *p = value; }
EMULATOR_LOAD(__ldg)
EMULATOR_LOAD(__ldca)
EMULATOR_LOAD(__ldcg)
EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldlu)
EMULATOR_LOAD(__ldcv)
EMULATOR_STORE(__stwb)
EMULATOR_STORE(__stcg)
EMULATOR_STORE(__stcs)
EMULATOR_STORE(__stwt)

// Barriers and warps. The line tells one barrier from another.
#define __syncthreads() emulator::meet(emulator::Meeting::barrier, 0, __LINE__)
#define __syncwarp(...) \
  emulator::meet(emulator::Meeting::ordering, device::mask_of(__VA_ARGS__), __LINE__)
#define __shfl_sync(...) device::shuffle<device::From>(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) device::shuffle<device::Up>(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) device::shuffle<device::Down>(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) device::shuffle<device::Xor>(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, condition) device::ballot(__LINE__, mask, condition)
#define __any_sync(mask, condition) (device::ballot(__LINE__, mask, condition) != 0)
#define __all_sync(mask, condition) (device::ballot(__LINE__, mask, !(condition)) == 0)

static inline unsigned mask_of(unsigned mask = 0xffffffffu) { return mask; }
static inline unsigned lane() { return threadIdx.x % 32; }

// The lane whose value is taken; its own where the PTX ISA has the predicate false.
struct From {
  static int source(int lane, int by, int width) { return lane / width * width + by % width; }
};
struct Up {
  static int source(int lane, int by, int width) { return lane % width < by ? lane : lane - by; }
};
struct Down {
  static int source(int lane, int by, int width) {
    return lane % width + by < width ? lane + by : lane;
  }
};
struct Xor {
  static int source(int lane, int by, int width) {
    int other = lane ^ by;
    return other / width > lane / width ? lane : other;
  }
};

template <class Kind, class T>
EMULATOR T shuffle(unsigned line, unsigned mask, T value, int by, int width = 32) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  emulator::Payload mine = {};
  __builtin_memcpy(mine.words, &value, sizeof value);
  emulator::exchange(mine, mask, line);
  const emulator::Payload* other = emulator::taken(Kind::source(lane(), by, width));
  if (other)
    __builtin_memcpy(&value, other->words, sizeof value);
  else
    __builtin_memset(&value, 0xff, sizeof value);  // undefined
  return value;
}

static EMULATOR unsigned ballot(unsigned line, unsigned mask, bool condition) {
  emulator::exchange({{condition}}, mask, line);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (const emulator::Payload* other = emulator::taken(i)) result |= other->words[0] << i;
  return result;
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
#define __trap() emulator::trap(device::here())
static EMULATOR void* here() { return EMULATOR_PLACE; }

// Atomic operations: each is one step, as only one thread runs at a time. The pointer alone says
// what type they are of.
template <class T>
struct Same {
  typedef T type;
};
#define EMULATOR_ATOMIC(NAME, NEXT)                                                          \
  template <class T>                                                                         \
  EMULATOR T NAME(T* p, typename Same<T>::type value) {                                          \
    emulator::access(p, sizeof *p, sizeof *p, emulator::Access::atomic, EMULATOR_PLACE);     \
    T old = *p;                                                                              \
    *p = NEXT;                                                                               \
    return old;                                                                              \
  }
EMULATOR_ATOMIC(atomicAdd, T(old + value))
EMULATOR_ATOMIC(atomicSub, T(old - value))
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, old < value ? value : old)
EMULATOR_ATOMIC(atomicExch, value)
EMULATOR_ATOMIC(atomicAnd, T(old & value))
EMULATOR_ATOMIC(atomicOr, T(old | value))
EMULATOR_ATOMIC(atomicXor, T(old ^ value))
template <class T>
EMULATOR T atomicCAS(T* p, typename Same<T>::type expected, typename Same<T>::type value) {
  emulator::access(p, sizeof *p, sizeof *p, emulator::Access::atomic, EMULATOR_PLACE);
  T old = *p;
  if (old == expected) *p = value;
  return old;
}

}  // namespace device
