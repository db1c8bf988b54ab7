// What the programs of NVIDIA's libraries share: errors, the clock, the matrix (1 off the diagonal, n on it) and its
// factor in closed form (bench/gpu-reference.ts).
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

using Size = std::int64_t;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "gpu_solvers: %s\n", text.c_str());
  std::exit(1);
}

void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) fail(std::string(call) + ": " + cudaGetErrorString(code));
}
void check(cublasStatus_t code, const char* call) {
  if (code != CUBLAS_STATUS_SUCCESS) fail(std::string(call) + ": status " + std::to_string(code));
}
void check(cusolverStatus_t code, const char* call) {
  if (code != CUSOLVER_STATUS_SUCCESS) fail(std::string(call) + ": status " + std::to_string(code));
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Writes columns [first, first + columns) of the matrix: `rows` rows, leading dimension `rows`.
__global__ void fill(double* a, Size rows, Size first, Size columns) {
  const Size step = static_cast<Size>(gridDim.x) * blockDim.x;
  for (Size at = static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; at < rows * columns; at += step) {
    a[at] = at % rows == first + at / rows ? static_cast<double>(rows) : 1.0;
  }
}

void fillColumns(double* a, Size rows, Size first, Size columns) {
  fill<<<4096, 256>>>(a, rows, first, columns);
  check(cudaGetLastError(), "fill");
}

double* deviceMatrix(Size elements) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(elements) * sizeof(double)), "cudaMalloc");
  return static_cast<double*>(memory);
}

void synchronizeAll(int gpus) {
  for (int g = gpus - 1; g >= 0; --g) {
    check(cudaSetDevice(g), "cudaSetDevice");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

/// Seconds of the best of `repeats` calls after one that is not counted. `prepare` is outside the clock.
double best(int gpus, int repeats, const std::function<void()>& prepare, const std::function<void()>& call) {
  double shortest = 1e300;
  for (int i = 0; i <= repeats; ++i) {
    prepare();
    synchronizeAll(gpus);
    const double start = seconds();
    call();
    synchronizeAll(gpus);
    if (i > 0) shortest = std::min(shortest, seconds() - start);
  }
  return shortest;
}

/// Compares one element of a result with the closed form.
void expect(double value, double wanted, const char* where) {
  if (!(std::fabs(value - wanted) <= 1e-9 * std::fabs(wanted))) {
    fail(std::string("the result is wrong at ") + where + ": " + std::to_string(value) + " instead of " +
         std::to_string(wanted));
  }
}

double elementAt(const double* device, Size at) {
  double value = 0;
  check(cudaMemcpy(&value, device + at, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return value;
}

/// Last diagonal element of the Cholesky factor.
double lastOfFactor(Size n) {
  double s = 0;
  double diagonal = 0;
  for (Size j = 0; j < n; ++j) {
    diagonal = std::sqrt(static_cast<double>(n) - s);
    const double below = (1 - s) / diagonal;
    s += below * below;
  }
  return diagonal;
}

void report(const char* name, double flops, double time, int gpus, Size n, Size block) {
  std::printf("[{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"TF/s\",\"params\":{\"gpus\":%d,\"n\":%lld,\"tile\":%lld}}]\n",
              name, flops / time / 1e12, gpus, static_cast<long long>(n), static_cast<long long>(block));
}

double choleskyFlops(Size n) {
  const double d = static_cast<double>(n);
  return d * d * d / 3 + d * d / 2 + d / 6;
}

}  // namespace
