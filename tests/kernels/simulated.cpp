// A GPU of one core: the threads of a block are fibers, which run one after another from one barrier to the next.
//
// The .cu files follow this text, compiled as C++. Shared memory is static, because one block runs at a time; at first
// it holds what the block before left there, as on a GPU.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <setjmp.h>
#include <ucontext.h>

#define __global__ static
#define __device__ static
#define __shared__ static
#define __grid_constant__
using std::isfinite;

struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim, gridDim;

const int MOST = 1024, STACK = 1 << 15;                  // threads of a block; bytes
static jmp_buf fibers[MOST], scheduler;                  // where each goes on, without swapcontext's system call
static bool begun[MOST], ended[MOST];
static char stacks[MOST][STACK];
static const std::function<void()> *kernel;

struct Barrier { int members, arrived; long passed; };
static Barrier of_block, of_warp[MOST / 32];
static float exchanged[MOST];
static bool voted[MOST];

static void leave() {
    if (!_setjmp(fibers[threadIdx.x])) _longjmp(scheduler, 1);
}

static void release(Barrier &barrier) {
    if (barrier.members && barrier.arrived == barrier.members) {
        barrier.arrived = 0;
        barrier.passed++;
    }
}

static void wait(Barrier &barrier) {
    const long passed = barrier.passed;
    barrier.arrived++;
    release(barrier);
    while (barrier.passed == passed) leave();
}

static void fiber() {
    for (;; leave()) {                                   // block after block
        (*kernel)();
        const int t = threadIdx.x;
        ended[t] = true;
        for (Barrier *barrier : {&of_block, &of_warp[t / 32]}) {     // the others no longer wait for this thread
            barrier->members--;
            release(*barrier);
        }
    }
}

static void go_on(unsigned t) {
    threadIdx.x = t;
    if (_setjmp(scheduler)) return;
    if (begun[t]) _longjmp(fibers[t], 1);
    begun[t] = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[t];
    context.uc_stack.ss_size = STACK;
    makecontext(&context, fiber, 0);
    setcontext(&context);
}

static void launch(unsigned blocks, unsigned threads, const std::function<void()> &function) {
    kernel = &function;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        of_block = {(int)threads, 0, 0};
        for (unsigned w = 0; w < threads / 32; w++) of_warp[w] = {32, 0, 0};
        memset(ended, 0, threads);
        for (bool more = true; more;) {
            more = false;
            for (unsigned t = 0; t < threads; t++)
                if (!ended[t]) {
                    go_on(t);
                    more = true;
                }
        }
    }
}

static void __syncthreads() { wait(of_block); }

static int __syncthreads_or(int x) {
    static int any;
    wait(of_block);
    any = 0;
    wait(of_block);
    any |= x;
    wait(of_block);
    return any;
}

static float __shfl_sync(unsigned, float x, int lane) {
    const int t = threadIdx.x, warp = t / 32;
    exchanged[t] = x;
    wait(of_warp[warp]);
    const float y = exchanged[warp * 32 + lane];
    wait(of_warp[warp]);
    return y;
}

static float __shfl_xor_sync(unsigned all, float x, int k) { return __shfl_sync(all, x, threadIdx.x % 32 ^ k); }

static unsigned __ballot_sync(unsigned, bool vote) {
    const int t = threadIdx.x, warp = t / 32;
    voted[t] = vote;
    wait(of_warp[warp]);
    unsigned all = 0;
    for (int lane = 0; lane < 32; lane++) all |= (unsigned)voted[warp * 32 + lane] << lane;
    wait(of_warp[warp]);
    return all;
}

static int __popc(unsigned x) { return __builtin_popcount(x); }

static float __int_as_float(unsigned x) {
    float y;
    memcpy(&y, &x, 4);
    return y;
}

static void __threadfence() {}

static unsigned long long atomicAdd(unsigned long long *sum, unsigned long long x) {
    const unsigned long long before = *sum;
    *sum += x;
    return before;
}

static unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned __int128)x * y >> 64;
}
