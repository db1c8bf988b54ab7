// Inverses of the diagonal blocks of a triangular matrix, for the triangular solve of tiles (gpu/cuda/triangular_solve.cpp).
// scripts/embed-ptx.mjs compiles this file to PTX and writes native/gpu/cuda/triangles_ptx.h.
//
// A block of `width` rows lies in out + b * width * width. Every matrix is given by the distances of its rows and columns, so
// that an upper triangle is a lower one with both exchanged. Source: the blocked inversion of triangular matrices, N. J.
// Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 14.2.

typedef long long Index;

constexpr int kSide = 64;             // rows that one block of threads inverts
constexpr int kThreads = 256;
constexpr int kPitch = kSide + 1;     // of a row in shared memory
constexpr int kHalf = kSide / 2;
constexpr int kStep = 16;             // columns of the left factor that are in shared memory at once

// The 32 rows from `from` on, by one warp: every thread has one column.
template <typename T>
static __device__ void invertHalf(T* x, int from, int column) {
  T v[kHalf];
#pragma unroll
  for (int i = 0; i < kHalf; ++i) v[i] = i == column ? T(1) : T(0);
#pragma unroll
  for (int k = 0; k < kHalf; ++k) {
    v[k] /= x[(from + k) * kPitch + from + k];
#pragma unroll
    for (int i = k + 1; i < kHalf; ++i) v[i] -= x[(from + i) * kPitch + from + k] * v[k];
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kHalf; ++i) x[(from + i) * kPitch + from + column] = v[i];
}

// to (rows from `row`, columns from `column`) = sign * (rows from `row`, columns from `left`) * (rows from `right`, the same
// columns), 32 x 32 each; `to` may be one of the factors.
template <typename T>
static __device__ void multiplyHalves(T* x, int row, int left, int right, int column, int toRow, T sign) {
  T sums[kHalf * kHalf / kThreads];
#pragma unroll
  for (int q = 0; q < kHalf * kHalf / kThreads; ++q) {
    const int e = threadIdx.x + q * kThreads;
    T sum = 0;
#pragma unroll 8
    for (int k = 0; k < kHalf; ++k) sum += x[(row + e / kHalf) * kPitch + left + k] * x[(right + k) * kPitch + column + e % kHalf];
    sums[q] = sign * sum;
  }
  __syncthreads();
#pragma unroll
  for (int q = 0; q < kHalf * kHalf / kThreads; ++q) {
    const int e = threadIdx.x + q * kThreads;
    x[(toRow + e / kHalf) * kPitch + column + e % kHalf] = sums[q];
  }
  __syncthreads();
}

template <typename T>
static __device__ void invertTriangles(const T* a, Index row, Index column, Index unit, T* out, Index outRow, Index outColumn,
                                       Index width) {
  __shared__ T x[kSide * kPitch];
  const Index at = (Index)blockIdx.x * kSide;
  const T* from = a + at * (row + column);
  T* to = out + at / width * width * width + at % width * (outRow + outColumn);
  for (int e = threadIdx.x; e < kSide * kSide; e += kThreads) {
    const int i = e % kSide;
    const int j = e / kSide;
    x[i * kPitch + j] = i > j ? from[i * row + j * column] : i < j ? T(0) : unit ? T(1) : from[i * (row + column)];
  }
  __syncthreads();
  if (threadIdx.x < kSide) invertHalf(x, threadIdx.x / kHalf * kHalf, threadIdx.x % kHalf);
  __syncthreads();
  // Below the diagonal: -inverse(22) * (21) * inverse(11), first the right product, where (21) was.
  multiplyHalves(x, kHalf, 0, 0, 0, kHalf, T(1));
  multiplyHalves(x, kHalf, kHalf, kHalf, 0, kHalf, T(-1));
  for (int e = threadIdx.x; e < kSide * kSide; e += kThreads) {
    const int i = e % kSide;
    const int j = e / kSide;
    to[i * outRow + j * outColumn] = x[i * kPitch + j];
  }
}

// 64 x 64 elements of the product of two matrices of order `half`; `first` and `end` are the part of the sum that is not 0.
template <typename T>
static __device__ void multiplyTile(const T* left, Index leftRow, Index leftColumn, const T* right, Index rightRow,
                                    Index rightColumn, T* to, Index toRow, Index toColumn, int first, int end, T sign) {
  __shared__ T l[kStep * kPitch];
  __shared__ T r[kStep * kPitch];
  const int i = threadIdx.x % 16;
  const int j = threadIdx.x / 16;
  T sums[4][4] = {};
  for (int k0 = first; k0 < end; k0 += kStep) {
    for (int e = threadIdx.x; e < kSide * kStep; e += kThreads) {
      const int of = leftRow == 1 ? e % kSide : e / kStep;
      const int k = leftRow == 1 ? e / kSide : e % kStep;
      l[k * kPitch + of] = left[of * leftRow + (k0 + k) * leftColumn];
    }
    for (int e = threadIdx.x; e < kSide * kStep; e += kThreads) {
      const int of = rightColumn == 1 ? e % kSide : e / kStep;
      const int k = rightColumn == 1 ? e / kSide : e % kStep;
      r[k * kPitch + of] = right[(k0 + k) * rightRow + of * rightColumn];
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kStep; ++k) {
      T x[4];
      T y[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) x[q] = l[k * kPitch + i + 16 * q];
#pragma unroll
      for (int q = 0; q < 4; ++q) y[q] = r[k * kPitch + j + 16 * q];
#pragma unroll
      for (int p = 0; p < 4; ++p) {
#pragma unroll
        for (int q = 0; q < 4; ++q) sums[p][q] += x[p] * y[q];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
#pragma unroll
    for (int q = 0; q < 4; ++q) to[(i + 16 * p) * toRow + (j + 16 * q) * toColumn] = sign * sums[p][q];
  }
}

// Pairs of inverted blocks of `half` rows become one of twice as many. Step 0: the product (21) * inverse(11) to `between`; step
// 1: -inverse(22) * between to its place, and 0 above the diagonal. Grid: (half / 64)^2 tiles, pairs.
template <typename T>
static __device__ void joinInverses(const T* a, Index row, Index column, T* out, Index outRow, Index outColumn, Index width,
                                    Index half, T* between, Index step) {
  const Index at = (Index)blockIdx.y * 2 * half;
  const int tiles = (int)(half / kSide);
  const int i = (int)blockIdx.x % tiles * kSide;
  const int j = (int)blockIdx.x / tiles * kSide;
  T* first = out + at / width * width * width + at % width * (outRow + outColumn);
  between += (Index)blockIdx.y * half * half;
  const T* second = first + half * (outRow + outColumn);
  const bool isFirst = step == 0;
  multiplyTile(isFirst ? a + (at + half + i) * row + at * column : second + i * outRow, isFirst ? row : outRow,
               isFirst ? column : outColumn, isFirst ? (const T*)first + j * outColumn : (const T*)between + j * half,
               isFirst ? outRow : (Index)1, isFirst ? outColumn : half,
               isFirst ? between + i + j * half : first + (half + i) * outRow + j * outColumn, isFirst ? (Index)1 : outRow,
               isFirst ? half : outColumn, isFirst ? j : 0, isFirst ? (int)half : i + kSide, isFirst ? T(1) : T(-1));
  if (isFirst) return;
  T* above = first + i * outRow + (half + j) * outColumn;
  for (int e = threadIdx.x; e < kSide * kSide; e += kThreads) above[e % kSide * outRow + e / kSide * outColumn] = 0;
}

// `order` is for models of this kernel that have no blocks of threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    headrace_invert_triangles_f64(const double* a, Index row, Index column, Index unit, double* out, Index outRow,
                                  Index outColumn, Index width, Index) {
  invertTriangles(a, row, column, unit, out, outRow, outColumn, width);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    headrace_invert_triangles_f32(const float* a, Index row, Index column, Index unit, float* out, Index outRow,
                                  Index outColumn, Index width, Index) {
  invertTriangles(a, row, column, unit, out, outRow, outColumn, width);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    headrace_join_inverses_f64(const double* a, Index row, Index column, double* out, Index outRow, Index outColumn,
                               Index width, Index half, double* between, Index step, Index) {
  joinInverses(a, row, column, out, outRow, outColumn, width, half, between, step);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    headrace_join_inverses_f32(const float* a, Index row, Index column, float* out, Index outRow, Index outColumn,
                               Index width, Index half, float* between, Index step, Index) {
  joinInverses(a, row, column, out, outRow, outColumn, width, half, between, step);
}
