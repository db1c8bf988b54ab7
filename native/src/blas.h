// The BLAS and LAPACK routines of the tile kernels, from a library found at run time or from our own code.
#pragma once

#include <string>

namespace headrace {

struct BlasReport {
  bool found;           // false: the built-in code is used
  std::string library;  // what was loaded
  std::string reason;   // why nothing was, or ''
};

/// Finds the library on the first call.
BlasReport blasReport();

}  // namespace headrace
