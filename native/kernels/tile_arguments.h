// The arguments of the tile kernels, read and checked once for host and GPUs (names, order and flags: kernels/tile.cpp).
//
// Invariant: `read` returns 0 only if every matrix lies inside the task's memory space and every number makes
// sense. So a library never gets arguments that it would refuse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernels.h"

namespace headrace {

/// Reads parameters in order and remembers whether all of them make sense.
class TileParams {
 public:
  TileParams(const headrace_task* task, int flows, int params)
      : task_(task), ok_(task->flow_count == flows && task->param_count == params) {}

  bool ok() const { return ok_; }
  int size() {
    const double value = next();
    ok_ = ok_ && value >= 0 && value <= 1e9;
    return ok_ ? static_cast<int>(value) : 0;
  }
  char flag(char zero, char one) {
    const double value = next();
    ok_ = ok_ && (value == 0 || value == 1);
    return value == 1 ? one : zero;
  }
  double scalar() { return next(); }
  /// Leading dimension of a matrix with `rows` rows.
  int leading(int rows) {
    const int value = size();
    ok_ = ok_ && value >= std::max(rows, 1);
    return value;
  }

 private:
  double next() { return ok_ ? task_->params[index_++] : 0; }
  const headrace_task* task_;
  int index_ = 0;
  bool ok_;
};

/// The flow as a matrix of `T`; false when it does not lie inside the memory space.
template <typename T, typename Pointer>
bool tileMatrix(const headrace_task* task, int flow, int rows, int columns, int leading,
                Pointer** matrix) {
  *matrix = static_cast<T*>(task->flows[flow]);
  if (rows == 0 || columns == 0) return true;
  const double elements = static_cast<double>(leading) * (columns - 1) + rows;
  return inSpace(task, task->flows[flow], elements * sizeof(T));
}

template <typename T>
struct GemmArguments {
  int m, n, k, lda, ldb, ldc;
  char transA, transB;
  T alpha, beta;
  const T* a;
  const T* b;
  T* c;

  std::int32_t read(const headrace_task* task) {
    TileParams params(task, 3, 10);
    m = params.size();
    n = params.size();
    k = params.size();
    transA = params.flag('N', 'T');
    transB = params.flag('N', 'T');
    alpha = static_cast<T>(params.scalar());
    beta = static_cast<T>(params.scalar());
    const int rowsA = transA == 'N' ? m : k;
    const int rowsB = transB == 'N' ? k : n;
    lda = params.leading(rowsA);
    ldb = params.leading(rowsB);
    ldc = params.leading(m);
    if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
    const bool fits = tileMatrix<T>(task, 0, rowsA, m + k - rowsA, lda, &a) &&
                      tileMatrix<T>(task, 1, rowsB, k + n - rowsB, ldb, &b) &&
                      tileMatrix<T>(task, 2, m, n, ldc, &c);
    return fits ? 0 : HEADRACE_OUT_OF_RANGE;
  }
};

template <typename T>
struct SyrkArguments {
  int n, k, lda, ldc;
  char uplo, trans;
  T alpha, beta;
  const T* a;
  T* c;

  std::int32_t read(const headrace_task* task) {
    TileParams params(task, 2, 8);
    n = params.size();
    k = params.size();
    uplo = params.flag('L', 'U');
    trans = params.flag('N', 'T');
    alpha = static_cast<T>(params.scalar());
    beta = static_cast<T>(params.scalar());
    const int rowsA = trans == 'N' ? n : k;
    lda = params.leading(rowsA);
    ldc = params.leading(n);
    if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
    const bool fits = tileMatrix<T>(task, 0, rowsA, n + k - rowsA, lda, &a) &&
                      tileMatrix<T>(task, 1, n, n, ldc, &c);
    return fits ? 0 : HEADRACE_OUT_OF_RANGE;
  }
};

template <typename T>
struct TrsmArguments {
  int m, n, lda, ldb;
  char side, uplo, trans, diag;
  T alpha;
  const T* a;
  T* b;

  std::int32_t read(const headrace_task* task) {
    TileParams params(task, 2, 9);
    m = params.size();
    n = params.size();
    side = params.flag('L', 'R');
    uplo = params.flag('L', 'U');
    trans = params.flag('N', 'T');
    diag = params.flag('N', 'U');
    alpha = static_cast<T>(params.scalar());
    const int order = side == 'L' ? m : n;
    lda = params.leading(order);
    ldb = params.leading(m);
    if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
    const bool fits =
        tileMatrix<T>(task, 0, order, order, lda, &a) && tileMatrix<T>(task, 1, m, n, ldb, &b);
    return fits ? 0 : HEADRACE_OUT_OF_RANGE;
  }
};

template <typename T>
struct PotrfArguments {
  int n, lda;
  char uplo;
  T* a;

  std::int32_t read(const headrace_task* task) {
    TileParams params(task, 1, 3);
    n = params.size();
    uplo = params.flag('L', 'U');
    lda = params.leading(n);
    if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
    return tileMatrix<T>(task, 0, n, n, lda, &a) ? 0 : HEADRACE_OUT_OF_RANGE;
  }
};

}  // namespace headrace
