"""Helper functions of the kernels' source: memory, and what threads do together."""

from __future__ import annotations

HELPERS: dict[str, str] = {
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
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
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
        for (int apart = NEXT; apart < END; apart += NEXT) value = op(value, exchange[first + apart]);
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
}
