// LAPACK's LU and QR through the Fortran interface of the library that blas.cpp has found.
#include "kernels/lapack.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/blas.h"
#include "kernels/lapack_library.h"

namespace headrace {
namespace {

using Length = std::size_t;

template <typename T>
struct Fortran {
  using Getrf = void (*)(const int*, const int*, T*, const int*, int*, int*);
  using Geqrt = void (*)(const int*, const int*, const int*, T*, const int*, T*, const int*, T*,
                         int*);
  using Gemqrt = void (*)(const char*, const char*, const int*, const int*, const int*, const int*,
                          const T*, const int*, const T*, const int*, T*, const int*, T*, int*,
                          Length, Length);
  using Tpqrt = void (*)(const int*, const int*, const int*, const int*, T*, const int*, T*,
                         const int*, T*, const int*, T*, int*);
  using Tpmqrt = void (*)(const char*, const char*, const int*, const int*, const int*, const int*,
                          const int*, const T*, const int*, const T*, const int*, T*, const int*,
                          T*, const int*, T*, int*, Length, Length);
  static Getrf getrf;
  static Geqrt geqrt;
  static Gemqrt gemqrt;
  static Tpqrt tpqrt;
  static Tpmqrt tpmqrt;
};
template <typename T>
typename Fortran<T>::Getrf Fortran<T>::getrf = nullptr;
template <typename T>
typename Fortran<T>::Geqrt Fortran<T>::geqrt = nullptr;
template <typename T>
typename Fortran<T>::Gemqrt Fortran<T>::gemqrt = nullptr;
template <typename T>
typename Fortran<T>::Tpqrt Fortran<T>::tpqrt = nullptr;
template <typename T>
typename Fortran<T>::Tpmqrt Fortran<T>::tpmqrt = nullptr;

/// Room for `nb` numbers per column.
template <typename T>
std::vector<T> workspace(int nb, int columns) {
  return std::vector<T>(static_cast<std::size_t>(nb) * static_cast<std::size_t>(columns) + 1);
}

template <typename T>
const LapackTable<T>& libraryLapack() {
  static constexpr LapackTable<T> table = {
      [](int m, int n, T* a, int lda, int* pivots) {
        int info = 0;
        Fortran<T>::getrf(&m, &n, a, &lda, pivots, &info);
        return info;
      },
      [](int m, int n, int nb, T* a, int lda, T* t, int ldt) {
        int info = 0;
        std::vector<T> work = workspace<T>(nb, n);
        Fortran<T>::geqrt(&m, &n, &nb, a, &lda, t, &ldt, work.data(), &info);
      },
      [](char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt, T* c,
         int ldc) {
        int info = 0;
        const char side = 'L';
        std::vector<T> work = workspace<T>(nb, n);
        Fortran<T>::gemqrt(&side, &trans, &m, &n, &k, &nb, v, &ldv, t, &ldt, c, &ldc, work.data(),
                           &info, 1, 1);
      },
      [](int m, int n, int nb, T* a, int lda, T* b, int ldb, T* t, int ldt) {
        int info = 0;
        const int none = 0;  // rows of B that are part of a trapezoid
        std::vector<T> work = workspace<T>(nb, n);
        Fortran<T>::tpqrt(&m, &n, &none, &nb, a, &lda, b, &ldb, t, &ldt, work.data(), &info);
      },
      [](char trans, int m, int n, int k, int nb, const T* v, int ldv, const T* t, int ldt, T* a,
         int lda, T* b, int ldb) {
        int info = 0;
        const int none = 0;
        const char side = 'L';
        std::vector<T> work = workspace<T>(nb, n);
        Fortran<T>::tpmqrt(&side, &trans, &m, &n, &k, &none, &nb, v, &ldv, t, &ldt, a, &lda, b,
                           &ldb, work.data(), &info, 1, 1);
      },
  };
  return table;
}

template <typename F>
bool take(const std::function<void*(const char*)>& find, char type, const char* name, F& function,
          std::string& reason) {
  const std::string symbol = type + std::string(name) + "_";
  function = reinterpret_cast<F>(find(symbol.c_str()));
  if (function == nullptr) reason = "no symbol " + symbol;
  return function != nullptr;
}

template <typename T>
bool takeAll(const std::function<void*(const char*)>& find, char type, std::string& reason) {
  return take(find, type, "getrf", Fortran<T>::getrf, reason) &&
         take(find, type, "geqrt", Fortran<T>::geqrt, reason) &&
         take(find, type, "gemqrt", Fortran<T>::gemqrt, reason) &&
         take(find, type, "tpqrt", Fortran<T>::tpqrt, reason) &&
         take(find, type, "tpmqrt", Fortran<T>::tpmqrt, reason);
}

}  // namespace

bool resolveLapack(const std::function<void*(const char*)>& find, std::string& reason) {
  return takeAll<double>(find, 'd', reason) && takeAll<float>(find, 's', reason);
}

template <>
const LapackTable<double>& lapack<double>() {
  return blasReport().found ? libraryLapack<double>() : plainLapack<double>();
}
template <>
const LapackTable<float>& lapack<float>() {
  return blasReport().found ? libraryLapack<float>() : plainLapack<float>();
}

}  // namespace headrace
