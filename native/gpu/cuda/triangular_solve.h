// The triangular solve of tiles on CUDA GPUs. cuBLAS solves a tile by many small kernels, one after the other: a tile of 2048 by
// 2048 takes as long as three products of that size, one of 512 as long as nine. Here the diagonal blocks are inverted first,
// all at once (gpu/cuda/triangles.cu), and everything else is products of large blocks.
//
// A block that is singular spoils the whole block of rows or columns, where cuBLAS spoils only what depends on the zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/device.h"
#include "kernels/tile_arguments.h"

namespace headrace {

/// The functions of gpu/cuda/triangles.cu on one GPU.
struct TriangleKernels {
  FunctionHandle invert[2] = {};  // f64, f32
  FunctionHandle join[2] = {};
};

DriverStatus loadTriangleKernels(GpuDevice& device, TriangleKernels* kernels);

/// Bytes of workspace with which a matrix of order `limit` is solved in the fewest calls. Larger ones take more.
std::size_t triangularSolveBytes(int limit);

/// What one solve works with. The workspace belongs to the stream, whose work is in order.
struct SolveContext {
  GpuStream* stream;
  void* blas;  // its cuBLAS handle
  const TriangleKernels* kernels;
  std::uint64_t work;
  std::size_t workBytes;
};

/// Whether the blocked solve takes less time than cuBLAS' and its workspace holds the inverses.
template <typename T>
bool solvesInBlocks(const SolveContext& context, const TrsmArguments<T>& t);

/// Enqueues the solve. 0, or HEADRACE_DRIVER_ERROR or HEADRACE_DEVICE_LOST with the reason in the device's error text.
template <typename T>
std::int32_t solveInBlocks(const SolveContext& context, const TrsmArguments<T>& t);

}  // namespace headrace
