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

// The kernels of reductions, bit for bit as on the host (kernels/combine.cpp). Elements: f64, f32, i32, u32, u8. Operators:
// sum, product, min, max.
static __device__ double asNumber(double value) {
  return value == value ? value : __longlong_as_double(0x7ff8000000000000ll);
}
static __device__ float asNumber(float value) {
  return value == value ? value : __int_as_float(0x7fc00000);
}
static __device__ int asNumber(int value) { return value; }
static __device__ unsigned asNumber(unsigned value) { return value; }
static __device__ unsigned char asNumber(unsigned char value) { return value; }

// The type in which sums and products are formed: integers wrap.
static __device__ double wide(double value) { return value; }
static __device__ float wide(float value) { return value; }
static __device__ unsigned wide(int value) { return (unsigned)value; }
static __device__ unsigned wide(unsigned value) { return value; }
static __device__ unsigned wide(unsigned char value) { return value; }

static __device__ bool isNegative(double value) { return __double_as_longlong(value) < 0; }
static __device__ bool isNegative(float value) { return __float_as_int(value) < 0; }
static __device__ bool isNegative(int value) { return value < 0; }
static __device__ bool isNegative(unsigned) { return false; }
static __device__ bool isNegative(unsigned char) { return false; }

template <typename T>
static __device__ T combined(T left, T right, int op) {
  if (op == 0) return asNumber((T)(wide(left) + wide(right)));
  if (op == 1) return asNumber((T)(wide(left) * wide(right)));
  if (left != left) return asNumber(left);
  if (right != right) return asNumber(right);
  const bool isLess = left < right || (left == right && isNegative(left));
  return isLess == (op == 2) ? left : right;
}

template <typename T>
static __device__ void combineAll(T* to, const T* from, long long count, int op) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = combined(to[i], from[i], op);
  }
}

extern "C" __global__ void headrace_combine(void* to, const void* from, long long count,
                                            long long element, long long op) {
  switch (element) {
    case 0:
      return combineAll((double*)to, (const double*)from, count, (int)op);
    case 1:
      return combineAll((float*)to, (const float*)from, count, (int)op);
    case 2:
      return combineAll((int*)to, (const int*)from, count, (int)op);
    case 3:
      return combineAll((unsigned*)to, (const unsigned*)from, count, (int)op);
    default:
      return combineAll((unsigned char*)to, (const unsigned char*)from, count, (int)op);
  }
}

template <typename T>
static __device__ void setAll(T* to, long long count, T value) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = value;
  }
}

extern "C" __global__ void headrace_identity(void* to, long long count, long long element,
                                             double value) {
  switch (element) {
    case 0:
      return setAll((double*)to, count, value);
    case 1:
      return setAll((float*)to, count, (float)value);
    case 2:
      return setAll((int*)to, count, (int)value);
    case 3:
      return setAll((unsigned*)to, count, (unsigned)value);
    default:
      return setAll((unsigned char*)to, count, (unsigned char)value);
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
