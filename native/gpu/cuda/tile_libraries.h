// cuBLAS and cuSOLVER, found at run time once per process: the functions that tile operations call.
#pragma once

#include <cstddef>

#include "gpu/cuda/tiles.h"

namespace headrace {

/// One element type's functions, as cublas_v2.h and cusolverDn.h declare them (enumerations are ints).
template <typename T>
struct Functions {
  int (*gemm)(void*, int, int, int, int, int, const T*, const T*, int, const T*, int, const T*, T*,
              int);
  int (*syrk)(void*, int, int, int, int, const T*, const T*, int, const T*, T*, int);
  int (*trsm)(void*, int, int, int, int, int, int, const T*, const T*, int, T*, int);
  int (*potrfBytes)(void*, int, int, T*, int, int*);
  int (*potrf)(void*, int, int, T*, int, T*, int, int*);
};

struct Libraries {
  TileReport report{false, "", "", ""};
  int (*blasCreate)(void**);
  int (*blasDestroy)(void*);
  int (*blasSetStream)(void*, void*);
  int (*blasSetWorkspace)(void*, void*, std::size_t);
  int (*solverCreate)(void**);
  int (*solverDestroy)(void*);
  int (*solverSetStream)(void*, void*);
  Functions<double> f64;
  Functions<float> f32;
};

/// Looks for the libraries in the first call.
const Libraries& tileLibraries();

template <typename T>
const Functions<T>& tileFunctions() {
  if constexpr (sizeof(T) == 8) {
    return tileLibraries().f64;
  } else {
    return tileLibraries().f32;
  }
}

}  // namespace headrace
