// Finding BLAS at run time: OpenBLAS, or a BLAS and a LAPACK library, or the built-in code.
//
// The Fortran interface is used because every library has it. Fortran appends the length of each character argument.
// Libraries without a use for the lengths ignore them.
#include "kernels/blas.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "kernels/lapack_library.h"

namespace headrace {
namespace {

using Length = std::size_t;

template <typename T>
struct Fortran {
  using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*,
                        const T*, const int*, const T*, const int*, const T*, T*, const int*,
                        Length, Length);
  using Syrk = void (*)(const char*, const char*, const int*, const int*, const T*, const T*,
                        const int*, const T*, T*, const int*, Length, Length);
  using Trsm = void (*)(const char*, const char*, const char*, const char*, const int*, const int*,
                        const T*, const T*, const int*, T*, const int*, Length, Length, Length,
                        Length);
  using Potrf = void (*)(const char*, const int*, T*, const int*, int*, Length);
  static Gemm gemm;
  static Syrk syrk;
  static Trsm trsm;
  static Potrf potrf;
};
template <typename T>
typename Fortran<T>::Gemm Fortran<T>::gemm = nullptr;
template <typename T>
typename Fortran<T>::Syrk Fortran<T>::syrk = nullptr;
template <typename T>
typename Fortran<T>::Trsm Fortran<T>::trsm = nullptr;
template <typename T>
typename Fortran<T>::Potrf Fortran<T>::potrf = nullptr;

template <typename T>
const BlasTable<T>& libraryBlas() {
  static constexpr BlasTable<T> table = {
      [](char transA, char transB, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
         int ldb, T beta, T* c, int ldc) {
        Fortran<T>::gemm(&transA, &transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1,
                         1);
      },
      [](char uplo, char trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c, int ldc) {
        Fortran<T>::syrk(&uplo, &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
      },
      [](char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* a, int lda,
         T* b, int ldb) {
        Fortran<T>::trsm(&side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1);
      },
      [](char uplo, int n, T* a, int lda) {
        int info = 0;
        Fortran<T>::potrf(&uplo, &n, a, &lda, &info, 1);
        return info;
      },
  };
  return table;
}

template <typename F>
bool find(const std::vector<void*>& libraries, const char* name, F& function, std::string& reason) {
  for (void* library : libraries) {
    if (void* symbol = dlsym(library, name)) {
      function = reinterpret_cast<F>(symbol);
      return true;
    }
  }
  reason = std::string("no symbol ") + name;
  return false;
}

bool resolve(const std::vector<void*>& libraries, std::string& reason) {
  const auto symbolOf = [&](const char* name) {
    void* symbol = nullptr;
    std::string ignored;
    find(libraries, name, symbol, ignored);
    return symbol;
  };
  return find(libraries, "dgemm_", Fortran<double>::gemm, reason) &&
         find(libraries, "dsyrk_", Fortran<double>::syrk, reason) &&
         find(libraries, "dtrsm_", Fortran<double>::trsm, reason) &&
         find(libraries, "dpotrf_", Fortran<double>::potrf, reason) &&
         find(libraries, "sgemm_", Fortran<float>::gemm, reason) &&
         find(libraries, "ssyrk_", Fortran<float>::syrk, reason) &&
         find(libraries, "strsm_", Fortran<float>::trsm, reason) &&
         find(libraries, "spotrf_", Fortran<float>::potrf, reason) &&
         resolveLapack(symbolOf, reason);
}

/// Opens all the given libraries and finds every routine in them. Libraries stay open.
bool load(const std::vector<std::string>& names, BlasReport& report) {
  std::vector<void*> libraries;
  std::string list;
  std::string reason;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : " + ") + name;
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* text = dlerror();
      report.reason += (report.reason.empty() ? "" : "; ") + std::string(text ? text : name);
      return false;
    }
    libraries.push_back(library);
  }
  if (!resolve(libraries, reason)) {
    report.reason += (report.reason.empty() ? "" : "; ") + list + ": " + reason;
    return false;
  }
  // The workers are the threads; the library must not add more.
  for (const char* setter :
       {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"}) {
    if (void* symbol = dlsym(libraries[0], setter)) reinterpret_cast<void (*)(int)>(symbol)(1);
  }
  report.found = true;
  report.library = list;
  report.reason.clear();
  return true;
}

BlasReport search() {
  BlasReport report{false, "", ""};
  const char* wish = std::getenv("HEADRACE_BLAS");
  const std::string wanted = wish == nullptr || *wish == '\0' ? "auto" : wish;
  if (wanted == "plain") {
    report.reason = "HEADRACE_BLAS=plain";
    return report;
  }
  // OpenBLAS starts its threads while it is being loaded, and reads their number from the environment only.
  const char* variable = "OPENBLAS_NUM_THREADS";
  const bool mine = std::getenv(variable) == nullptr;
  if (mine) setenv(variable, "1", 0);
  if (wanted != "auto") {
    load({wanted}, report);
  } else {
    load({"libopenblas.so.0"}, report) || load({"libblas.so.3", "liblapack.so.3"}, report);
  }
  if (mine) unsetenv(variable);
  return report;
}

const BlasReport& found() {
  static const BlasReport report = search();
  return report;
}

}  // namespace

BlasReport blasReport() { return found(); }

template <>
const BlasTable<double>& blas<double>() {
  return found().found ? libraryBlas<double>() : plainBlas<double>();
}
template <>
const BlasTable<float>& blas<float>() {
  return found().found ? libraryBlas<float>() : plainBlas<float>();
}

}  // namespace headrace
