// Functions of each entry by itself, in grid-stride loops over all N entries.

#define EACH(i, N) \
    (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < N; i += gridDim.x * (long long)blockDim.x)

// y = max(x, 0);  NaN stays NaN
__global__ void relu(const float* x, long long N, float* y) {
    for EACH(i, N) y[i] = x[i] <= 0 ? 0 : x[i];
}

__global__ void relu_backward(const float* y, const float* dy, long long N, float* dx) {
    for EACH(i, N) dx[i] = dy[i] * (y[i] > 0);
}

// z = x + max(y, 0);  on is where y > 0
__global__ void residual_relu(const float* x, const float* y, long long N, float* z, bool* on) {
    for EACH(i, N) {
        z[i] = x[i] + (y[i] <= 0 ? 0 : y[i]);
        on[i] = y[i] > 0;
    }
}

// y = factor·x where on, else 0·x:  dropout, and the backward of residual_relu
__global__ void scaled_where(const float* x, const bool* on, double factor, long long N, float* y) {
    for EACH(i, N) y[i] = x[i] * on[i] * (float)factor;
}

#define SLOPE 0.7978845608028654f        // √(2/π)
#define CUBIC 0.044715f

__device__ float tanh_u(float x) { return tanhf(SLOPE * (x + CUBIC * x * x * x)); }

// Φ(x), the standard normal distribution function
__device__ float distribution(float x, bool approximate) {
    return 0.5f * (1 + (approximate ? tanh_u(x) : erff(x * 0.7071067811865476f)));
}

// φ(x), its derivative
__device__ float density(float x, bool approximate) {
    if (!approximate) return expf(-0.5f * x * x) * 0.3989422804014327f;
    const float t = tanh_u(x);
    return 0.5f * (1 - t * t) * SLOPE * (1 + 3 * CUBIC * x * x);
}

// y = x·Φ(x)
__global__ void gelu(const float* x, long long approximate, long long N, float* y) {
    for EACH(i, N) y[i] = x[i] * distribution(x[i], approximate);
}

// dx = dy·(Φ(x) + x·φ(x))
__global__ void gelu_backward(const float* x, const float* dy, long long approximate, long long N, float* dx) {
    for EACH(i, N) dx[i] = dy[i] * (distribution(x[i], approximate) + x[i] * density(x[i], approximate));
}

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// silu′(x), where s = σ(x)
__device__ float silu_slope(float x, float s) { return s * (1 + x * (1 - s)); }

// y = x·σ(x)
__global__ void silu(const float* x, long long N, float* y) {
    for EACH(i, N) y[i] = x[i] * sigmoid(x[i]);
}

__global__ void silu_backward(const float* x, const float* dy, long long N, float* dx) {
    for EACH(i, N) dx[i] = dy[i] * silu_slope(x[i], sigmoid(x[i]));
}

// y = silu(gate)·x
__global__ void swiglu(const float* gate, const float* x, long long N, float* y) {
    for EACH(i, N) y[i] = gate[i] * sigmoid(gate[i]) * x[i];
}

__global__ void swiglu_backward(
    const float* gate, const float* x, const float* dy, long long N, float* dgate, float* dx
) {
    for EACH(i, N) {
        const float s = sigmoid(gate[i]);
        dgate[i] = dy[i] * x[i] * silu_slope(gate[i], s);
        dx[i] = dy[i] * (gate[i] * s);
    }
}

// The k-th pair of each row of x (B, H, T, m) turned by ±φ,  φ = (first + t)·base^(−2k/m).  A thread computes the angle,
// in double precision, once for all H heads; there are N = B·T·m/2 of them.
__global__ void rotary(
    const float* x, long long x_B, long long x_H, long long x_T, double sign, long long first, double base,
    long long halves, long long H, long long T, long long m, long long N,
    float* y, long long y_B, long long y_H, long long y_T
) {
    const long long pairs = m / 2, apart = halves ? pairs : 1;
    for EACH(i, N) {
        const long long k = i % pairs, t = i / pairs % T, text = i / pairs / T, place = halves ? k : 2 * k;
        const double phi = sign * (first + t) * pow(base, -2.0 * k / m);
        const float cos_phi = cos(phi), sin_phi = sin(phi);
        for (long long h = 0; h < H; h++) {
            const float* pair = x + text * x_B + h * x_H + t * x_T + place;
            float* turned = y + text * y_B + h * y_H + t * y_T + place;
            const float a = pair[0], b = pair[apart];
            turned[0] = a * cos_phi - b * sin_phi;
            turned[apart] = a * sin_phi + b * cos_phi;
        }
    }
}

// y += b, a row of n entries, on each row of y
__global__ void add_row(const float* b, long long n, long long N, float* y) {
    for EACH(i, N) y[i] += b[i % n];
}

// sums = Σ over the rows of y (rows, n)
__global__ void column_sums(const float* y, long long rows, long long n, float* sums) {
    const long long j = (long long)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    float sum = 0;
    if (j < n) {
        #pragma unroll 8
        for (long long row = threadIdx.x / COLUMNS; row < rows; row += blockDim.x / COLUMNS) sum += y[row * n + j];
    }
    sum = sum_over_column(sum);
    if (threadIdx.x < COLUMNS && j < n) sums[j] = sum;
}
