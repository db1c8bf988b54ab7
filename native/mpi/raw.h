// Transfers by hand between ranks 0 and 1: the reference of the benchmarks. All ranks call; no session is open.
#pragma once

#include <cstdint>

#include "gpus.h"

namespace headrace::mpi {

/// Seconds one way of a plain MPI_Send and MPI_Recv ping-pong, in memory of the GPU where one is given (which the MPI
/// library must be able to take), else in host memory, `shared` as that of emulated GPUs or private. Throws std::runtime_error.
double rawPingPong(std::int64_t bytes, int rounds, int rank, int size, const Gpu* gpu, bool shared);
/// Seconds of one copy by which rank 1 reads memory of rank 0's GPU that it has opened. Throws std::runtime_error.
double rawIpcRead(std::int64_t bytes, int rounds, int rank, int size, const Gpu* gpu);

}  // namespace headrace::mpi
