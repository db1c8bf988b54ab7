// Tile kernels in double (`_f64`) and single (`_f32`) precision. Tiles are column-major; a leading dimension is the
// distance between columns in elements. Parameters are sizes, then flags, then scalars, then leading dimensions.
//
//   gemm   flows A, B, C   params m, n, k, transA, transB, alpha, beta, lda, ldb, ldc
//          C = alpha op(A) op(B) + beta C, op(A) m x k, op(B) k x n
//   syrk   flows A, C      params n, k, uplo, trans, alpha, beta, lda, ldc
//          one triangle of C = alpha op(A) op(A)^T + beta C, op(A) n x k
//   trsm   flows A, B      params m, n, side, uplo, transA, diag, alpha, lda, ldb
//          B = alpha op(A)^-1 B (side 0) or alpha B op(A)^-1 (side 1), B m x n, A triangular
//   potrf  flow A          params n, uplo, lda
//          A = L L^T (uplo 0) or U^T U (uplo 1); returns the pivot, from 1, that is not positive
//
// Flags: trans 0 as is, 1 transposed; uplo 0 lower, 1 upper; side 0 left, 1 right; diag 0 as stored, 1 unit.
#include <algorithm>

#include "blas.h"
#include "kernels.h"

namespace headrace {
namespace {

/// Reads parameters in order and remembers whether all of them make sense.
class Params {
 public:
  Params(const headrace_task* task, int flows, int params)
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

/// True when a matrix of the flow lies inside the memory space.
template <typename T>
bool fits(const headrace_task* task, int flow, int rows, int columns, int leading) {
  if (rows == 0 || columns == 0) return true;
  const double elements = static_cast<double>(leading) * (columns - 1) + rows;
  return inSpace(task, task->flows[flow], elements * sizeof(T));
}

template <typename T>
std::int32_t gemmKernel(const headrace_task* task) {
  Params params(task, 3, 10);
  const int m = params.size();
  const int n = params.size();
  const int k = params.size();
  const char transA = params.flag('N', 'T');
  const char transB = params.flag('N', 'T');
  const auto alpha = static_cast<T>(params.scalar());
  const auto beta = static_cast<T>(params.scalar());
  const int rowsA = transA == 'N' ? m : k;
  const int rowsB = transB == 'N' ? k : n;
  const int lda = params.leading(rowsA);
  const int ldb = params.leading(rowsB);
  const int ldc = params.leading(m);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  if (!fits<T>(task, 0, rowsA, m + k - rowsA, lda) || !fits<T>(task, 1, rowsB, k + n - rowsB, ldb) ||
      !fits<T>(task, 2, m, n, ldc)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  blas<T>().gemm(transA, transB, m, n, k, alpha, static_cast<const T*>(task->flows[0]), lda,
                 static_cast<const T*>(task->flows[1]), ldb, beta,
                 static_cast<T*>(task->flows[2]), ldc);
  return 0;
}

template <typename T>
std::int32_t syrkKernel(const headrace_task* task) {
  Params params(task, 2, 8);
  const int n = params.size();
  const int k = params.size();
  const char uplo = params.flag('L', 'U');
  const char trans = params.flag('N', 'T');
  const auto alpha = static_cast<T>(params.scalar());
  const auto beta = static_cast<T>(params.scalar());
  const int rowsA = trans == 'N' ? n : k;
  const int lda = params.leading(rowsA);
  const int ldc = params.leading(n);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  if (!fits<T>(task, 0, rowsA, n + k - rowsA, lda) || !fits<T>(task, 1, n, n, ldc)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  blas<T>().syrk(uplo, trans, n, k, alpha, static_cast<const T*>(task->flows[0]), lda, beta,
                 static_cast<T*>(task->flows[1]), ldc);
  return 0;
}

template <typename T>
std::int32_t trsmKernel(const headrace_task* task) {
  Params params(task, 2, 9);
  const int m = params.size();
  const int n = params.size();
  const char side = params.flag('L', 'R');
  const char uplo = params.flag('L', 'U');
  const char trans = params.flag('N', 'T');
  const char diag = params.flag('N', 'U');
  const auto alpha = static_cast<T>(params.scalar());
  const int order = side == 'L' ? m : n;
  const int lda = params.leading(order);
  const int ldb = params.leading(m);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  if (!fits<T>(task, 0, order, order, lda) || !fits<T>(task, 1, m, n, ldb)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  blas<T>().trsm(side, uplo, trans, diag, m, n, alpha, static_cast<const T*>(task->flows[0]), lda,
                 static_cast<T*>(task->flows[1]), ldb);
  return 0;
}

template <typename T>
std::int32_t potrfKernel(const headrace_task* task) {
  Params params(task, 1, 3);
  const int n = params.size();
  const char uplo = params.flag('L', 'U');
  const int lda = params.leading(n);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  if (!fits<T>(task, 0, n, n, lda)) return HEADRACE_OUT_OF_RANGE;
  const int info = blas<T>().potrf(uplo, n, static_cast<T*>(task->flows[0]), lda);
  return info < 0 ? HEADRACE_BAD_ARGUMENTS : info;
}

}  // namespace

std::int32_t registerTileKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"gemm_f64", gemmKernel<double>}, {"gemm_f32", gemmKernel<float>},
      {"syrk_f64", syrkKernel<double>}, {"syrk_f32", syrkKernel<float>},
      {"trsm_f64", trsmKernel<double>}, {"trsm_f32", trsmKernel<float>},
      {"potrf_f64", potrfKernel<double>}, {"potrf_f32", potrfKernel<float>},
  };
  for (const auto& each : kernels) {
    registry->add(registry, each.name, HEADRACE_KERNEL_HOST, each.kernel);
  }
  return 0;
}

bool isTileKernel(const char* name) {
  const std::string text(name);
  return text.size() > 4 &&
         (text.compare(text.size() - 4, 4, "_f64") == 0 ||
          text.compare(text.size() - 4, 4, "_f32") == 0) &&
         (text.rfind("gemm_", 0) == 0 || text.rfind("syrk_", 0) == 0 ||
          text.rfind("trsm_", 0) == 0 || text.rfind("potrf_", 0) == 0);
}

}  // namespace headrace
