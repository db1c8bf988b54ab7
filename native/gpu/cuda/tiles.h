// The tile kernels on CUDA: cuBLAS and cuSOLVER found at run time (gpu/cuda/tiles.cpp).
#pragma once

#include <string>

#include "gpu/driver.h"

namespace headrace {

struct TileReport {
  bool found;
  std::string blas;    // library that was loaded, or ''
  std::string solver;  // the same
  std::string reason;  // why a library is missing, or ''
};

/// Looks for the libraries (once per process).
TileReport tileReport();

/// Makes handles and workspaces for all compute streams of a CUDA device and loads the libraries' code by running
/// each operation once. Call it with the device's submission lock, before tile kernels run; later calls do nothing.
DriverStatus prepareTiles(DeviceHandle device);

}  // namespace headrace
