// Kernels of LU and QR factorisations by tiles, in double (`_f64`) and single (`_f32`) precision, with the layout and the
// flags of kernels/tile.cpp. Pivots are 32-bit integers from 1.
//
//   getrf       flows A, P        params m, n, last, lda
//               P A = L U; with `last` returns the first pivot (from 1) that is 0
//   getrf_unpivoted  flow A      params n, lda
//               A = L U without exchanges of rows, n x n; returns the first pivot (from 1) that is 0
//   tstrf       flows U, A, L, P  params m, n, last, ldu, lda, ldl
//               [U; A] = P^T [L; A'] U' with partial pivoting: U upper, n x n, what lies below its diagonal is kept; A m x n
//               gets the lower part of the factor, L n x n the upper one; codes as getrf
//   swap_rows   flows A, P        params k, m, n, lda
//               exchanges row i of A, m x n, with row P(i), i = 1 ... k
//   swap_pairs  flows A, B, P     params k, m, n, lda, ldb
//               the same for [A; B], where A has k rows, B has m rows
//   geqrt       flows A, T        params m, n, nb, lda
//               A = Q R, T is nb x min(m, n)
//   gemqrt      flows V, T, C     params trans, m, n, k, nb, ldv, ldc
//               C := Q C, or Q^T C; C is m x n
//   tpqrt       flows A, B, T     params m, n, nb, lda, ldb
//               [R; B] = Q [R'; 0], R the upper triangle of A, n x n; B, m x n, gets V; T is nb x n
//   tpmqrt      flows V, T, A, B  params trans, m, n, k, nb, ldv, lda, ldb
//               [A; B] := Q [A; B], or Q^T [A; B]; A is k x n, B m x n
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/blas.h"
#include "kernels/kernels.h"
#include "kernels/lapack.h"
#include "kernels/tile_arguments.h"

namespace headrace {
namespace {

using Index = std::ptrdiff_t;

bool pivotsOf(const headrace_task* task, int flow, int count, std::int32_t** pivots) {
  return tileMatrix<std::int32_t>(task, flow, count, 1, count, pivots);
}

template <typename T>
std::int32_t getrfKernel(const headrace_task* task) {
  TileParams params(task, 2, 4);
  const int m = params.size();
  const int n = params.size();
  const bool last = params.flag(0, 1) == 1;
  const int lda = params.leading(m);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  std::int32_t* pivots;
  if (!tileMatrix<T>(task, 0, m, n, lda, &a) || !pivotsOf(task, 1, std::min(m, n), &pivots)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  const int zero = lapack<T>().getrf(m, n, a, lda, pivots);
  return last ? std::max(zero, 0) : 0;
}

/// Columns from which on halves are factorised one after the other, with a solve and a product between them.
constexpr int UNPIVOTED_BLOCK = 32;

/// A = L U in place, n x n. Returns the first pivot (from 1) that is 0, without the work behind it.
template <typename T>
int factorUnpivoted(int n, T* a, int lda) {
  const Index stride = lda;
  if (n > UNPIVOTED_BLOCK) {
    const int half = n / 2;
    const int rest = n - half;
    T* below = a + half;
    T* right = a + half * stride;
    int zero = factorUnpivoted(half, a, lda);
    if (zero > 0) return zero;
    blas<T>().trsm('L', 'L', 'N', 'U', half, rest, T{1}, a, lda, right, lda);
    blas<T>().trsm('R', 'U', 'N', 'N', rest, half, T{1}, a, lda, below, lda);
    blas<T>().gemm('N', 'N', rest, rest, half, T{-1}, below, lda, right, lda, T{1}, right + half,
                   lda);
    zero = factorUnpivoted(rest, right + half, lda);
    return zero > 0 ? half + zero : 0;
  }
  for (Index k = 0; k < n; ++k) {
    T* column = a + k * stride;
    const T pivot = column[k];
    if (pivot == T{0}) return static_cast<int>(k) + 1;
    for (Index i = k + 1; i < n; ++i) column[i] /= pivot;
    for (Index j = k + 1; j < n; ++j) {
      T* other = a + j * stride;
      for (Index i = k + 1; i < n; ++i) other[i] -= column[i] * other[k];
    }
  }
  return 0;
}

template <typename T>
std::int32_t getrfUnpivotedKernel(const headrace_task* task) {
  TileParams params(task, 1, 2);
  const int n = params.size();
  const int lda = params.leading(n);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  if (!tileMatrix<T>(task, 0, n, n, lda, &a)) return HEADRACE_OUT_OF_RANGE;
  return factorUnpivoted(n, a, lda);
}

template <typename T>
std::int32_t tstrfKernel(const headrace_task* task) {
  TileParams params(task, 4, 6);
  const int m = params.size();
  const int n = params.size();
  const bool last = params.flag(0, 1) == 1;
  const Index ldu = params.leading(n);
  const Index lda = params.leading(m);
  const Index ldl = params.leading(n);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* u;
  T* a;
  T* l;
  std::int32_t* pivots;
  if (!tileMatrix<T>(task, 0, n, n, static_cast<int>(ldu), &u) ||
      !tileMatrix<T>(task, 1, m, n, static_cast<int>(lda), &a) ||
      !tileMatrix<T>(task, 2, n, n, static_cast<int>(ldl), &l) || !pivotsOf(task, 3, n, &pivots)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  const Index rows = n + m;
  std::vector<T> stack(static_cast<std::size_t>(rows * n) + 1);
  for (Index j = 0; j < n; ++j) {
    T* column = stack.data() + j * rows;
    std::copy(u + j * ldu, u + j * ldu + j + 1, column);
    std::copy(a + j * lda, a + j * lda + m, column + n);
  }
  const int zero =
      lapack<T>().getrf(static_cast<int>(rows), n, stack.data(), static_cast<int>(rows), pivots);
  for (Index j = 0; j < n; ++j) {
    const T* column = stack.data() + j * rows;
    std::copy(column, column + j + 1, u + j * ldu);
    // trsm takes the diagonal as 1 and does not read what is above it.
    std::fill(l + j * ldl, l + j * ldl + j + 1, T{0});
    std::copy(column + j + 1, column + n, l + j * ldl + j + 1);
    std::copy(column + n, column + rows, a + j * lda);
  }
  return last ? std::max(zero, 0) : 0;
}

/// Exchanges rows of [A; B], where A has `split` rows, in all columns. False: a pivot is no row.
template <typename T>
bool exchange(const std::int32_t* pivots, int k, Index split, Index rows, int n, T* a, Index lda,
              T* b, Index ldb) {
  for (int i = 0; i < k; ++i) {
    if (pivots[i] < 1 || pivots[i] > rows) return false;
  }
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < k; ++i) {
      const Index row = pivots[i] - 1;
      T& other = row < split ? a[row + j * lda] : b[row - split + j * ldb];
      std::swap(a[i + j * lda], other);
    }
  }
  return true;
}

template <typename T>
std::int32_t swapRowsKernel(const headrace_task* task) {
  TileParams params(task, 2, 4);
  const int k = params.size();
  const int m = params.size();
  const int n = params.size();
  const int lda = params.leading(m);
  if (!params.ok() || k > m) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  std::int32_t* pivots;
  if (!tileMatrix<T>(task, 0, m, n, lda, &a) || !pivotsOf(task, 1, k, &pivots)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  return exchange<T>(pivots, k, m, m, n, a, lda, nullptr, 0) ? 0 : HEADRACE_BAD_ARGUMENTS;
}

template <typename T>
std::int32_t swapPairsKernel(const headrace_task* task) {
  TileParams params(task, 3, 5);
  const int k = params.size();
  const int m = params.size();
  const int n = params.size();
  const int lda = params.leading(k);
  const int ldb = params.leading(m);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  T* b;
  std::int32_t* pivots;
  if (!tileMatrix<T>(task, 0, k, n, lda, &a) || !tileMatrix<T>(task, 1, m, n, ldb, &b) ||
      !pivotsOf(task, 2, k, &pivots)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  const Index rows = static_cast<Index>(k) + m;
  return exchange<T>(pivots, k, k, rows, n, a, lda, b, ldb) ? 0 : HEADRACE_BAD_ARGUMENTS;
}

template <typename T>
std::int32_t geqrtKernel(const headrace_task* task) {
  TileParams params(task, 2, 4);
  const int m = params.size();
  const int n = params.size();
  const int nb = params.size();
  const int lda = params.leading(m);
  const int k = std::min(m, n);
  if (!params.ok() || nb < 1 || nb > k) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  T* t;
  if (!tileMatrix<T>(task, 0, m, n, lda, &a) || !tileMatrix<T>(task, 1, nb, k, nb, &t)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  lapack<T>().geqrt(m, n, nb, a, lda, t, nb);
  return 0;
}

template <typename T>
std::int32_t gemqrtKernel(const headrace_task* task) {
  TileParams params(task, 3, 7);
  const char trans = params.flag('N', 'T');
  const int m = params.size();
  const int n = params.size();
  const int k = params.size();
  const int nb = params.size();
  const int ldv = params.leading(m);
  const int ldc = params.leading(m);
  if (!params.ok() || k > m || nb < 1 || nb > k) return HEADRACE_BAD_ARGUMENTS;
  const T* v;
  const T* t;
  T* c;
  if (!tileMatrix<T>(task, 0, m, k, ldv, &v) || !tileMatrix<T>(task, 1, nb, k, nb, &t) ||
      !tileMatrix<T>(task, 2, m, n, ldc, &c)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  lapack<T>().gemqrt(trans, m, n, k, nb, v, ldv, t, nb, c, ldc);
  return 0;
}

template <typename T>
std::int32_t tpqrtKernel(const headrace_task* task) {
  TileParams params(task, 3, 5);
  const int m = params.size();
  const int n = params.size();
  const int nb = params.size();
  const int lda = params.leading(n);
  const int ldb = params.leading(m);
  if (!params.ok() || nb < 1 || nb > n) return HEADRACE_BAD_ARGUMENTS;
  T* a;
  T* b;
  T* t;
  if (!tileMatrix<T>(task, 0, n, n, lda, &a) || !tileMatrix<T>(task, 1, m, n, ldb, &b) ||
      !tileMatrix<T>(task, 2, nb, n, nb, &t)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  lapack<T>().tpqrt(m, n, nb, a, lda, b, ldb, t, nb);
  return 0;
}

template <typename T>
std::int32_t tpmqrtKernel(const headrace_task* task) {
  TileParams params(task, 4, 8);
  const char trans = params.flag('N', 'T');
  const int m = params.size();
  const int n = params.size();
  const int k = params.size();
  const int nb = params.size();
  const int ldv = params.leading(m);
  const int lda = params.leading(k);
  const int ldb = params.leading(m);
  if (!params.ok() || nb < 1 || nb > k) return HEADRACE_BAD_ARGUMENTS;
  const T* v;
  const T* t;
  T* a;
  T* b;
  if (!tileMatrix<T>(task, 0, m, k, ldv, &v) || !tileMatrix<T>(task, 1, nb, k, nb, &t) ||
      !tileMatrix<T>(task, 2, k, n, lda, &a) || !tileMatrix<T>(task, 3, m, n, ldb, &b)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  lapack<T>().tpmqrt(trans, m, n, k, nb, v, ldv, t, nb, a, lda, b, ldb);
  return 0;
}

}  // namespace

std::int32_t registerTileFactorKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"getrf_f64", getrfKernel<double>},
      {"getrf_f32", getrfKernel<float>},
      {"getrf_unpivoted_f64", getrfUnpivotedKernel<double>},
      {"getrf_unpivoted_f32", getrfUnpivotedKernel<float>},
      {"tstrf_f64", tstrfKernel<double>},
      {"tstrf_f32", tstrfKernel<float>},
      {"swap_rows_f64", swapRowsKernel<double>},
      {"swap_rows_f32", swapRowsKernel<float>},
      {"swap_pairs_f64", swapPairsKernel<double>},
      {"swap_pairs_f32", swapPairsKernel<float>},
      {"geqrt_f64", geqrtKernel<double>},
      {"geqrt_f32", geqrtKernel<float>},
      {"gemqrt_f64", gemqrtKernel<double>},
      {"gemqrt_f32", gemqrtKernel<float>},
      {"tpqrt_f64", tpqrtKernel<double>},
      {"tpqrt_f32", tpqrtKernel<float>},
      {"tpmqrt_f64", tpmqrtKernel<double>},
      {"tpmqrt_f32", tpmqrtKernel<float>},
  };
  for (const auto& each : kernels) {
    registry->add(registry, each.name, HEADRACE_KERNEL_HOST, each.kernel);
  }
  return 0;
}

}  // namespace headrace
