// Adam and sums of squares, of all arrays of a table in one launch. A block takes CHUNK entries of one array.

#define ROWS 64
#define CHUNK 4096

struct Table {                           // as updates.py has it; the entries of each row describe one parameter
    float *p[ROWS]; const float *g[ROWS]; float *m[ROWS], *v[ROWS];
    long long size[ROWS];
    int first[ROWS];                     // the block that begins with it
    float rate[ROWS], eps[ROWS];
    int rows;
};

// What the block works on: entries first to end − 1 of a row
struct Part { int row; long long first, end; };

__device__ Part part_of(const Table* table) {
    Part part;
    part.row = 0;
    while (part.row + 1 < table->rows && table->first[part.row + 1] <= (int)blockIdx.x) part.row++;
    part.first = (long long)(blockIdx.x - table->first[part.row]) * CHUNK;
    part.end = part.first + CHUNK < table->size[part.row] ? part.first + CHUNK : table->size[part.row];
    return part;
}

// Σ x over a block, in double precision, the same in each of its threads
__device__ double block_sum_of_doubles(double x) {
    __shared__ double sums[1024];
    __syncthreads();
    sums[threadIdx.x] = x;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    return sums[0];
}

__device__ double square_sum(const Table* table) {
    const Part part = part_of(table);
    const float* g = table->g[part.row];
    double sum = 0;
    for (long long i = part.first + threadIdx.x; i < part.end; i += blockDim.x) sum += (double)g[i] * g[i];
    return block_sum_of_doubles(sum);
}

// partial[before + block] = Σ g² of the block's entries
__global__ void squares(const __grid_constant__ Table table, long long before, double* partial) {
    const double sum = square_sum(&table);
    if (threadIdx.x == 0) partial[before + blockIdx.x] = sum;
}

// The same; and the last block to finish adds up all sums: entry = (loss, Σ g²). stop becomes 1 if one is not finite.
__global__ void squares_into_record(
    const __grid_constant__ Table table, long long before, double* partial, long long all, const float* loss, double* entry, double* stop,
    long long* finished
) {
    __shared__ bool last;
    const double sum = square_sum(&table);
    if (threadIdx.x == 0) {
        partial[before + blockIdx.x] = sum;
        __threadfence();                 // the last block sees what the others wrote before they counted
        last = atomicAdd((unsigned long long*)finished, 1ull) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    double total = 0;
    for (long long i = threadIdx.x; i < all; i += blockDim.x) total += ((volatile double*)partial)[i];
    total = block_sum_of_doubles(total);
    if (threadIdx.x == 0) {
        *finished = 0;
        entry[0] = *loss;
        entry[1] = total;
        if (!isfinite(entry[0]) || !isfinite(total)) *stop = 1;
    }
}

// rest1, rest2: 1 − β₁, 1 − β₂;  rate and eps of the table have the bias corrections in them
__device__ void adam_of_part(
    const Table* table, float factor, float beta1, float beta2, float rest1, float rest2, float decay
) {
    const Part part = part_of(table);
    const float rate = table->rate[part.row], eps = table->eps[part.row];
    const float* g = table->g[part.row];
    float *p = table->p[part.row], *m = table->m[part.row], *v = table->v[part.row];
    for (long long i = part.first + threadIdx.x; i < part.end; i += blockDim.x) {
        const float slope = factor * g[i];
        const float mean = beta1 * m[i] + rest1 * slope, square = beta2 * v[i] + rest2 * slope * slope;
        m[i] = mean;
        v[i] = square;
        p[i] = decay * p[i] - rate * mean / (sqrtf(square) + eps);
    }
}

__global__ void adam(const __grid_constant__ Table table, double beta1, double beta2, double decay) {
    adam_of_part(&table, 1, beta1, beta2, 1 - beta1, 1 - beta2, decay);
}

// The same for gradients clipped to the norm `most`, if it is above 0; nothing changes once stop is 1
__global__ void adam_by_record(
    const __grid_constant__ Table table, double beta1, double beta2, double decay, double most, const double* entry, const double* stop
) {
    if (*stop) return;
    const double norm = sqrt(entry[1]);
    const float factor = most > 0 && norm > most ? most / norm : 1;
    adam_of_part(&table, factor, beta1, beta2, 1 - beta1, 1 - beta2, decay);
}
