// The LAPACK routines of the kernels of LU and QR factorisations, from the library that `blas.h` has found or from
// built-in code with the same results (up to rounding).
//
// Invariant: as for `BlasTable`. Factors have LAPACK's formats, so either side can use those of the other: pivots count
// from 1, reflectors have unit diagonals that are not stored, T has a block reflector's triangle per `nb` columns.
#pragma once

namespace headrace {

/// `trans` is 'N' for Q and 'T' for Q^T; matrices are multiplied from the left.
template <typename T>
struct LapackTable {
  /// P A = L U with partial pivoting; returns 0, or the first pivot (from 1) that is exactly 0, after all of the work.
  int (*getrf)(int m, int n, T* a, int lda, int* pivots);
  /// A = Q R; V below the diagonal of A, T is nb x min(m, n).
  void (*geqrt)(int m, int n, int nb, T* a, int lda, T* t, int ldt);
  /// C := op(Q) C with k reflectors of geqrt; C is m x n.
  void (*gemqrt)(char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt,
                 T* c, int ldc);
  /// [R; B] = Q [R'; 0] for an upper triangle R in A, n x n, and B, m x n, which gets V. T is nb x n.
  void (*tpqrt)(int m, int n, int nb, T* a, int lda, T* b, int ldb, T* t, int ldt);
  /// [A; B] := op(Q) [A; B] with k reflectors of tpqrt; A is k x n, B m x n.
  void (*tpmqrt)(char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt,
                 T* a, int lda, T* b, int ldb);
};

/// The routines in use.
template <typename T>
const LapackTable<T>& lapack();
/// The built-in code (kernels/lapack_plain.cpp).
template <typename T>
const LapackTable<T>& plainLapack();

}  // namespace headrace
