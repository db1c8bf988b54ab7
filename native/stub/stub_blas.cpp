// The part of cuBLAS and cuSOLVER that Headrace uses: column-major tiles on the stub's memory, carried out when the
// stream gets there. Checks that a handle has its stream first and its workspace after that.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/blas.h"

using headrace::plainBlas;

extern "C" int stubEnqueue(void* stream, void (*run)(void*), void* data, void (*release)(void*));
extern "C" void stubViolation(const char* text);

#define BLAS_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

struct Handle {
  void* stream = nullptr;
  bool workspace = false;
  bool solver = false;
};

/// Carries out a function object when the stream gets there. 0, or CUBLAS_STATUS_EXECUTION_FAILED.
template <typename Function>
int later(void* handle, const char* call, Function function) {
  auto* of = static_cast<Handle*>(handle);
  if (of->stream == nullptr)
    stubViolation((std::string(call) + ": the handle has no stream").c_str());
  if (!of->workspace && !of->solver) {
    stubViolation((std::string(call) + ": the handle would allocate its workspace").c_str());
  }
  auto* kept = new Function(function);
  const int code = stubEnqueue(
      of->stream, [](void* data) { (*static_cast<Function*>(data))(); }, kept,
      [](void* data) { delete static_cast<Function*>(data); });
  return code == 0 ? 0 : 13;
}

char trans(int operation) { return operation == 0 ? 'N' : 'T'; }
char uplo(int fill) { return fill == 0 ? 'L' : 'U'; }

template <typename T>
int gemm(void* handle, int ta, int tb, int m, int n, int k, const T* alpha, const T* a, int lda,
         const T* b, int ldb, const T* beta, T* c, int ldc) {
  return later(handle, "gemm", [=, alpha = *alpha, beta = *beta] {
    plainBlas<T>().gemm(trans(ta), trans(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  });
}

template <typename T>
int syrk(void* handle, int fill, int t, int n, int k, const T* alpha, const T* a, int lda,
         const T* beta, T* c, int ldc) {
  return later(handle, "syrk", [=, alpha = *alpha, beta = *beta] {
    plainBlas<T>().syrk(uplo(fill), trans(t), n, k, alpha, a, lda, beta, c, ldc);
  });
}

template <typename T>
int trsm(void* handle, int side, int fill, int t, int diag, int m, int n, const T* alpha,
         const T* a, int lda, T* b, int ldb) {
  return later(handle, "trsm", [=, alpha = *alpha] {
    plainBlas<T>().trsm(side == 0 ? 'L' : 'R', uplo(fill), trans(t), diag == 0 ? 'N' : 'U', m, n,
                        alpha, a, lda, b, ldb);
  });
}

template <typename T>
int potrf(void* handle, int fill, int n, T* a, int lda, T* work, int elements, int* info) {
  return later(handle, "potrf", [=] {
    std::fill(work, work + elements, T(0));  // a workspace that is too small must be noticed
    *info = plainBlas<T>().potrf(uplo(fill), n, a, lda);
  });
}

}  // namespace

BLAS_EXPORT cublasCreate_v2(void** handle) {
  *handle = new Handle;
  return 0;
}
BLAS_EXPORT cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
BLAS_EXPORT cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  static_cast<Handle*>(handle)->workspace = false;
  return 0;
}
BLAS_EXPORT cublasSetWorkspace_v2(void* handle, void* memory, std::size_t bytes) {
  static_cast<Handle*>(handle)->workspace = memory != nullptr && bytes > 0;
  return 0;
}
BLAS_EXPORT cusolverDnCreate(void** handle) {
  *handle = new Handle;
  static_cast<Handle*>(*handle)->solver = true;
  return 0;
}
BLAS_EXPORT cusolverDnDestroy(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
BLAS_EXPORT cusolverDnSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}

BLAS_EXPORT cublasDgemm_v2(void* h, int ta, int tb, int m, int n, int k, const double* alpha,
                           const double* a, int lda, const double* b, int ldb, const double* beta,
                           double* c, int ldc) {
  return gemm(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
BLAS_EXPORT cublasSgemm_v2(void* h, int ta, int tb, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc) {
  return gemm(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
BLAS_EXPORT cublasDsyrk_v2(void* h, int fill, int t, int n, int k, const double* alpha,
                           const double* a, int lda, const double* beta, double* c, int ldc) {
  return syrk(h, fill, t, n, k, alpha, a, lda, beta, c, ldc);
}
BLAS_EXPORT cublasSsyrk_v2(void* h, int fill, int t, int n, int k, const float* alpha,
                           const float* a, int lda, const float* beta, float* c, int ldc) {
  return syrk(h, fill, t, n, k, alpha, a, lda, beta, c, ldc);
}
BLAS_EXPORT cublasDtrsm_v2(void* h, int side, int fill, int t, int diag, int m, int n,
                           const double* alpha, const double* a, int lda, double* b, int ldb) {
  return trsm(h, side, fill, t, diag, m, n, alpha, a, lda, b, ldb);
}
BLAS_EXPORT cublasStrsm_v2(void* h, int side, int fill, int t, int diag, int m, int n,
                           const float* alpha, const float* a, int lda, float* b, int ldb) {
  return trsm(h, side, fill, t, diag, m, n, alpha, a, lda, b, ldb);
}
BLAS_EXPORT cusolverDnDpotrf_bufferSize(void*, int, int n, double*, int, int* elements) {
  *elements = n;
  return 0;
}
BLAS_EXPORT cusolverDnSpotrf_bufferSize(void*, int, int n, float*, int, int* elements) {
  *elements = n;
  return 0;
}
BLAS_EXPORT cusolverDnDpotrf(void* h, int fill, int n, double* a, int lda, double* work,
                             int elements, int* info) {
  return potrf(h, fill, n, a, lda, work, elements, info);
}
BLAS_EXPORT cusolverDnSpotrf(void* h, int fill, int n, float* a, int lda, float* work, int elements,
                             int* info) {
  return potrf(h, fill, n, a, lda, work, elements, info);
}
