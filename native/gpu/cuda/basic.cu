// The basic kernels on CUDA (names, flows and parameters: kernels/basic.cpp). scripts/embed-ptx.mjs compiles this file
// to PTX and writes native/gpu/cuda/kernels_ptx.h, so that building Headrace needs no CUDA.

extern "C" __global__ void headrace_empty() {}

extern "C" __global__ void headrace_fill_f64(double* to, long long count, double value) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = value;
  }
}

extern "C" __global__ void headrace_add_f64(double* to, const double* from, long long count,
                                            double factor) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] += factor * from[i];
  }
}

static __device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

extern "C" __global__ void headrace_spin(double microseconds) {
  const unsigned long long end = nanoseconds() + (unsigned long long)(microseconds * 1000);
  while (nanoseconds() < end) {
  }
}

// Task Bench's compute-bound loop: 64 values, one per thread.
extern "C" __global__ void headrace_compute_bound(long long iterations, double* never) {
  double a = 1.2345;
  for (long long i = 0; i < iterations; ++i) a = a * a + a;
  if (a == 0.5) *never = a;
}

// Keeps its blocks busy until *word == value, at most 20 s, then stores the word (or -1) to *seen.
extern "C" __global__ void headrace_await_word(const volatile long long* word, long long* seen,
                                               long long value) {
  const unsigned long long end = nanoseconds() + 20000000000ull;
  long long now = *word;
  while (now != value && nanoseconds() < end) now = *word;
  __threadfence_system();
  if (blockIdx.x == 0 && threadIdx.x == 0) *seen = now == value ? now : -1;
}

// Writes to an illegal address: for tests of lost devices.
extern "C" __global__ void headrace_illegal_address(long long address) {
  *(volatile double*)address = 1;
}

// Task Bench's checking kernel (kernels/taskbench.cpp), one block. A mismatch goes to *outcome, which lies in host
// memory: 1 + the first wrong input. The kernel checks everything before it writes.
struct TaskBenchInputs {
  const longlong2* data[16];
  int columns[16];
};

extern "C" __global__ void headrace_taskbench(longlong2* output, long long pairs, long long step,
                                              long long column, long long iterations,
                                              long long count, volatile int* outcome,
                                              TaskBenchInputs inputs) {
  __shared__ int wrong;
  if (threadIdx.x == 0) wrong = 0x7fffffff;
  __syncthreads();
  for (int i = 0; i < count; ++i) {
    for (long long k = threadIdx.x; k < pairs; k += blockDim.x) {
      const longlong2 pair = inputs.data[i][k];
      if (pair.x != step - 1 || pair.y != inputs.columns[i]) atomicMin(&wrong, i + 1);
    }
  }
  __syncthreads();
  if (wrong != 0x7fffffff) {
    if (threadIdx.x == 0) {
      *outcome = wrong;
      __threadfence_system();
    }
    return;
  }
  double a = 1.2345;
  for (long long i = 0; i < iterations; ++i) a = a * a + a;
  if (a == 0.5) *outcome = 0;
  const longlong2 mine = make_longlong2(step, column);
  for (long long k = threadIdx.x; k < pairs; k += blockDim.x) output[k] = mine;
}
