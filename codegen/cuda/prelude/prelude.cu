// Functions that CUDA C++ lacks, or has less exactly: prelude.py takes those that a kernel uses.
//
// Signed integers wrap, division never traps, and a NaN wins in minima and maxima. Floats become
// integers by truncation, kept within the type's limits, with 0 for NaN. The 16-bit floats are rounded
// once to nearest, ties to even: a wider value goes through a float whose inexact results are made odd,
// so that rounding once more to far fewer digits gives what one rounding would (Boldo and Melquiond,
// "Emulation of FMA and correctly rounded sums", 2008). The formulas of functions are those of
// tcl.codegen.cpu.math.special and tcl.codegen.reference.special, which name where they come from.
// CUDA's own Bessel functions of the first and second kind are good to 5e-12 only, in float64 and
// beyond 8; the modified ones are not good to four units in the last place.

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }

// a + b, wrapping.
__device__ __forceinline__ int add(int a, int b)
{
    return (int)((unsigned int)a + (unsigned int)b);
}
__device__ __forceinline__ long long add(long long a, long long b)
{
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

// a - b, wrapping.
__device__ __forceinline__ int subtract(int a, int b)
{
    return (int)((unsigned int)a - (unsigned int)b);
}
__device__ __forceinline__ long long subtract(long long a, long long b)
{
    return (long long)((unsigned long long)a - (unsigned long long)b);
}

#ifndef TCL_EMULATED
// -a, wrapping. NVRTC 12.6 to 13.3 loses one of several minus signs before minima and maxima, for
// sm_90: min(-a, min(-b, -c)) was wrong on an H100.
__device__ __forceinline__ int negative(int a)
{
    int b;
    asm("{ .reg .b32 c; not.b32 c, %1; add.s32 %0, c, 1; }" : "=r"(b) : "r"(a));
    return b;
}
#endif

// a * b, wrapping.
__device__ __forceinline__ int multiply(int a, int b)
{
    return (int)((unsigned int)a * (unsigned int)b);
}
__device__ __forceinline__ long long multiply(long long a, long long b)
{
    return (long long)((unsigned long long)a * (unsigned long long)b);
}
__device__ __forceinline__ unsigned short multiply(unsigned short a, unsigned short b)
{
    return (unsigned short)((unsigned int)a * (unsigned int)b);  // too large for an int
}

// a / b for integers: 0 where b is 0, and the one overflow wraps.
template <class T> __device__ __forceinline__ T divide(T a, T b)
{
    if (b == T(0)) return T(0);
    if (T(-1) < T(0) && b == T(-1)) return T(0ULL - (unsigned long long)a);
    return T(a / b);
}

// a % b for integers, with the sign of a: 0 where b is 0.
template <class T> __device__ __forceinline__ T modulo(T a, T b)
{
    if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
    return T(a % b);
}

// The smaller one; a NaN wins.
template <class T> __device__ __forceinline__ T min_of(T a, T b)
{
    return a < b || a != a ? a : b;
}

// The larger one; a NaN wins.
template <class T> __device__ __forceinline__ T max_of(T a, T b)
{
    return a > b || a != a ? a : b;
}

// As min_of, but of two zeros it may give either: for reductions, whose order is free.
template <class T> __device__ __forceinline__ T least_of(T a, T b) { return min_of(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float least_of(float a, float b)
{
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif

// As max_of, but of two zeros it may give either: for reductions, whose order is free.
template <class T> __device__ __forceinline__ T greatest_of(T a, T b) { return max_of(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float greatest_of(float a, float b)
{
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}
#endif

// x truncated and kept between low and high; 0 for NaN.
template <class Int, class Real>
__device__ __forceinline__ Int saturate(Real x, Int low, Int high)
{
    if (x != x) return 0;
    // The limits may round away from 0; all that lies between the rounded ones converts.
    return x <= Real(low) ? low : x >= Real(high) ? high : Int(x);
}

template <class Real> __device__ __forceinline__ $type to_$name(Real x)
{
    return saturate<$type>(x, $low, $high);
}

#ifndef TCL_EMULATED
// float16, by its bits.
__device__ __forceinline__ float half_to_float(unsigned short bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
#endif

#ifndef TCL_EMULATED
// The bits of a float16.
__device__ __forceinline__ unsigned short float_to_half(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#endif

// bfloat16, by its bits: the upper half of a float's.
__device__ __forceinline__ float bfloat_to_float(unsigned short bits)
{
    return __uint_as_float((unsigned int)bits << 16);
}

// The bits of a bfloat16.
__device__ __forceinline__ unsigned short float_to_bfloat(float x)
{
    unsigned int bits = __float_as_uint(x);
    if (x != x) return (unsigned short)(bits >> 16 | 0x40u);
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

__device__ __forceinline__ float round_to_half(float x)
{
    return half_to_float(float_to_half(x));
}

__device__ __forceinline__ float round_to_bfloat(float x)
{
    return bfloat_to_float(float_to_bfloat(x));
}

// x as a float, made odd where that is inexact.
__device__ __forceinline__ float odd_float(double x)
{
    float near = (float)x;
    if ((double)near == x || x != x) return near;
    bool away = fabs((double)near) > fabs(x);
    return __uint_as_float((__float_as_uint(near) - (away ? 1u : 0u)) | 1u);
}

// x as a double, made odd where that is inexact: without its last 11 bits if it has more than 53.
__device__ __forceinline__ double odd_double(long long x)
{
    const long long exact = 1LL << 53;
    if (-exact <= x && x <= exact) return (double)x;
    long long kept = x & ~2047LL;
    return (double)(kept == x ? kept : kept | 2048LL);
}
__device__ __forceinline__ double odd_double(unsigned long long x)
{
    if (x <= 1ULL << 53) return (double)x;
    unsigned long long kept = x & ~2047ULL;
    return (double)(kept == x ? kept : kept | 2048ULL);
}

// A power of two that keeps the squares of the scaled numbers in range.
__device__ inline double norm_scale(double a, double b, double c, double d)
{
    double largest = fmax(fmax(a, b), fmax(c, d));
    return largest > 0x1p500 ? 0x1p-600 : largest < 0x1p-450 ? 0x1p600 : 1.0;
}

// The length of a vector; infinite if any part is, whatever the others are.
__device__ inline float norm_of(float a, float b, float c = 0.0f, float d = 0.0f)
{
    const float limit = infinity();
    if (fabsf(a) == limit || fabsf(b) == limit || fabsf(c) == limit || fabsf(d) == limit)
        return limit;
    double x = a, y = b, z = c, w = d;  // squares of floats do not overflow there
    return (float)sqrt((x * x + y * y) + (z * z + w * w));
}
__device__ inline double norm_of(double a, double b, double c = 0.0, double d = 0.0)
{
    const double limit = infinity();
    a = fabs(a), b = fabs(b), c = fabs(c), d = fabs(d);
    if (a == limit || b == limit || c == limit || d == limit) return limit;
    double scale = norm_scale(a, b, c, d);
    a *= scale, b *= scale, c *= scale, d *= scale;
    return sqrt((a * a + b * b) + (c * c + d * d)) / scale;
}

// 1 / the length of a vector, also where that length overflows.
__device__ inline float rnorm_of(float a, float b, float c = 0.0f, float d = 0.0f)
{
    const float limit = infinity();
    if (fabsf(a) == limit || fabsf(b) == limit || fabsf(c) == limit || fabsf(d) == limit)
        return 0.0f;
    double x = a, y = b, z = c, w = d;
    return (float)(1.0 / sqrt((x * x + y * y) + (z * z + w * w)));
}
__device__ inline double rnorm_of(double a, double b, double c = 0.0, double d = 0.0)
{
    const double limit = infinity();
    a = fabs(a), b = fabs(b), c = fabs(c), d = fabs(d);
    if (a == limit || b == limit || c == limit || d == limit) return 0.0;
    double scale = norm_scale(a, b, c, d);
    a *= scale, b *= scale, c *= scale, d *= scale;
    return scale * (1.0 / sqrt((a * a + b * b) + (c * c + d * d)));
}

// 1 / (1 + exp(-x)), by an exponential that does not overflow; of float32, with what rounding lost.
__device__ inline float expit_of(float x)
{
    float e = expf(-fabsf(x)), above = x < 0.0f ? e : 1.0f, below = 1.0f + e;
    float lost = (1.0f - below) + e, inverse = 1.0f / below, ratio = above * inverse;
    return fmaf(fmaf(-ratio, below, above) - ratio * lost, inverse, ratio);
}
__device__ inline double expit_of(double x)
{
    double e = exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

// The sum of a Chebyshev series at t, by Clenshaw's recurrence.
template <int count>
__device__ inline double chebyshev(double t, const double (&c)[count])
{
    double before = 0.0, last = c[count - 1];
    for (int k = count - 2; k > 0; --k) {
        double next = fma(t + t, last, c[k] - before);
        before = last;
        last = next;
    }
    return fma(t, last, c[0] - before);
}

// The value of a polynomial, highest power first.
template <int count>
__device__ inline double polynomial(double x, const double (&c)[count])
{
    double total = c[0];
    for (int k = 1; k < count; ++k) total = fma(total, x, c[k]);
    return total;
}

// exp(x * x) * erfc(x) for x >= 0.
__device__ inline double erfcx_positive(double x)
{
    const double series[] = $ERFCX;
    if (x > 1e8) return 0.5641895835477563 / x;
    return chebyshev((x - 3.75) / (x + 3.75), series) / (1.0 + 2.0 * x);
}

// exp(factor * x * x) for a power of two, with the rounding of the square mended.
__device__ inline double exp_of_square(double x, double factor)
{
    double square = x * x, lost = fma(x, x, -square), e = exp(factor * square);
    return e == infinity() ? e : fma(factor * lost, e, e);
}

// exp(x * x) * erfc(x).
__device__ inline double erfcx_of(double x)
{
    if (x < -26.7) return infinity();
    return x < 0.0 ? 2.0 * exp_of_square(x, 1.0) - erfcx_positive(-x) : erfcx_positive(x);
}

// erfc(x), more exactly than CUDA's.
__device__ inline double erfc_of(double x)
{
    if (!(x > 0.5)) return 1.0 - erf(x);
    return x > 28.0 ? 0.0 : erfcx_positive(x) * exp_of_square(x, -1.0);
}

// y with erf(y) = x for |x| <= 0.5: its power series, then Newton's method.
__device__ inline double erfinv_central(double x)
{
    const double half_root_pi = 0.886226925452758;
    double s = x * x;
    double y = x * (((0.0867072 * s + 0.1276) * s + 0.2320136665) * s + half_root_pi);
    for (int k = 0; k < 3; ++k) y -= (erf(y) - x) * (exp(y * y) * half_root_pi);
    return y;
}

// y with erfc(y) = c for 0 < c <= 0.5: Winitzki's formula, then Newton's method on its log.
__device__ inline double erfcinv_tail(double c)
{
    const double near = 0.147, half_root_pi = 0.886226925452758;
    double first = log(c * (2.0 - c)), u = 0.5 * first + 2.0 / (3.141592653589793 * near);
    double y = sqrt(sqrt(u * u - first / near) - u), target = log(c);
    for (int k = 0; k < 3; ++k) {
        double e = erfcx_positive(y);
        y += (log(e) - target - y * y) * (e * half_root_pi);
    }
    return y;
}

// y with erf(y) = x.
__device__ inline double erfinv_of(double x)
{
    double a = fabs(x);
    if (a <= 0.5) return erfinv_central(x);
    if (!(a <= 1.0)) return not_a_number();
    return copysign(a == 1.0 ? infinity() : erfcinv_tail(1.0 - a), x);
}

// y with erfc(y) = c.
__device__ inline double erfcinv_of(double c)
{
    if (!(c >= 0.0 && c <= 2.0)) return not_a_number();
    if (c == 0.0 || c == 2.0) return c == 0.0 ? infinity() : -infinity();
    if (c < 0.5) return erfcinv_tail(c);
    return c > 1.5 ? -erfcinv_tail(2.0 - c) : erfinv_central(1.0 - c);
}

// The standard normal distribution function.
__device__ inline double normcdf_of(double x)
{
    if (x < -40.0 || x > 40.0) return x < 0.0 ? 0.0 : 1.0;
    // erfc magnifies an error of its argument: the rounding of the product is put back.
    double high = -x * 0.7071067811865476;
    double low = fma(-x, 0.7071067811865476, -high) + x * 4.833646656726457e-17;
    return 0.5 * (erfc_of(high) - 1.1283791670955126 * exp(-high * high) * low);
}

// x with normcdf(x) = p.
__device__ inline double normcdfinv_of(double p)
{
    return 0.0 - 1.4142135623730951 * erfcinv_of(2.0 * p);
}

// j$order for 0 <= a <= 3.
__device__ inline double bessel_j$order_small(double a)
{
    const double powers[] = $J$order_SMALL;
    return $oddpolynomial(a * a, powers);
}

// j$order or y$order for x > 8, by Hankel's expansion.
__device__ inline double bessel$order_far(double x, bool second_kind)
{
    const double series_p[] = $P$order;
    const double series_q[] = $Q$order;
    if (x == infinity()) return 0.0;
    double z = 8.0 / x, t = 2.0 * z * z - 1.0, s = sin(x), c = cos(x);
    double p = chebyshev(t, series_p), q = z * chebyshev(t, series_q);
    double cosine = $cosine, sine = $sine;
    double sum = second_kind ? p * sine + q * cosine : p * cosine - q * sine;
    return sum / (1.772453850905516 * sqrt(x));
}

__device__ inline double j$order_of(double x)
{
    const double middle[] = $J$order_MIDDLE;
    double a = fabs(x), value;
    if (a > 8.0)
        value = bessel$order_far(a, false);
    else
        value = a > 3.0 ? chebyshev((a - 5.5) / 2.5, middle) : bessel_j$order_small(a);
    return $sign_of_xvalue;
}

__device__ inline double y$order_of(double x)
{
    const double powers[] = $Y$order_SMALL;
    const double middle[] = $Y$order_MIDDLE;
    if (x > 8.0) return bessel$order_far(x, true);
    if (x > 3.0) return chebyshev((x - 5.5) / 2.5, middle);
$at_zero    double value = polynomial(x * x, powers);
    return 0.6366197723675814 * log(x) * bessel_j$order_small(x) + $regular;
}

__device__ inline double cyl_bessel_i$order_of(double x)
{
    const double small[] = $I$order_SMALL;
    const double large[] = $I$order_LARGE;
    double a = fabs(x), value;
    if (a > 800.0) a = 800.0;  // infinite from there on
    if (a <= 8.0) {
        value = chebyshev(0.25 * a - 1.0, small) * exp(a);
        value = $near;
    } else {
        bool halves = a > 709.0;  // exp(a) overflows before the function does
        double e = exp(halves ? 0.5 * a : a);
        value = chebyshev(16.0 / a - 1.0, large) / sqrt(a) * e;
        if (halves) value *= e;
    }
    return $whole;
}

// Adds a part to a sum; what rounding takes from it is taken off the next part.
template <class T, class M> __device__ __forceinline__ void carry(T part, M &total, M &lost)
{
    const T before = total, less = part - lost, after = before + less;
    const T off = (after - before) - less;
    lost = off - off == T(0) ? off : T(0);  // nothing once the sum is infinite
    total = after;
}

// N neighbouring elements, moved at once.
template <class T, int N> struct alignas(sizeof(T) * N) vector { T element[N]; };

// Reads N neighbouring elements at once; where they are not there, zeros.
template <int N, class T> __device__ __forceinline__ void load(T *to, const T *from)
{
    const vector<T, N> all = *reinterpret_cast<const vector<T, N> *>(from);
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = all.element[k];
}
template <int N, class T>
__device__ __forceinline__ void load(T *to, const T *from, bool there)
{
    if (there) {
        load<N>(to, from);
    } else {
#pragma unroll
        for (int k = 0; k < N; ++k) to[k] = T(0);
    }
}

// Writes N neighbouring elements at once.
template <int N, class T> __device__ __forceinline__ void store(T *to, const T *from)
{
    vector<T, N> all;
#pragma unroll
    for (int k = 0; k < N; ++k) all.element[k] = from[k];
    *reinterpret_cast<vector<T, N> *>(to) = all;
}

// Writes the results of tensor cores that a pair of threads has of two times 8 columns, two each:
// one thread those of the first 8, the other one those of the second 8.
template <class T> __device__ __forceinline__ void store_exchanged(T *to, const T (&from)[2][2])
{
    static_assert(sizeof(T) == 2, "16-bit results");
    const bool odd = threadIdx.x % 2;
    unsigned int words[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        words[k] = (unsigned short)from[k][0] | (unsigned int)(unsigned short)from[k][1] << 16;
    }
    const unsigned int got = __shfl_xor_sync(0xffffffffu, odd ? words[0] : words[1], 1);
    const unsigned int both[2] = {odd ? got : words[0], odd ? words[1] : got};
    store<2>((unsigned int *)(to + (odd ? 6 : 0)), both);
}

// Copies N neighbouring elements to shared memory; where they are not there, zeros.
template <int N, class T>
__device__ __forceinline__ void copy(T *to, const T *from, bool there)
{
    vector<T, N> all = {};
    if (there) all = *reinterpret_cast<const vector<T, N> *>(from);
    *reinterpret_cast<vector<T, N> *>(to) = all;
}

// A sum as it is stored, in another register. Vectors are stored from neighbouring registers; sums
// that lay in these would lie in the banks of operands that are read in vectors.
__device__ __forceinline__ float detached(float x)
{
    return __uint_as_float(__float_as_uint(x) ^ threadIdx.x >> 20);
}

#ifndef TCL_EMULATED
// Copies BYTES to shared memory without waiting; where they are not there, zeros. SHARED: other
// blocks of the multiprocessor read the same, and find it in the first cache.
template <int BYTES, bool SHARED = false>
__device__ __forceinline__ void copy_async(void *to, const void *from, bool there)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16 && !SHARED) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(at), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     :: "r"(at), "l"(from), "r"(bytes), "n"(BYTES) : "memory");
    }
}
#endif

#ifndef TCL_EMULATED
// The copies since the last call are a group.
__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#endif

#ifndef TCL_EMULATED
// Waits until at most the N latest groups of this thread's copies are not done yet.
template <int N> __device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
#endif

// The value of the thread of the warp whose number differs in one bit.
template <class T> __device__ __forceinline__ T exchanged(T value, int apart)
{
    if constexpr (sizeof(T) < 4) {
        return T(__shfl_xor_sync(0xffffffffu, int(value), apart));
    } else {
        return __shfl_xor_sync(0xffffffffu, value, apart);
    }
}

// The values of the threads of a warp whose numbers differ in these bits, combined; each of them
// gets the result. All threads of the warp take part.
template <int BITS, class T, class Op>
__device__ __forceinline__ T over_warp(T value, Op op)
{
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        if (BITS & apart) value = op(value, exchanged(value, apart));
    }
    return value;
}

// What threads wrote whose numbers differ in these bits, those of warps, combined.
template <int BITS, class T, class Op>
__device__ __forceinline__ T over_warps(const T *written, Op op)
{
    const int first = threadIdx.x & ~BITS;
    T value = written[first];
#pragma unroll
    for (int apart = BITS & -BITS; apart <= BITS; apart += BITS & -BITS) {
        if ((apart & ~BITS) == 0) value = op(value, written[first + apart]);
    }
    return value;
}

// Likewise N neighbouring values of each thread, which lie together.
template <int BITS, int N, class T, class Op>
__device__ __forceinline__ void vectors_over_warps(T *made, const T *written, Op op)
{
    const int first = threadIdx.x & ~BITS;
    load<N>(made, written + first * N);
#pragma unroll
    for (int apart = BITS & -BITS; apart <= BITS; apart += BITS & -BITS) {
        if ((apart & ~BITS) == 0) {
            T other[N];
            load<N>(other, written + (first + apart) * N);
#pragma unroll
            for (int k = 0; k < N; ++k) made[k] = op(made[k], other[k]);
        }
    }
}

// Whether this block is the last of so many to come here; that one sees what all of them wrote before.
//
// The order of the grid barrier in CUDA's cooperative_groups, and of the sample threadFenceReduction
// (CUDA C++ Programming Guide, "Memory Fence Functions"): the barrier puts what all threads of the
// block wrote before the fence of the first one, which is cumulative, and the fence puts that before
// the atomic operation. The last block reads what the other ones' operations left, so these come
// before its own; its second fence and barrier put all of that before what its threads do next
// (PTX ISA, "Memory Consistency Model", causality order). This fence also drops lines of the
// multiprocessor's own cache, so that ordinary reads find what others wrote. The count goes back to
// 0 by itself: for the next launch, which may be a replay of a graph.
__device__ __forceinline__ bool last_of(int count, int *arrived)
{
    int last = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc((unsigned *)arrived, count - 1) == count - 1;
        __threadfence();
    }
    return __syncthreads_or(last);
}

// The index if it is one of an axis, else its first one; that is recorded, but for later failures.
__device__ __forceinline__ long long checked(
    long long index, long long first, long long extent, unsigned long long site,
    unsigned long long *error)
{
    if (index >= first && index < first + extent) return index;
    if (atomicCAS(error, 0ull, site) == 0ull) error[1] = (unsigned long long)index;
    return first;
}
__device__ __forceinline__ long long checked(
    unsigned long long index, long long first, long long extent, unsigned long long site,
    unsigned long long *error)
{
    const unsigned long long end = (unsigned long long)(first + extent);
    if (first + extent > 0 && (first <= 0 || index >= (unsigned long long)first) && index < end) {
        return (long long)index;
    }
    if (atomicCAS(error, 0ull, site) == 0ull) error[1] = index;
    return first;
}

// A float32, rounded to the 10 bits of mantissa of tf32.
__device__ __forceinline__ unsigned int to_tf32(float value)
{
#ifndef TCL_EMULATED
    unsigned int bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
#else
    const unsigned int bits = __float_as_uint(value);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
#endif
}

#ifndef TCL_EMULATED
// Adds the product of 16 x $depth and $depth x 8 $what to 16 x 8 sums of a warp.
__device__ __forceinline__ void mma_m16n8k$shape(
    float (&d)[4], const unsigned int (&a)[4], const unsigned int (&b)[2])
{
    asm("mma.sync.aligned.m16n8k$depth.row.col.f32.$kind.$kind.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Where an element of a panel lies in which vectors of N elements change places: those of a line of
// so many elements by the number of the line.
template <int LINE, int WAYS, int N> __device__ __forceinline__ int swizzled(unsigned int at)
{
    return at ^ at / LINE % WAYS * N;
}

// Where an element of a panel lies in which rows of ROW elements are cut into pieces of 64, and the
// first pieces of all ROWS rows lie before all second ones; in these, vectors change places.
template <int ROW, int ROWS> __device__ __forceinline__ int in_slabs(unsigned int at)
{
    return swizzled<64, 8, 8>(at % ROW / 64 * (64 * ROWS) + at / ROW * 64 + at % 64);
}

#ifndef TCL_EMULATED
// What this thread wrote to shared memory, tensor cores can read after the next barrier.
__device__ __forceinline__ void fence_panels()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#endif

#ifndef TCL_EMULATED
// Where a part of a panel is, as tensor cores read it: pieces of 128 bytes of rows, in which vectors
// change places; LEADING bytes from those of 64 numbers to the next ones, STRIDE bytes for 8 rows.
template <int LEADING, int STRIDE>
__device__ __forceinline__ unsigned long long panel_part(const void *part)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(part);
    return (at >> 4 & 0x3fff) | (unsigned long long)(LEADING >> 4) << 16
        | (unsigned long long)(STRIDE >> 4) << 32 | 1ull << 62;
}
#endif

#ifndef TCL_EMULATED
// Before the products of a warpgroup that others do not follow: its sums are where they belong.
__device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
#endif

#ifndef TCL_EMULATED
// The products since the last call are a group.
__device__ __forceinline__ void commit_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#endif

#ifndef TCL_EMULATED
// Waits until at most the latest group of products is not added up yet.
__device__ __forceinline__ void wait_for_earlier_products()
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}
#endif

#ifndef TCL_EMULATED
// Waits until all products are added up. The assemblers of CUDA 13.0 and 13.5 move reads of sums
// before that, but not before a branch, which is never taken.
template <int N> __device__ __forceinline__ void end_products(float (&sums)[N])
{
    unsigned int multiprocessor;
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    if (multiprocessor == 0xffffffffu) asm volatile("trap;");
#pragma unroll
    for (int k = 0; k < N; ++k) asm volatile("" : "+f"(sums[k]) :: "memory");
}
#endif

#ifndef TCL_EMULATED
// Begins a product of 64 x 16 and 16 x $wide $what for the 64 x $wide sums of a warpgroup. Rows of
// the parts go along the points that are summed up, or across them.
template <int A_ACROSS, int B_ACROSS>
__device__ __forceinline__ void wgmma_m64n$widek16_$kind(
    float (&d)[$each], unsigned long long a, unsigned long long b)
{
    asm volatile("{ .reg .pred sum; setp.ne.b32 sum, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n$widek16.f32.$kind.$kind {"
        $numbers
        "}, %$first, %$second, sum, 1, 1, %$third, %$fourth; }"
        : $sums
        : "l"(a), "l"(b), "n"(A_ACROSS), "n"(B_ACROSS) : "memory");
}
#endif

#ifndef TCL_EMULATED
// Reads $count matrices of 8 x 8 16-bit numbers from shared memory$how: each thread
// gives the address of a row.
__device__ __forceinline__ void load_matrix_x$form(
    unsigned int (&d)[$count], const void *row)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x$count$ptx.shared.b16 {$to}, [%$count];"
                 : $outputs : "r"(at) : "memory");
}
#endif
