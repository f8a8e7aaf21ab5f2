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

#define wgmma_m64n64k16_f16 device::Products<64, device::Half, __LINE__>::issue
#define wgmma_m64n128k16_f16 device::Products<128, device::Half, __LINE__>::issue
#define wgmma_m64n256k16_f16 device::Products<256, device::Half, __LINE__>::issue
#define wgmma_m64n64k16_bf16 device::Products<64, device::Bfloat, __LINE__>::issue
#define wgmma_m64n128k16_bf16 device::Products<128, device::Bfloat, __LINE__>::issue
#define wgmma_m64n256k16_bf16 device::Products<256, device::Bfloat, __LINE__>::issue

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

// The products of a warpgroup. Thread 32 * w + 4 * g + t has sums 4 * j + 2 * h + i of row
// 16 * w + g + 8 * h and column 8 * j + 2 * t + i.
static EMULATOR void fence_panels() { emulator::fence_panels(); }
static EMULATOR void begin_products() { emulator::begin_products(); }
static EMULATOR void commit_products() { emulator::commit_products(); }
static EMULATOR void wait_for_earlier_products() { emulator::wait_products(1); }
template <int N>
EMULATOR void end_products(float (&)[N]) {
  emulator::wait_products(0);
}
template <int LEADING, int STRIDE>
EMULATOR unsigned long long panel_part(const void* part) {
  emulator::require_shared(part, 16, EMULATOR_PLACE);
  unsigned long long at = (const unsigned char*)part - emulator::shared_memory();
  return at >> 4 | (unsigned long long)(LEADING >> 4) << 16 |
         (unsigned long long)(STRIDE >> 4) << 32 | 1ull << 62;
}

// An element of a part of a panel, as descriptors of matrices have it with the 128-byte swizzle: of
// row (or column) r and point k, where rows of memory go along k or across it.
static EMULATOR const unsigned short* part_element(unsigned long long part, bool across, unsigned r,
                                                   unsigned k) {
  unsigned at = (part & 0x3fff) << 4, leading = (part >> 16 & 0x3fff) << 4;
  unsigned stride = (part >> 32 & 0x3fff) << 4;
  at += across ? r / 64 * leading + k / 8 * stride + k % 8 * 128 + r % 64 * 2
               : r / 8 * stride + r % 8 * 128 + k * 2;
  return (const unsigned short*)(emulator::shared_memory() + (at ^ (at >> 7 & 7) << 4));
}

template <int COLUMNS, class Element, int LINE>
struct Products {
  template <int A_ACROSS, int B_ACROSS>
  static EMULATOR void add(const emulator::Product& product) {
    unsigned row = threadIdx.x % 128 / 32 * 16 + lane() / 4, column = lane() % 4 * 2;
    if (!product.sums) {  // vectors of 8 numbers
      for (unsigned k = 0; k < 16; k += A_ACROSS ? 1 : 8)
        for (unsigned h = 0; h < 2; ++h) ask(product, product.a, A_ACROSS, row + 8 * h, k);
      for (unsigned j = 0; j < COLUMNS; j += 8)
        for (unsigned k = 0; k < 16; k += B_ACROSS ? 1 : 8)
          for (unsigned i = 0; i < (B_ACROSS ? 1 : 2); ++i)
            ask(product, product.b, B_ACROSS, j + column + i, k);
      return;
    }
    for (unsigned s = 0; s < COLUMNS / 2; ++s)
      for (unsigned k = 0; k < 16; ++k)
        product.sums[s] +=
            Element::at(*part_element(product.a, A_ACROSS, row + s / 2 % 2 * 8, k), 0) *
            Element::at(*part_element(product.b, B_ACROSS, s / 4 * 8 + column + s % 2, k), 0);
  }
  static EMULATOR void ask(const emulator::Product& product, unsigned long long part, bool across,
                           unsigned r, unsigned k) {
    unsigned long long first = (unsigned long long)part_element(part, across, r, k) & ~15ull;
    emulator::access((const void*)first, 16, 16, emulator::Access::read, product.place);
  }
  template <int A_ACROSS, int B_ACROSS>
  static EMULATOR void issue(float (&sums)[COLUMNS / 2], unsigned long long a,
                             unsigned long long b) {
    void* place = EMULATOR_PLACE;
    emulator::exchange({}, 0xffffffffu, LINE);
    emulator::issue_product({&add<A_ACROSS, B_ACROSS>, sums, a, b, place});
  }
};

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
