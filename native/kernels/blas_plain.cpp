// BLAS without a library: straightforward blocked loops that the compiler vectorises. They must be right on every
// machine, and fast enough for tests; a real library is several times faster.
//
// `gemm` is the one routine with a fast inner loop; the others cut their matrices into blocks, do the small diagonal
// blocks element by element and hand the rest to `gemm`, as LAPACK's blocked algorithms do (Golub & Van Loan, 4.2).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/blas.h"
#include "kernels/vectorised.h"

namespace headrace {
namespace {

using Index = std::ptrdiff_t;

constexpr Index kBlock = 64;    // diagonal blocks of syrk, trsm and potrf
constexpr Index kDepth = 128;   // columns of A (rows of B) that gemm works on at a time
constexpr Index kHeight = 256;  // rows of C at a time: a panel of A stays in the second-level cache

inline bool transposed(char trans) { return trans != 'N'; }

/// c[0..m) += sum over 4 columns of a: the innermost loop of all routines.
#define HEADRACE_UPDATE4(T, NAME)                                                            \
  HEADRACE_VECTORISED void NAME(Index m, const T* __restrict a0, const T* __restrict a1,     \
                                const T* __restrict a2, const T* __restrict a3, const T* b,  \
                                T* __restrict c) {                                           \
    const T b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];                                      \
    for (Index i = 0; i < m; ++i) c[i] += a0[i] * b0 + a1[i] * b1 + a2[i] * b2 + a3[i] * b3; \
  }
// Function versions cannot be templates.
HEADRACE_UPDATE4(double, update4Double)
HEADRACE_UPDATE4(float, update4Float)
#undef HEADRACE_UPDATE4

inline void update4(Index m, const double* a, Index lda, const double* b, double* c) {
  update4Double(m, a, a + lda, a + 2 * lda, a + 3 * lda, b, c);
}
inline void update4(Index m, const float* a, Index lda, const float* b, float* c) {
  update4Float(m, a, a + lda, a + 2 * lda, a + 3 * lda, b, c);
}

template <typename T>
void scale(Index m, Index n, T beta, T* c, Index ldc) {
  if (beta == T{1}) return;
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) c[i + j * ldc] = beta == T{0} ? T{0} : beta * c[i + j * ldc];
  }
}

template <typename T>
void gemm(char transA, char transB, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
          int ldb, T beta, T* c, int ldc) {
  scale<T>(m, n, beta, c, ldc);
  if (alpha == T{0} || k == 0) return;
  std::vector<T> packed;  // A^T panels, transposed once so that inner loops run along columns
  T factors[4];
  for (Index l0 = 0; l0 < k; l0 += kDepth) {
    const Index depth = std::min<Index>(kDepth, k - l0);
    for (Index i0 = 0; i0 < m; i0 += kHeight) {
      const Index height = std::min<Index>(kHeight, m - i0);
      const T* panel = a + i0 + l0 * lda;
      Index stride = lda;
      if (transposed(transA)) {
        packed.resize(static_cast<std::size_t>(kHeight * kDepth));
        for (Index i = 0; i < height; ++i) {
          for (Index l = 0; l < depth; ++l) {
            packed[static_cast<std::size_t>(i + l * height)] = a[(l0 + l) + (i0 + i) * lda];
          }
        }
        panel = packed.data();
        stride = height;
      }
      for (Index j = 0; j < n; ++j) {
        T* column = c + i0 + j * ldc;
        const auto factor = [&](Index l) {
          return alpha * (transposed(transB) ? b[j + (l0 + l) * ldb] : b[(l0 + l) + j * ldb]);
        };
        Index l = 0;
        for (; l + 4 <= depth; l += 4) {
          for (Index s = 0; s < 4; ++s) factors[s] = factor(l + s);
          update4(height, panel + l * stride, stride, factors, column);
        }
        for (; l < depth; ++l) {
          const T f = factor(l);
          for (Index i = 0; i < height; ++i) column[i] += panel[i + l * stride] * f;
        }
      }
    }
  }
}

template <typename T>
void syrk(char uplo, char trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c,
          int ldc) {
  // Row i of op(A) starts at a + i (N) or at a + i * lda (T).
  const Index step = transposed(trans) ? lda : 1;
  const char transA = transposed(trans) ? 'T' : 'N';
  const char transB = transposed(trans) ? 'N' : 'T';
  std::vector<T> square(static_cast<std::size_t>(kBlock * kBlock));
  for (Index j = 0; j < n; j += kBlock) {
    const Index width = std::min<Index>(kBlock, n - j);
    // The diagonal block is computed whole; only its triangle may be written.
    gemm<T>(transA, transB, static_cast<int>(width), static_cast<int>(width), k, alpha,
            a + j * step, lda, a + j * step, lda, T{0}, square.data(), static_cast<int>(kBlock));
    for (Index q = 0; q < width; ++q) {
      const Index from = uplo == 'L' ? q : 0;
      const Index to = uplo == 'L' ? width : q + 1;
      for (Index p = from; p < to; ++p) {
        T& element = c[(j + p) + (j + q) * ldc];
        const T sum = square[static_cast<std::size_t>(p + q * kBlock)];
        element = beta == T{0} ? sum : beta * element + sum;
      }
    }
    const Index first = uplo == 'L' ? j + width : 0;
    const Index count = uplo == 'L' ? n - first : j;
    if (count > 0) {
      gemm<T>(transA, transB, static_cast<int>(count), static_cast<int>(width), k, alpha,
              a + first * step, lda, a + j * step, lda, beta, c + first + j * ldc, ldc);
    }
  }
}

/// op(A) X = B for a small triangle, element by element.
template <typename T>
void solveLeft(bool lower, bool trans, bool unit, Index m, Index n, const T* a, Index lda, T* b,
               Index ldb) {
  const bool forward = lower != trans;
  for (Index j = 0; j < n; ++j) {
    T* x = b + j * ldb;
    for (Index s = 0; s < m; ++s) {
      const Index i = forward ? s : m - 1 - s;
      T value = x[i];
      for (Index t = 0; t < s; ++t) {
        const Index l = forward ? t : m - 1 - t;
        value -= (trans ? a[l + i * lda] : a[i + l * lda]) * x[l];
      }
      x[i] = unit ? value : value / a[i + i * lda];
    }
  }
}

/// X op(A) = B for a small triangle, column by column.
template <typename T>
void solveRight(bool lower, bool trans, bool unit, Index m, Index n, const T* a, Index lda, T* b,
                Index ldb) {
  const bool forward = lower == trans;  // op(A) is upper: columns from the left
  for (Index s = 0; s < n; ++s) {
    const Index j = forward ? s : n - 1 - s;
    T* x = b + j * ldb;
    for (Index t = 0; t < s; ++t) {
      const Index l = forward ? t : n - 1 - t;
      const T factor = trans ? a[j + l * lda] : a[l + j * lda];
      const T* y = b + l * ldb;
      for (Index i = 0; i < m; ++i) x[i] -= factor * y[i];
    }
    if (!unit) {
      const T pivot = a[j + j * lda];
      for (Index i = 0; i < m; ++i) x[i] /= pivot;
    }
  }
}

template <typename T>
void trsm(char side, char uplo, char transFlag, char diag, int m, int n, T alpha, const T* a,
          int lda, T* b, int ldb) {
  scale<T>(m, n, alpha, b, ldb);
  if (alpha == T{0}) return;
  const bool lower = uplo == 'L';
  const bool trans = transposed(transFlag);
  const bool unit = diag == 'U';
  const bool left = side == 'L';
  const Index order = left ? m : n;
  const bool forward = left ? lower != trans : lower == trans;
  const Index blocks = (order + kBlock - 1) / kBlock;
  for (Index s = 0; s < blocks; ++s) {
    const Index p = (forward ? s : blocks - 1 - s) * kBlock;
    const Index width = std::min<Index>(kBlock, order - p);
    const T* triangle = a + p + p * lda;
    // The unsolved part: behind the block in the direction of the sweep.
    const Index rest = forward ? p + width : 0;
    const Index count = forward ? order - rest : p;
    if (left) {
      solveLeft<T>(lower, trans, unit, width, n, triangle, lda, b + p, ldb);
      if (count > 0) {
        const T* off = trans ? a + p + rest * lda : a + rest + p * lda;
        gemm<T>(transFlag, 'N', static_cast<int>(count), n, static_cast<int>(width), T{-1}, off,
                lda, b + p, ldb, T{1}, b + rest, ldb);
      }
    } else {
      solveRight<T>(lower, trans, unit, m, width, triangle, lda, b + p * ldb, ldb);
      if (count > 0) {
        const T* off = trans ? a + rest + p * lda : a + p + rest * lda;
        gemm<T>('N', transFlag, m, static_cast<int>(count), static_cast<int>(width), T{-1},
                b + p * ldb, ldb, off, lda, T{1}, b + rest * ldb, ldb);
      }
    }
  }
}

/// Cholesky of a small block, element by element; 0 or the failing pivot from 1.
template <typename T>
int choleskyBlock(bool lower, Index n, T* a, Index lda) {
  const auto at = [&](Index i, Index j) -> T& {  // element (i, j) of L, i >= j
    return lower ? a[i + j * lda] : a[j + i * lda];
  };
  for (Index j = 0; j < n; ++j) {
    T pivot = at(j, j);
    for (Index l = 0; l < j; ++l) pivot -= at(j, l) * at(j, l);
    if (!(pivot > T{0})) return static_cast<int>(j + 1);  // also for NaN
    pivot = std::sqrt(pivot);
    at(j, j) = pivot;
    for (Index i = j + 1; i < n; ++i) {
      T value = at(i, j);
      for (Index l = 0; l < j; ++l) value -= at(i, l) * at(j, l);
      at(i, j) = value / pivot;
    }
  }
  return 0;
}

template <typename T>
int potrf(char uplo, int n, T* a, int lda) {
  const bool lower = uplo == 'L';
  for (Index p = 0; p < n; p += kBlock) {
    const Index width = std::min<Index>(kBlock, n - p);
    T* diagonal = a + p + p * static_cast<Index>(lda);
    const int failed = choleskyBlock<T>(lower, width, diagonal, lda);
    if (failed != 0) return static_cast<int>(p) + failed;
    const int rest = static_cast<int>(n - p - width);
    if (rest == 0) break;
    const int k = static_cast<int>(width);
    if (lower) {
      trsm<T>('R', 'L', 'T', 'N', rest, k, T{1}, diagonal, lda, diagonal + width, lda);
      syrk<T>('L', 'N', rest, k, T{-1}, diagonal + width, lda, T{1}, diagonal + width + width * lda,
              lda);
    } else {
      trsm<T>('L', 'U', 'T', 'N', k, rest, T{1}, diagonal, lda, diagonal + width * lda, lda);
      syrk<T>('U', 'T', rest, k, T{-1}, diagonal + width * lda, lda, T{1},
              diagonal + width + width * lda, lda);
    }
  }
  return 0;
}

template <typename T>
constexpr BlasTable<T> table = {gemm<T>, syrk<T>, trsm<T>, potrf<T>};

}  // namespace

template <>
const BlasTable<double>& plainBlas<double>() {
  return table<double>;
}
template <>
const BlasTable<float>& plainBlas<float>() {
  return table<float>;
}

}  // namespace headrace
