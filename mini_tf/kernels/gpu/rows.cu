// Functions of a row: a block for each row, whose threads stride over its entries.

#define IN_ROW(i, n) (long long i = threadIdx.x; i < n; i += blockDim.x)

// y = γ·x̂ + β,  x̂ = (x − μ)·r,  r = 1/√(σ² + ε)
__global__ void layer_norm(
    const float* x, const float* gamma, const float* beta, double eps, long long n, float* y, float* mean, float* r
) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float sum = 0, squares = 0;
    for IN_ROW(i, n) sum += x[i];
    const float mu = block_sum(sum) / n;
    for IN_ROW(i, n) squares += (x[i] - mu) * (x[i] - mu);
    const float r_here = 1 / sqrtf(block_sum(squares) / n + (float)eps);
    for IN_ROW(i, n) y[i] = gamma[i] * ((x[i] - mu) * r_here) + beta[i];
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = mu;
        r[blockIdx.x] = r_here;
    }
}

// dγ = Σ dy·x̂,  dβ = Σ dy  over the rows
__device__ void layer_norm_columns(
    const float* x, const float* dy, const float* mean, const float* r, long long rows, long long n,
    float* dgamma, float* dbeta
) {
    const long long i = (long long)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    float sum = 0, with_normal = 0;
    if (i < n) {
        #pragma unroll 4
        for (long long row = threadIdx.x / COLUMNS; row < rows; row += blockDim.x / COLUMNS) {
            sum += dy[row * n + i];
            with_normal += dy[row * n + i] * ((x[row * n + i] - mean[row]) * r[row]);
        }
    }
    sum = sum_over_column(sum);
    with_normal = sum_over_column(with_normal);
    if (threadIdx.x < COLUMNS && i < n) {
        dbeta[i] = sum;
        dgamma[i] = with_normal;
    }
}

// With g = dy·γ:  dx = r·(g − mean(g) − x̂·mean(g·x̂)), a block for each row.  The first blocks, one for each
// COLUMNS columns, compute dγ and dβ.
__global__ void layer_norm_backward(
    const float* x, const float* dy, const float* gamma, const float* mean, const float* r, long long rows, long long n,
    float* dx, float* dgamma, float* dbeta
) {
    const long long row = blockIdx.x - (n + COLUMNS - 1) / COLUMNS;
    if (row < 0) {
        layer_norm_columns(x, dy, mean, r, rows, n, dgamma, dbeta);
        return;
    }
    x += row * n;
    dy += row * n;
    dx += row * n;
    const float mu = mean[row], r_here = r[row];
    float g = 0, with_normal = 0;
    for IN_ROW(i, n) {
        g += dy[i] * gamma[i];
        with_normal += dy[i] * gamma[i] * ((x[i] - mu) * r_here);
    }
    g = block_sum(g) / n;
    with_normal = block_sum(with_normal) / n;
    for IN_ROW(i, n) dx[i] = r_here * (dy[i] * gamma[i] - g - (x[i] - mu) * r_here * with_normal);
}

// y = γ·x̂,  x̂ = x·r,  r = 1/√(mean(x²) + ε)
__global__ void rms_norm(const float* x, const float* gamma, double eps, long long n, float* y, float* r) {
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float squares = 0;
    for IN_ROW(i, n) squares += x[i] * x[i];
    const float r_here = 1 / sqrtf(block_sum(squares) / n + (float)eps);
    for IN_ROW(i, n) y[i] = gamma[i] * (x[i] * r_here);
    if (threadIdx.x == 0) r[blockIdx.x] = r_here;
}

// dγ = Σ dy·x̂  over the rows
__device__ void rms_norm_columns(
    const float* x, const float* dy, const float* r, long long rows, long long n, float* dgamma
) {
    const long long i = (long long)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    float sum = 0;
    if (i < n) {
        #pragma unroll 4
        for (long long row = threadIdx.x / COLUMNS; row < rows; row += blockDim.x / COLUMNS)
            sum += dy[row * n + i] * (x[row * n + i] * r[row]);
    }
    sum = sum_over_column(sum);
    if (threadIdx.x < COLUMNS && i < n) dgamma[i] = sum;
}

// With g = dy·γ:  dx = r·(g − x̂·mean(g·x̂)).  Blocks as for layer_norm_backward.
__global__ void rms_norm_backward(
    const float* x, const float* dy, const float* gamma, const float* r, long long rows, long long n,
    float* dx, float* dgamma
) {
    const long long row = blockIdx.x - (n + COLUMNS - 1) / COLUMNS;
    if (row < 0) {
        rms_norm_columns(x, dy, r, rows, n, dgamma);
        return;
    }
    x += row * n;
    dy += row * n;
    dx += row * n;
    const float r_here = r[row];
    float with_normal = 0;
    for IN_ROW(i, n) with_normal += dy[i] * gamma[i] * (x[i] * r_here);
    with_normal = block_sum(with_normal) / n;
    for IN_ROW(i, n) dx[i] = r_here * (dy[i] * gamma[i] - x[i] * r_here * with_normal);
}

// y = exp(z − max z) / Σ exp(z − max z)
__global__ void softmax(const float* z, long long n, float* y) {
    z += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -infinity(), total = 0;
    for IN_ROW(j, n) top = fmaxf(top, z[j]);
    top = block_max(top);
    for IN_ROW(j, n) total += y[j] = expf(z[j] - top);
    total = block_sum(total);
    for IN_ROW(j, n) y[j] /= total;
}

// Where a row of an array (B, H, Q, K) begins in one that is broadcast to it, with these strides, in entries
__device__ long long begin(
    long long row, long long H, long long Q, long long B_stride, long long H_stride, long long Q_stride
) {
    return row / (H * Q) * B_stride + row / Q % H * H_stride + row % Q * Q_stride;
}

// The same over the entries where the mask is True; the others are 0, and so is a row with nothing allowed.
__global__ void masked_softmax(
    const float* z, const bool* mask, long long mask_B, long long mask_H, long long mask_Q, long long mask_K,
    long long H, long long Q, long long n, float* y
) {
    mask += begin(blockIdx.x, H, Q, mask_B, mask_H, mask_Q);
    z += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -infinity(), total = 0;
    for IN_ROW(j, n) if (mask[j * mask_K]) top = fmaxf(top, z[j]);
    top = block_max(top);
    if (top == -infinity()) top = 0;
    for IN_ROW(j, n) total += y[j] = mask[j * mask_K] ? expf(z[j] - top) : 0;
    total = block_sum(total);
    if (total == 0) total = 1;
    for IN_ROW(j, n) y[j] /= total;
}

// dz = y·(dy − Σ y·dy), for both
__global__ void softmax_backward(const float* y, const float* dy, long long n, float* dz) {
    y += blockIdx.x * n;
    dy += blockIdx.x * n;
    dz += blockIdx.x * n;
    float sum = 0;
    for IN_ROW(j, n) sum += y[j] * dy[j];
    sum = block_sum(sum);
    for IN_ROW(j, n) dz[j] = y[j] * (dy[j] - sum);
}

// losses = log Σ_i exp(z_i) − Σ_i q_i·z_i,  q = (1 − ε)·onehot(target) + ε/c.  A row whose target is `ignore` does not
// count: 0. A target that is no word gives NaN.
__global__ void cross_entropy(
    const float* z, const long long* target, long long ignores, long long ignore, double smoothing, long long c,
    float* largest, float* total, float* losses
) {
    z += blockIdx.x * c;
    const long long word = target[blockIdx.x];
    const bool counted = !ignores || word != ignore;
    float top = -infinity(), sum = 0, all = 0;
    for IN_ROW(i, c) top = fmaxf(top, z[i]);
    top = block_max(top);
    for IN_ROW(i, c) {
        sum += expf(z[i] - top);
        all += z[i] - top;
    }
    sum = block_sum(sum);
    all = smoothing ? block_sum(all) / c : 0;
    if (threadIdx.x == 0) {
        const bool known = 0 <= word && word < c;
        float expected = z[known ? word : 0] - top;
        if (smoothing) expected = (float)(1 - smoothing) * expected + (float)smoothing * all;
        largest[blockIdx.x] = top;
        total[blockIdx.x] = sum;
        losses[blockIdx.x] = !counted ? 0 : known ? logf(sum) - expected : not_a_number();
    }
}

// The mean of the losses that count, and their number; NaN if there is none. One block.
__global__ void mean_of_losses(
    const float* losses, const long long* target, long long ignores, long long ignore, long long rows,
    float* loss, float* count
) {
    float sum = 0, counted = 0;
    for IN_ROW(row, rows) {
        sum += losses[row];
        counted += !ignores || target[row] != ignore;
    }
    sum = block_sum(sum);
    counted = block_sum(counted);
    if (threadIdx.x == 0) {
        *loss = sum / counted;
        *count = counted;
    }
}

// dz = dloss·(softmax(z) − q)/rows;  dloss is a number here, or one on the GPU
__global__ void cross_entropy_backward(
    const float* z, const float* largest, const float* total, const long long* target, long long ignores,
    long long ignore, const float* count, const float* dloss_there, long long there, double dloss_here,
    double smoothing, long long c, float* dz
) {
    z += blockIdx.x * c;
    dz += blockIdx.x * c;
    const long long word = target[blockIdx.x];
    const float dloss = there ? *dloss_there : dloss_here;
    const float weight = dloss / *count * (!ignores || word != ignore);
    const float top = largest[blockIdx.x], over_total = weight / total[blockIdx.x];
    const float on_target = (float)(1 - smoothing) * weight, on_all = smoothing ? (float)(smoothing / c) * weight : 0;
    for IN_ROW(i, c) dz[i] = expf(z[i] - top) * over_total - on_all - (i == word ? on_target : 0);
}
