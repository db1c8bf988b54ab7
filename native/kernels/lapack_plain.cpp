// LU and QR without a library: loops over columns, right on every machine and fast enough for tests.
//
// LU is the row-wise elimination of Golub & Van Loan, "Matrix Computations", 3.4.1. Reflectors are those of LAPACK's
// LARFG, and blocks of them have the form I - V T V^T of R. Schreiber, C. Van Loan, "A storage-efficient WY representation
// for products of Householder transformations", SIAM J. Sci. Stat. Comput. 10 (1989).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/lapack.h"

namespace headrace {
namespace {

using Index = std::ptrdiff_t;

/// The square root of a^2 + b^2 without overflow, as LAPACK's LAPY2. The hypot of glibc 2.35 is newer than the addon promises.
template <typename T>
T pythagoras(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  const T larger = std::max(std::abs(a), std::abs(b));
  const T smaller = std::min(std::abs(a), std::abs(b));
  if (smaller == T{0} || std::isinf(larger)) return larger;
  const T share = smaller / larger;
  return larger * std::sqrt(T{1} + share * share);
}

template <typename T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  const Index stride = lda;
  int zero = 0;
  for (Index j = 0; j < std::min(m, n); ++j) {
    Index pivot = j;
    for (Index i = j + 1; i < m; ++i) {
      if (std::abs(a[i + j * stride]) > std::abs(a[pivot + j * stride])) pivot = i;
    }
    pivots[j] = static_cast<int>(pivot + 1);
    if (a[pivot + j * stride] == T{0}) {
      if (zero == 0) zero = static_cast<int>(j + 1);
      continue;
    }
    if (pivot != j) {
      for (Index c = 0; c < n; ++c) std::swap(a[j + c * stride], a[pivot + c * stride]);
    }
    for (Index i = j + 1; i < m; ++i) a[i + j * stride] /= a[j + j * stride];
    for (Index c = j + 1; c < n; ++c) {
      const T factor = a[j + c * stride];
      for (Index i = j + 1; i < m; ++i) a[i + c * stride] -= a[i + j * stride] * factor;
    }
  }
  return zero;
}

/// The reflector I - tau (1, v) (1, v)^T that maps (alpha, x) to (beta, 0); x becomes v and alpha beta. Returns tau.
template <typename T>
T reflector(Index length, T& alpha, T* x) {
  T norm = T{0};
  for (Index i = 0; i < length; ++i) norm = pythagoras(norm, x[i]);
  if (norm == T{0}) return T{0};
  const T beta = -std::copysign(pythagoras(alpha, norm), alpha);
  const T tau = (beta - alpha) / beta;
  const T scale = alpha - beta;
  for (Index i = 0; i < length; ++i) x[i] /= scale;
  alpha = beta;
  return tau;
}

/// Reflectors of a block of columns. Reflector j is 1 in row j of the upper rows, and has `length(j)` more elements.
template <typename T>
struct Block {
  const T* v;  // reflector j's other elements begin at v + j * stride
  Index stride, width;
  // Of geqrt the elements follow the 1, row by row below; of tpqrt they are rows of the lower matrix.
  bool trapezoid;
  Index rows;  // elements of the first reflector behind its 1

  /// Element of reflector j in row r of its column of elements, where row 0 is the one behind the first 1.
  T at(Index r, Index j) const {
    if (!trapezoid) return v[r + j * stride];
    // Row r is row r + 1 of the block, where reflector r + 1 has its 1.
    if (r + 1 < j) return T{0};
    return r + 1 == j ? T{1} : v[r + j * stride];
  }
};

/// T's triangle for a block: H_1 ... H_k = I - V T V^T; the diagonal holds tau.
template <typename T>
void triangle(const Block<T>& block, T* t, Index ldt) {
  for (Index j = 1; j < block.width; ++j) {
    const T tau = t[j + j * ldt];
    for (Index i = 0; i < j; ++i) {
      T sum = T{0};
      for (Index r = 0; r < block.rows; ++r) sum += block.at(r, i) * block.at(r, j);
      t[i + j * ldt] = -tau * sum;
    }
    for (Index i = 0; i < j; ++i) {
      T sum = T{0};
      for (Index l = i; l < j; ++l) sum += t[i + l * ldt] * t[l + j * ldt];
      t[i + j * ldt] = sum;
    }
  }
}

/// One column (top, bottom) -= V op(T) V^T (top, bottom). `top` has the rows of the ones: of a trapezoid the first only.
template <typename T>
void apply(const Block<T>& block, bool trans, const T* t, Index ldt, T* top, T* bottom) {
  std::vector<T> w(static_cast<std::size_t>(block.width));
  std::vector<T> z(static_cast<std::size_t>(block.width));
  const auto one = [&](Index j) { return !block.trapezoid || j == 0; };
  for (Index j = 0; j < block.width; ++j) {
    T sum = one(j) ? top[j] : T{0};
    for (Index r = 0; r < block.rows; ++r) sum += block.at(r, j) * bottom[r];
    w[static_cast<std::size_t>(j)] = sum;
  }
  for (Index i = 0; i < block.width; ++i) {
    T sum = T{0};
    const Index from = trans ? 0 : i;
    const Index to = trans ? i + 1 : block.width;
    for (Index l = from; l < to; ++l) {
      sum += (trans ? t[l + i * ldt] : t[i + l * ldt]) * w[static_cast<std::size_t>(l)];
    }
    z[static_cast<std::size_t>(i)] = sum;
  }
  for (Index j = 0; j < block.width; ++j) {
    const T factor = z[static_cast<std::size_t>(j)];
    if (one(j)) top[j] -= factor;
    for (Index r = 0; r < block.rows; ++r) bottom[r] -= block.at(r, j) * factor;
  }
}

/// The block of geqrt whose first column is `j`, of a matrix with m rows.
template <typename T>
Block<T> trapezoid(const T* v, Index ldv, Index m, Index j, Index width) {
  return {v + j + 1 + j * ldv, ldv, width, true, m - j - 1};
}

template <typename T>
void geqrt(int m, int n, int nb, T* a, int lda, T* t, int ldt) {
  const Index stride = lda;
  const Index k = std::min(m, n);
  for (Index first = 0; first < k; first += nb) {
    const Index width = std::min<Index>(nb, k - first);
    T* triangleOf = t + first * ldt;
    for (Index j = 0; j < width; ++j) {
      const Index c = first + j;
      T* column = a + c * stride;
      const T tau = reflector<T>(m - c - 1, column[c], column + c + 1);
      triangleOf[j + j * static_cast<Index>(ldt)] = tau;
      const Block<T> single = trapezoid<T>(a, stride, m, c, 1);
      for (Index o = c + 1; o < first + width; ++o) {
        apply<T>(single, true, &tau, 1, a + c + o * stride, a + c + 1 + o * stride);
      }
    }
    const Block<T> block = trapezoid<T>(a, stride, m, first, width);
    triangle<T>(block, triangleOf, ldt);
    for (Index o = first + width; o < n; ++o) {
      apply<T>(block, true, triangleOf, ldt, a + first + o * stride, a + first + 1 + o * stride);
    }
  }
}

/// Calls with the first column and the width of each block, from the first for Q^T and from the last for Q.
template <typename Visit>
void blocks(char trans, Index k, Index nb, Visit visit) {
  const Index count = (k + nb - 1) / nb;
  for (Index s = 0; s < count; ++s) {
    const Index first = (trans == 'T' ? s : count - 1 - s) * nb;
    visit(first, std::min(nb, k - first));
  }
}

template <typename T>
void gemqrt(char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt, T* c,
            int ldc) {
  blocks(trans, k, nb, [&](Index first, Index width) {
    const Block<T> block = trapezoid<T>(v, ldv, m, first, width);
    for (Index o = 0; o < n; ++o) {
      T* column = c + first + o * ldc;
      apply<T>(block, trans == 'T', t + first * ldt, ldt, column, column + 1);
    }
  });
}

template <typename T>
void tpqrt(int m, int n, int nb, T* a, int lda, T* b, int ldb, T* t, int ldt) {
  const Index up = lda;
  const Index low = ldb;
  for (Index first = 0; first < n; first += nb) {
    const Index width = std::min<Index>(nb, n - first);
    T* triangleOf = t + first * ldt;
    for (Index j = 0; j < width; ++j) {
      const Index c = first + j;
      const T tau = reflector<T>(m, a[c + c * up], b + c * low);
      triangleOf[j + j * static_cast<Index>(ldt)] = tau;
      const Block<T> single{b + c * low, low, 1, false, m};
      for (Index o = c + 1; o < first + width; ++o) {
        apply<T>(single, true, &tau, 1, a + c + o * up, b + o * low);
      }
    }
    const Block<T> block{b + first * low, low, width, false, m};
    triangle<T>(block, triangleOf, ldt);
    for (Index o = first + width; o < n; ++o) {
      apply<T>(block, true, triangleOf, ldt, a + first + o * up, b + o * low);
    }
  }
}

template <typename T>
void tpmqrt(char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt, T* a,
            int lda, T* b, int ldb) {
  blocks(trans, k, nb, [&](Index first, Index width) {
    const Block<T> block{v + first * ldv, ldv, width, false, m};
    for (Index o = 0; o < n; ++o) {
      apply<T>(block, trans == 'T', t + first * ldt, ldt, a + first + o * lda, b + o * ldb);
    }
  });
}

template <typename T>
constexpr LapackTable<T> table = {getrf<T>, geqrt<T>, gemqrt<T>, tpqrt<T>, tpmqrt<T>};

}  // namespace

template <>
const LapackTable<double>& plainLapack<double>() {
  return table<double>;
}
template <>
const LapackTable<float>& plainLapack<float>() {
  return table<float>;
}

}  // namespace headrace
