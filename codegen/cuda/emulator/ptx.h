// Inline PTX in plain C++: asynchronous copies, matrix fragments, 16-bit floats. Layouts are those
// of the PTX ISA, sections "Matrix Fragments for mma.m16n8k8 / m16n8k16" and "ldmatrix".
#pragma once
#include "device.h"

#define mma_m16n8k16_f16(...) device::multiply<device::Half>(__LINE__, __VA_ARGS__)
#define mma_m16n8k16_bf16(...) device::multiply<device::Bfloat>(__LINE__, __VA_ARGS__)
#define mma_m16n8k8_tf32(...) device::multiply<device::Tf32>(__LINE__, __VA_ARGS__)
#define load_matrix_x2(...) device::load_matrices<2, false>(__LINE__, __VA_ARGS__)
#define load_matrix_x4(...) device::load_matrices<4, false>(__LINE__, __VA_ARGS__)
#define load_matrix_x2_trans(...) device::load_matrices<2, true>(__LINE__, __VA_ARGS__)
#define load_matrix_x4_trans(...) device::load_matrices<4, true>(__LINE__, __VA_ARGS__)

namespace device {

template <int BYTES, bool SHARED = false>
EMULATOR void copy_async(void* to_shared, const void* from_global, bool valid) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
  emulator::copy_async(to_shared, from_global, BYTES, valid, EMULATOR_PLACE);
}
static EMULATOR void commit_copies() { emulator::commit_copies(); }
template <int PENDING>
EMULATOR void wait_copies() {
  emulator::wait_copies(PENDING);
}

// By hand, as not every compiler has a type for them.
static inline int negative(int a) { return (int)(0u - (unsigned)a); }

static inline float half_to_float(unsigned short bits) {
  unsigned sign = (bits & 0x8000u) << 16, body = (bits & 0x7fffu) << 13;
  if ((bits & 0x7c00) == 0x7c00) return bits_as<float>(sign | 0x7f800000u | body);
  float magnitude = bits_as<float>(body) * 0x1p112f;  // exact, for subnormal numbers too
  return sign ? -magnitude : magnitude;
}
static inline unsigned short float_to_half(float value) {
  unsigned bits = bits_as<unsigned>(value), sign = bits >> 16 & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | 0x7e00u;
  if (bits >= 0x47800000u) return sign | 0x7c00u;  // 2^16 and more
  if (bits < 0x38800000u)  // subnormal: the sum's last bit is worth what a half's is
    return sign | (bits_as<unsigned>(bits_as<float>(bits) + 0.5f) - 0x3f000000u);
  return sign | ((bits + 0xfffu + (bits >> 13 & 1) - 0x38000000u) >> 13);
}
static inline float bfloat_to_float(unsigned short bits) {
  return bits_as<float>(unsigned(bits) << 16);
}
static inline unsigned short float_to_bfloat(float value) {
  unsigned bits = bits_as<unsigned>(value);
  if (value != value) return bits >> 16 | 0x40;  // quiet, whatever rounding would do
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Element types of a product: how many lie in a register, and the one at a position.
struct Half {
  static constexpr int packed = 2;
  static EMULATOR float at(unsigned bits, int i) { return half_to_float(bits >> 16 * i); }
};
struct Bfloat {
  static constexpr int packed = 2;
  static EMULATOR float at(unsigned bits, int i) { return bfloat_to_float(bits >> 16 * i); }
};
struct Tf32 {
  static constexpr int packed = 1;
  static EMULATOR float at(unsigned bits, int) { return bits_as<float>(bits & 0xffffe000u); }
};

// d += a * b by a whole warp: a has 16 rows, b has 8 columns, and both are eight registers deep:
// with P elements in each, 8 * P products are added to each element of d, in float32. Lane
// 4 * g + t holds, P elements side by side:
//   a[0], a[1]: rows g and g + 8, depth P * t;  a[2], a[3]: the same rows, depth P * (t + 4)
//   b[0], b[1]: column g, depth P * t and P * (t + 4)
//   d[0], d[1]: row g, columns 2 * t and 2 * t + 1;  d[2], d[3]: the same of row g + 8
template <class Element>
EMULATOR void multiply(unsigned line, float (&d)[4], const unsigned (&a)[4],
                       const unsigned (&b)[2]) {
  emulator::exchange({{a[0], a[1], a[2], a[3], b[0], b[1]}}, 0xffffffffu, line);
  unsigned group = lane() / 4, own = lane() % 4;
  for (unsigned depth = 0; depth < 8; ++depth) {
    unsigned t = depth % 4, high = depth / 4;
    const emulator::Payload* row = emulator::taken(4 * group + t);
    for (int column = 0; column < 2; ++column) {
      const emulator::Payload* other = emulator::taken(4 * (2 * own + column) + t);
      for (int i = 0; i < Element::packed; ++i) {
        float factor = other ? Element::at(other->words[4 + high], i) : __builtin_nanf("");
        for (int half = 0; half < 2; ++half)
          d[2 * half + column] +=
              (row ? Element::at(row->words[2 * high + half], i) : __builtin_nanf("")) * factor;
      }
    }
  }
}

// ldmatrix of 16-bit elements: lane 8 * m + r says where row r of matrix m lies; lane 4 * g + t
// gets elements 2 * t and 2 * t + 1 of row g, or of column g if transposed.
template <int MATRICES, bool TRANSPOSED>
EMULATOR void load_matrices(unsigned line, unsigned (&d)[MATRICES], const void* row) {
  void* place = EMULATOR_PLACE;
  if (lane() < 8 * MATRICES) {
    emulator::require_shared(row, 16, place);
    emulator::trace_matrix_row(row, place);
  }
  emulator::Payload mine = {};
  __builtin_memcpy(mine.words, &row, sizeof row);
  emulator::exchange(mine, 0xffffffffu, line);
  unsigned group = lane() / 4, own = lane() % 4;
  for (int m = 0; m < MATRICES; ++m) {
    unsigned short parts[2] = {0xffff, 0xffff};
    for (unsigned i = 0; i < 2; ++i) {
      unsigned r = TRANSPOSED ? 2 * own + i : group, column = TRANSPOSED ? group : 2 * own + i;
      const emulator::Payload* other = emulator::taken(8 * m + r);
      if (!other) continue;
      const unsigned short* from;
      __builtin_memcpy(&from, other->words, sizeof from);
      emulator::access(from + column, 2, 2, emulator::Access::read, place);
      parts[i] = from[column];
    }
    d[m] = parts[0] | unsigned(parts[1]) << 16;
  }
}

}  // namespace device
