// NumPy's PCG64: s ← a·s + c mod 2¹²⁸, and of each state 64 mixed bits

#define DRAWS 16                         // of a thread, one after the other

struct Whole { unsigned long long high, low; };          // of 128 bits

__device__ Whole whole(long long high, long long low) {
    Whole x;
    x.high = high;
    x.low = low;
    return x;
}

__device__ Whole times(Whole x, Whole y) {
    return whole(__umul64hi(x.low, y.low) + x.high * y.low + x.low * y.high, x.low * y.low);
}

__device__ Whole plus(Whole x, Whole y) {
    const unsigned long long low = x.low + y.low;
    return whole(x.high + y.high + (low < x.low), low);
}

// on[i] = (draw i of the generator, a number in [0, 1)) ≥ rate
__global__ void keep(
    long long state_high, long long state_low, long long c_high, long long c_low, long long a_high, long long a_low,
    double rate, long long entries, bool* on
) {
    const long long first = DRAWS * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    Whole s = whole(state_high, state_low);
    const Whole a = whole(a_high, a_low), c = whole(c_high, c_low);
    Whole factor = a, added = c;         // of 1, 2, 4, … steps at once
    for (long long steps = first; steps > 0; steps /= 2) {
        if (steps % 2) s = plus(times(factor, s), added);
        added = plus(times(factor, added), added);
        factor = times(factor, factor);
    }
    for (long long i = first; i < first + DRAWS && i < entries; i++) {
        s = plus(times(a, s), c);
        const unsigned long long mixed = s.high ^ s.low;
        const int turn = s.high >> 58;
        const unsigned long long bits = mixed >> turn | mixed << (-turn & 63);
        on[i] = (bits >> 11) * (1.0 / 9007199254740992.0) >= rate;       // the upper 53 bits, times 2⁻⁵³
    }
}
