// What the 32 threads of a warp, or all threads of a block, compute together.
//
// Sums are added up in an order that depends on the number of threads only: the same numbers give the same bits each
// time. (Threads that add to one place with atomicAdd come in any order.)

#define ALL 0xffffffffu

__device__ float infinity() { return __int_as_float(0x7f800000); }
__device__ float not_a_number() { return __int_as_float(0x7fc00000); }

// Σ x over a warp, the same in each of its threads: first pairs, then pairs of pairs, …
__device__ float warp_sum(float x) {
    for (int k = 16; k > 0; k /= 2) x += __shfl_xor_sync(ALL, x, k);
    return x;
}

__device__ float warp_max(float x) {
    for (int k = 16; k > 0; k /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, k));
    return x;
}

// Σ x over a block, the same in each of its threads
__device__ float block_sum(float x) {
    __shared__ float of_warp[32];
    x = warp_sum(x);
    __syncthreads();                     // somebody may still be reading the sums of the last call
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int k = 0; k < blockDim.x / 32; k++) x += of_warp[k];
    return x;
}

__device__ float block_max(float x) {
    __shared__ float of_warp[32];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    for (int k = 0; k < blockDim.x / 32; k++) x = fmaxf(x, of_warp[k]);
    return x;
}

// Sums of columns: a block takes COLUMNS of them. The threads of a column stride over its rows, each with a sum of its
// own; this adds up their sums. The first COLUMNS threads get the results.
#define COLUMNS 8

__device__ float sum_over_column(float x) {
    __shared__ float of_thread[1024];
    __syncthreads();
    of_thread[threadIdx.x] = x;
    __syncthreads();
    float sum = 0;
    if (threadIdx.x < COLUMNS)
        for (int k = threadIdx.x; k < blockDim.x; k += COLUMNS) sum += of_thread[k];
    return sum;
}
