// Rows of a table, by the ids of words; and words averaged.

// x = table[id], a block for each word; 0 where there is no word, NaN where the table has no such id
__global__ void embedding(
    const float* table, const long long* ids, long long may_be_absent, long long absent, long long c, long long n,
    float* x
) {
    const long long id = ids[blockIdx.x];
    const bool here = !may_be_absent || id != absent, known = 0 <= id && id < c;
    for IN_ROW(j, n) x[blockIdx.x * n + j] = !here ? 0 : known ? table[id * n + j] : not_a_number();
}

// dtable[i] = Σ dx over the places of word i: a block for each word of the table, which looks through all ids, so that
// the sum is in the order of the places.
__global__ void embedding_backward(
    const float* dx, const long long* ids, long long words, long long may_be_absent, long long absent, long long n,
    float* dtable
) {
    __shared__ long long places[1024];
    __shared__ unsigned found_by[32];
    const long long i = blockIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    dtable += i * n;
    for IN_ROW(j, n) dtable[j] = 0;
    bool occurs = false;
    for IN_ROW(place, words) occurs |= ids[place] == i;
    if (!__syncthreads_or(occurs)) return;               // as most words of a large vocabulary
    for (long long first = 0; first < words; first += blockDim.x) {
        const long long place = first + threadIdx.x;
        const bool is_i = place < words && ids[place] == i && !(may_be_absent && i == absent);
        const unsigned found = __ballot_sync(ALL, is_i);
        if (lane == 0) found_by[warp] = found;
        __syncthreads();
        int before = __popc(found & ((1u << lane) - 1)), all = 0;
        for (int k = 0; k < blockDim.x / 32; k++) {
            if (k < warp) before += __popc(found_by[k]);
            all += __popc(found_by[k]);
        }
        if (is_i) places[before] = place;
        __syncthreads();
        if (all == 0) continue;
        for IN_ROW(j, n) {
            float sum = dtable[j];
            #pragma unroll 4
            for (int k = 0; k < all; k++) sum += dx[places[k] * n + j];
            dtable[j] = sum;
        }
        __syncthreads();                 // before the next places are written
    }
}

// y = mean over the words of a text where the mask is True, 0 if there is none; a block for each text x (T, n)
__global__ void mean_pool(
    const float* x, const bool* mask, long long masked, long long T, long long n, float* weight, float* y
) {
    x += blockIdx.x * T * n;
    mask += masked ? blockIdx.x * T : 0;
    weight += blockIdx.x * T;
    float count = 0;
    for IN_ROW(t, T) count += !masked || mask[t];
    count = block_sum(count);
    if (count == 0) count = 1;
    for IN_ROW(t, T) weight[t] = (!masked || mask[t]) / count;
    __syncthreads();
    for IN_ROW(j, n) {
        float sum = 0;
        for (long long t = 0; t < T; t++) sum += x[t * n + j] * weight[t];
        y[blockIdx.x * n + j] = sum;
    }
}

// dx = dy·weight, a block for each word
__global__ void mean_pool_backward(const float* dy, const float* weight, long long T, long long n, float* dx) {
    dy += blockIdx.x / T * n;
    for IN_ROW(j, n) dx[blockIdx.x * n + j] = dy[j] * weight[blockIdx.x];
}
