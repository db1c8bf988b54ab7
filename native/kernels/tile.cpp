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
#include <string>

#include "kernels/blas.h"
#include "kernels/kernels.h"
#include "kernels/tile_arguments.h"

namespace headrace {
namespace {

template <typename T>
std::int32_t gemmKernel(const headrace_task* task) {
  GemmArguments<T> g;
  const std::int32_t code = g.read(task);
  if (code != 0) return code;
  blas<T>().gemm(g.transA, g.transB, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c,
                 g.ldc);
  return 0;
}

template <typename T>
std::int32_t syrkKernel(const headrace_task* task) {
  SyrkArguments<T> s;
  const std::int32_t code = s.read(task);
  if (code != 0) return code;
  blas<T>().syrk(s.uplo, s.trans, s.n, s.k, s.alpha, s.a, s.lda, s.beta, s.c, s.ldc);
  return 0;
}

template <typename T>
std::int32_t trsmKernel(const headrace_task* task) {
  TrsmArguments<T> t;
  const std::int32_t code = t.read(task);
  if (code != 0) return code;
  blas<T>().trsm(t.side, t.uplo, t.trans, t.diag, t.m, t.n, t.alpha, t.a, t.lda, t.b, t.ldb);
  return 0;
}

template <typename T>
std::int32_t potrfKernel(const headrace_task* task) {
  PotrfArguments<T> p;
  const std::int32_t code = p.read(task);
  if (code != 0) return code;
  const int info = blas<T>().potrf(p.uplo, p.n, p.a, p.lda);
  return info < 0 ? HEADRACE_BAD_ARGUMENTS : info;
}

}  // namespace

std::int32_t registerTileKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"gemm_f64", gemmKernel<double>},   {"gemm_f32", gemmKernel<float>},
      {"syrk_f64", syrkKernel<double>},   {"syrk_f32", syrkKernel<float>},
      {"trsm_f64", trsmKernel<double>},   {"trsm_f32", trsmKernel<float>},
      {"potrf_f64", potrfKernel<double>}, {"potrf_f32", potrfKernel<float>},
  };
  for (const auto& each : kernels) {
    registry->add(registry, each.name, HEADRACE_KERNEL_HOST, each.kernel);
  }
  return 0;
}

bool isTileKernel(const char* name) {
  const std::string text(name);
  const auto underscore = text.rfind('_');
  if (underscore == std::string::npos) return false;
  const std::string type = text.substr(underscore);
  if (type != "_f64" && type != "_f32") return false;
  const std::string operation = text.substr(0, underscore);
  for (const char* each : {"gemm", "syrk", "trsm", "potrf", "getrf", "getrf_unpivoted", "tstrf",
                           "geqrt", "gemqrt", "tpqrt", "tpmqrt"}) {
    if (operation == each) return true;
  }
  return false;
}

}  // namespace headrace
