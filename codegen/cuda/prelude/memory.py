"""Helper functions of the kernels' source: memory, and what threads do together."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "carry": """\
// Adds a part to a sum; what rounding takes from it is taken off the next part.
template <class T, class M> __device__ __forceinline__ void carry(T part, M &total, M &lost)
{
    const T before = total, less = part - lost, after = before + less;
    const T off = (after - before) - less;
    lost = off - off == T(0) ? off : T(0);  // nothing once the sum is infinite
    total = after;
}
""",
    "vector": """\
// N neighbouring elements, moved at once.
template <class T, int N> struct alignas(sizeof(T) * N) vector { T element[N]; };
""",
    "load": """\
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
""",
    "store": """\
// Writes N neighbouring elements at once.
template <int N, class T> __device__ __forceinline__ void store(T *to, const T *from)
{
    vector<T, N> all;
#pragma unroll
    for (int k = 0; k < N; ++k) all.element[k] = from[k];
    *reinterpret_cast<vector<T, N> *>(to) = all;
}
""",
    "copy": """\
// Copies N neighbouring elements to shared memory; where they are not there, zeros.
template <int N, class T>
__device__ __forceinline__ void copy(T *to, const T *from, bool there)
{
    vector<T, N> all = {};
    if (there) all = *reinterpret_cast<const vector<T, N> *>(from);
    *reinterpret_cast<vector<T, N> *>(to) = all;
}
""",
    "copy_async": """\
#ifndef TCL_EMULATED
// Copies BYTES to shared memory without waiting; where they are not there, zeros.
template <int BYTES>
__device__ __forceinline__ void copy_async(void *to, const void *from, bool there)
{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(to);
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(at), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     :: "r"(at), "l"(from), "r"(bytes), "n"(BYTES) : "memory");
    }
}
#endif
""",
    "commit_copies": """\
#ifndef TCL_EMULATED
// The copies since the last call are a group.
__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#endif
""",
    "wait_copies": """\
#ifndef TCL_EMULATED
// Waits until at most the N latest groups of this thread's copies are not done yet.
template <int N> __device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
#endif
""",
    "exchanged": """\
// The value of the thread of the warp whose number differs in one bit.
template <class T> __device__ __forceinline__ T exchanged(T value, int apart)
{
    if constexpr (sizeof(T) < 4) {
        return T(__shfl_xor_sync(0xffffffffu, int(value), apart));
    } else {
        return __shfl_xor_sync(0xffffffffu, value, apart);
    }
}
""",
    "over_threads": """\
// The values of COUNT threads, STRIDE apart, combined; each of them gets the result. All threads of
// the block take part.
template <int COUNT, int STRIDE, class T, class Op>
__device__ __forceinline__ T over_threads(T value, Op op, T *exchange)
{
    constexpr int END = COUNT * STRIDE;
#pragma unroll
    for (int apart = STRIDE; apart < (END < 32 ? END : 32); apart *= 2) {
        value = op(value, exchanged(value, apart));
    }
    if (END > 32) {  // the other warps' values, through shared memory
        constexpr int NEXT = STRIDE > 32 ? STRIDE : 32;
        exchange[threadIdx.x] = value;
        __syncthreads();
        const int first = threadIdx.x / END * END + threadIdx.x % NEXT;
        value = exchange[first];
#pragma unroll
        for (int apart = NEXT; apart < END; apart += NEXT) {
            value = op(value, exchange[first + apart]);
        }
        __syncthreads();
    }
    return value;
}
""",
    "checked": """\
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
""",
    "to_tf32": """\
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
""",
    **{
        name: f"""\
#ifndef TCL_EMULATED
// Adds the product of 16 x {depth} and {depth} x 8 {what} to 16 x 8 sums of a warp.
__device__ __forceinline__ void {name}(
    float (&d)[4], const unsigned int (&a)[4], const unsigned int (&b)[2])
{{
    asm("mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}
#endif
"""
        for name, depth, kind, what in (
            ("mma_m16n8k16_f16", 16, "f16", "float16"),
            ("mma_m16n8k16_bf16", 16, "bf16", "bfloat16"),
            ("mma_m16n8k8_tf32", 8, "tf32", "tf32"),
        )
    },
    **{
        f"load_matrix_x{count}{trans}": f"""\
#ifndef TCL_EMULATED
// Reads {count} matrices of 8 x 8 16-bit numbers from shared memory{how}: each thread
// gives the address of a row.
__device__ __forceinline__ void load_matrix_x{count}{trans}(
    unsigned int (&d)[{count}], const void *row)
{{
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{ptx}.shared.b16 {{{to}}}, [%{count}];"
                 : {outputs} : "r"(at) : "memory");
}}
#endif
"""
        for count in (2, 4)
        for trans, ptx, how in (("", "", ""), ("_trans", ".trans", ", transposed"))
        for to in (", ".join(f"%{k}" for k in range(count)),)
        for outputs in (", ".join(f'"=r"(d[{k}])' for k in range(count)),)
    },
}
