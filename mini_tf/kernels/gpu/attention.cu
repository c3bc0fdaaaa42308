// Attention: Y = A·V,  A = softmax(scale·Q·Kᵀ + bias).  A block has 8 warps, and each warp has one query (or one key).
//
// The arrays are (B, H, T, m), views of (B, T, H·m), each with its strides along B, H and T, in entries; the m entries of a
// vector are contiguous. A and dS are (B, H, Tq, Tk), contiguous.

#define WARPS 8

// Where the vectors of a head begin; head: its number among all B·H
__device__ long long of_head(long long head, long long H, long long B_stride, long long H_stride) {
    return head / H * B_stride + head % H * H_stride;
}

// What a block works with at a time, in shared memory: 32 × 32 entries of a matrix, and 32 of each warp's vector
struct Tile {
    alignas(16) float vectors[WARPS][32];        // so that four entries are read at once
    float matrix[32][33];                        // 33: so that its 32 rows begin in different banks
};

// Fill the tile with the matrix's entries from (row, column) on, 0 where it has ended, and with x of each thread.
__device__ void load(
    Tile &tile, const float* matrix, long long stride, long long rows, long long columns,
    long long row, long long column, float x
) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();                     // what was in it has been read
    for (int r = warp; r < 32; r += WARPS)
        tile.matrix[r][lane] =
            row + r < rows && column + lane < columns ? matrix[(row + r) * stride + column + lane] : 0;
    tile.vectors[warp][lane] = x;
    __syncthreads();
}

// out[j] = Σ_c x[c]·matrix[j][c]:  the warp's vector x (columns) times each row of the matrix. Lane j % 32 writes it.
__device__ void times_each_row(
    bool active, const float* x, const float* matrix, long long stride, long long rows, long long columns, float* out
) {
    __shared__ Tile tile;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (long long row = 0; row < rows; row += 32) {
        float sum = 0;
        for (long long column = 0; column < columns; column += 32) {
            const float own = active && column + lane < columns ? x[column + lane] : 0;
            load(tile, matrix, stride, rows, columns, row, column, own);
            for (int c = 0; c < 32; c++) sum += tile.vectors[warp][c] * tile.matrix[lane][c];
        }
        if (active && row + lane < rows) out[row + lane] = sum;
    }
}

// out[c] = factor·Σ_j x[j]·matrix[j][c]:  the sum of the matrix's rows, with the warp's weights x[0], x[x_stride], …
__device__ void sum_of_rows(
    bool active, const float* x, long long x_stride, const float* matrix, long long stride, long long rows,
    long long columns, float factor, float* out
) {
    __shared__ Tile tile;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (long long column = 0; column < columns; column += 32) {
        float sum = 0;
        for (long long row = 0; row < rows; row += 32) {
            const float own = active && row + lane < rows ? x[(row + lane) * x_stride] : 0;
            load(tile, matrix, stride, rows, columns, row, column, own);
            for (int r = 0; r < 32; r++) sum += tile.vectors[warp][r] * tile.matrix[r][lane];
        }
        if (active && column + lane < columns) out[column + lane] = factor * sum;
    }
}

__global__ void attention(
    const float* query, long long query_B, long long query_H, long long query_T,
    const float* key, long long key_B, long long key_H, long long key_T,
    const float* value, long long value_B, long long value_H, long long value_T,
    const bool* mask, long long masked, long long mask_B, long long mask_H, long long mask_Q, long long mask_K,
    const float* bias, long long biased, long long bias_B, long long bias_H, long long bias_Q, long long bias_K,
    double scale, long long H, long long Tq, long long Tk, long long m, long long d,
    float* A, float* Y, long long Y_B, long long Y_H, long long Y_T
) {
    const long long tiles = (Tq + WARPS - 1) / WARPS, head = blockIdx.x / tiles;
    const long long i = blockIdx.x % tiles * WARPS + threadIdx.x / 32, row = head * Tq + i;
    const int lane = threadIdx.x % 32;
    const bool active = i < Tq;
    A += row * Tk;
    query += of_head(head, H, query_B, query_H) + i * query_T;
    times_each_row(active, query, key + of_head(head, H, key_B, key_H), key_T, Tk, m, A);
    if (active) {                                        // each lane goes on with the entries that it wrote
        mask += masked ? begin(row, H, Tq, mask_B, mask_H, mask_Q) : 0;
        bias += biased ? begin(row, H, Tq, bias_B, bias_H, bias_Q) : 0;
        float top = -infinity(), total = 0;
        for (long long j = lane; j < Tk; j += 32) {
            const float score = (float)scale * A[j] + (biased ? bias[j * bias_K] : 0);
            A[j] = masked && !mask[j * mask_K] ? -infinity() : score;
            top = fmaxf(top, A[j]);
        }
        top = warp_max(top);
        if ((masked || biased) && top == -infinity()) top = 0;           // there is no key to see
        for (long long j = lane; j < Tk; j += 32) total += A[j] = expf(A[j] - top);
        total = warp_sum(total);
        if ((masked || biased) && total == 0) total = 1;
        for (long long j = lane; j < Tk; j += 32) A[j] /= total;
    }
    Y += of_head(head, H, Y_B, Y_H) + i * Y_T;
    sum_of_rows(active, A, 1, value + of_head(head, H, value_B, value_H), value_T, Tk, d, 1, Y);
}

// dA = dY·Vᵀ,  dS = A·(dA − Σ A·dA),  dQ = scale·dS·K:  a warp for each query
__global__ void attention_backward_of_queries(
    const float* dY, long long dY_B, long long dY_H, long long dY_T,
    const float* key, long long key_B, long long key_H, long long key_T,
    const float* value, long long value_B, long long value_H, long long value_T,
    double scale, long long H, long long Tq, long long Tk, long long m, long long d,
    const float* A, float* dS, float* dquery, long long dquery_B, long long dquery_H, long long dquery_T
) {
    const long long tiles = (Tq + WARPS - 1) / WARPS, head = blockIdx.x / tiles;
    const long long i = blockIdx.x % tiles * WARPS + threadIdx.x / 32, row = head * Tq + i;
    const bool active = i < Tq;
    A += row * Tk;
    dS += row * Tk;
    dY += of_head(head, H, dY_B, dY_H) + i * dY_T;
    times_each_row(active, dY, value + of_head(head, H, value_B, value_H), value_T, Tk, d, dS);
    if (active) {
        float sum = 0;
        for (long long j = threadIdx.x % 32; j < Tk; j += 32) sum += A[j] * dS[j];
        sum = warp_sum(sum);
        for (long long j = threadIdx.x % 32; j < Tk; j += 32) dS[j] = A[j] * (dS[j] - sum);
    }
    dquery += of_head(head, H, dquery_B, dquery_H) + i * dquery_T;
    sum_of_rows(active, dS, 1, key + of_head(head, H, key_B, key_H), key_T, Tk, m, scale, dquery);
}

// dK = scale·dSᵀ·Q,  dV = Aᵀ·dY:  a warp for each key
__global__ void attention_backward_of_keys(
    const float* dY, long long dY_B, long long dY_H, long long dY_T,
    const float* query, long long query_B, long long query_H, long long query_T,
    double scale, long long H, long long Tq, long long Tk, long long m, long long d,
    const float* A, const float* dS,
    float* dkey, long long dkey_B, long long dkey_H, long long dkey_T,
    float* dvalue, long long dvalue_B, long long dvalue_H, long long dvalue_T
) {
    const long long tiles = (Tk + WARPS - 1) / WARPS, head = blockIdx.x / tiles;
    const long long j = blockIdx.x % tiles * WARPS + threadIdx.x / 32;
    const bool active = j < Tk;
    A += head * Tq * Tk + j;
    dS += head * Tq * Tk + j;
    dkey += of_head(head, H, dkey_B, dkey_H) + j * dkey_T;
    dvalue += of_head(head, H, dvalue_B, dvalue_H) + j * dvalue_T;
    sum_of_rows(active, dS, Tk, query + of_head(head, H, query_B, query_H), query_T, Tq, m, scale, dkey);
    sum_of_rows(active, A, Tk, dY + of_head(head, H, dY_B, dY_H), dY_T, Tq, d, 1, dvalue);
}
