// The BLAS and LAPACK routines of the tile kernels: from a library found at run time, or from built-in code, which
// gives the same results (up to rounding) without any library.
//
// Invariant: after the first call the table never changes; all routines are column-major, take Fortran's flags as
// characters, and several threads may call them at once (a library is set to one thread per call).
#pragma once

#include <string>

namespace headrace {

struct BlasReport {
  bool found;           // false: the built-in code is used
  std::string library;  // the loaded one
  std::string reason;   // why none was loaded, or ''
};

/// The routines for one element type. `potrf` returns 0 or the pivot (from 1) that is not positive.
template <typename T>
struct BlasTable {
  void (*gemm)(char transA, char transB, int m, int n, int k, T alpha, const T* a, int lda,
               const T* b, int ldb, T beta, T* c, int ldc);
  void (*syrk)(char uplo, char trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c,
               int ldc);
  void (*trsm)(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* a,
               int lda, T* b, int ldb);
  int (*potrf)(char uplo, int n, T* a, int lda);
};

/// Finds a library on the first call (HEADRACE_BLAS = auto | plain | path of a library).
BlasReport blasReport();
/// The routines in use.
template <typename T>
const BlasTable<T>& blas();
/// The built-in code (kernels/blas_plain.cpp).
template <typename T>
const BlasTable<T>& plainBlas();

}  // namespace headrace
