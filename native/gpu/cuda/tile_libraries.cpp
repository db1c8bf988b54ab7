// Loading of cuBLAS and cuSOLVER: see gpu/cuda/tile_libraries.h.
#include "gpu/cuda/tile_libraries.h"

#include <cstdlib>
#include <string>

#include "core/shared_library.h"

namespace headrace {

namespace {

template <typename T>
bool resolveBlas(SharedLibrary& from, char type, Functions<T>& to) {
  const std::string head = std::string("cublas") + type;
  return from.get((head + "gemm_v2").c_str(), to.gemm) &&
         from.get((head + "syrk_v2").c_str(), to.syrk) &&
         from.get((head + "trsm_v2").c_str(), to.trsm);
}

template <typename T>
bool resolveSolver(SharedLibrary& from, char type, Functions<T>& to) {
  const std::string head = std::string("cusolverDn") + type;
  return from.get((head + "potrf_bufferSize").c_str(), to.potrfBytes) &&
         from.get((head + "potrf").c_str(), to.potrf);
}

Libraries load() {
  Libraries all{};
  // cuSOLVER needs cuBLAS of its own version: the first pair that is found together is used.
  SharedLibrary blas(std::getenv("HEADRACE_CUBLAS_LIBRARY"),
                     {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13",
                      "/usr/local/cuda/lib64/libcublas.so.12"});
  if (!blas.found() || !blas.get("cublasCreate_v2", all.blasCreate) ||
      !blas.get("cublasDestroy_v2", all.blasDestroy) ||
      !blas.get("cublasSetStream_v2", all.blasSetStream) ||
      !blas.get("cublasSetWorkspace_v2", all.blasSetWorkspace) ||
      !resolveBlas(blas, 'D', all.f64) || !resolveBlas(blas, 'S', all.f32)) {
    all.report.reason = blas.reason();
    return all;
  }
  all.report.blas = blas.name();
  SharedLibrary solver(
      std::getenv("HEADRACE_CUSOLVER_LIBRARY"),
      {"libcusolver.so.12", "libcusolver.so.11", "/usr/local/cuda/lib64/libcusolver.so.12",
       "/usr/local/cuda/lib64/libcusolver.so.11"});
  if (!solver.found() || !solver.get("cusolverDnCreate", all.solverCreate) ||
      !solver.get("cusolverDnDestroy", all.solverDestroy) ||
      !solver.get("cusolverDnSetStream", all.solverSetStream) ||
      !resolveSolver(solver, 'D', all.f64) || !resolveSolver(solver, 'S', all.f32)) {
    all.report.reason = solver.reason();
    return all;
  }
  all.report.solver = solver.name();
  all.report.found = true;
  return all;
}

}  // namespace

const Libraries& tileLibraries() {
  static const Libraries* all = new Libraries(load());
  return *all;
}

}  // namespace headrace
