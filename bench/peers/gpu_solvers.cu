// NVIDIA's own libraries on the problems of bench/gpu-algorithms.ts, in fp64, so that both are measured in one run:
//   cholesky   cuSOLVER (cusolverDnDpotrf) on one GPU, cuSOLVERMg (cusolverMgPotrf) on several
//   gemm       cuBLAS on one GPU, data in GPU memory
//   gemm-host  cuBLASXt on any number of GPUs, data in page-locked host memory
// The matrix is 1 off the diagonal and n on it. Calls are warm: one call is not counted, the best of the others is
// printed as one JSON line. A result that differs from the closed form (bench/gpu-reference.ts) ends with an error.
//
// build: nvcc -O2 -std=c++17 -Xcompiler -Wno-deprecated-declarations bench/peers/gpu_solvers.cu -o gpu_solvers -lcusolverMg -lcusolver -lcublas
// usage: gpu_solvers cholesky|gemm|gemm-host N [--gpus G] [--repeats R] [--block B]
#include <cublasXt.h>
#include <cusolverMg.h>

#include <cstring>
#include <vector>

#include "gpu_common.cuh"

namespace {

void choleskyOnOne(Size n, int repeats) {
  cusolverDnHandle_t handle;
  check(cusolverDnCreate(&handle), "cusolverDnCreate");
  double* a = deviceMatrix(n * n);
  int length = 0;
  const int order = static_cast<int>(n);
  check(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, order, a, order, &length),
        "cusolverDnDpotrf_bufferSize");
  double* work = deviceMatrix(std::max(1, length));
  int* info = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&info), sizeof(int)), "cudaMalloc");
  const double time = best(1, repeats, [&] { fillColumns(a, n, 0, n); }, [&] {
    check(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, order, a, order, work, length, info), "cusolverDnDpotrf");
  });
  expect(elementAt(a, 0), std::sqrt(static_cast<double>(n)), "(0, 0)");
  expect(elementAt(a, n * n - 1), lastOfFactor(n), "the last diagonal element");
  report("peer/cusolver/cholesky", choleskyFlops(n), time, 1, n, n);
}

/// Columns of the matrix in blocks, dealt to the GPUs in turn, as cuSOLVERMg asks.
void choleskyOnSeveral(Size n, int gpus, int repeats, Size block) {
  std::vector<int> devices(static_cast<std::size_t>(gpus));
  for (int g = 0; g < gpus; ++g) devices[static_cast<std::size_t>(g)] = g;
  for (int g = 0; g < gpus; ++g) {
    check(cudaSetDevice(g), "cudaSetDevice");
    for (int peer = 0; peer < gpus; ++peer) {
      int can = 0;
      if (peer != g) check(cudaDeviceCanAccessPeer(&can, g, peer), "cudaDeviceCanAccessPeer");
      if (can != 0 && cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess) (void)cudaGetLastError();
    }
  }
  check(cudaSetDevice(0), "cudaSetDevice");
  cusolverMgHandle_t handle;
  check(cusolverMgCreate(&handle), "cusolverMgCreate");
  check(cusolverMgDeviceSelect(handle, gpus, devices.data()), "cusolverMgDeviceSelect");
  cudaLibMgGrid_t grid;
  check(cusolverMgCreateDeviceGrid(&grid, 1, gpus, devices.data(), CUDALIBMG_GRID_MAPPING_COL_MAJOR),
        "cusolverMgCreateDeviceGrid");
  cudaLibMgMatrixDesc_t layout;
  check(cusolverMgCreateMatrixDesc(&layout, n, n, n, block, CUDA_R_64F, grid), "cusolverMgCreateMatrixDesc");
  const Size blocks = (n + block - 1) / block;
  const Size perGpu = (blocks + gpus - 1) / gpus;
  std::vector<void*> parts(static_cast<std::size_t>(gpus));
  for (int g = 0; g < gpus; ++g) {
    check(cudaSetDevice(g), "cudaSetDevice");
    parts[static_cast<std::size_t>(g)] = deviceMatrix(n * block * perGpu);
  }
  check(cudaSetDevice(0), "cudaSetDevice");
  std::int64_t length = 0;
  check(cusolverMgPotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, static_cast<int>(n), parts.data(), 1, 1, layout,
                                   CUDA_R_64F, &length),
        "cusolverMgPotrf_bufferSize");
  std::vector<void*> work(static_cast<std::size_t>(gpus));
  for (int g = 0; g < gpus; ++g) {
    check(cudaSetDevice(g), "cudaSetDevice");
    work[static_cast<std::size_t>(g)] = deviceMatrix(length);
  }
  const auto prepare = [&] {
    for (Size b = 0; b < blocks; ++b) {
      const int g = static_cast<int>(b % gpus);
      check(cudaSetDevice(g), "cudaSetDevice");
      fillColumns(static_cast<double*>(parts[static_cast<std::size_t>(g)]) + n * block * (b / gpus), n, b * block,
                  std::min(block, n - b * block));
    }
  };
  int info = 0;
  const double time = best(gpus, repeats, prepare, [&] {
    check(cusolverMgPotrf(handle, CUBLAS_FILL_MODE_LOWER, static_cast<int>(n), parts.data(), 1, 1, layout, CUDA_R_64F,
                          work.data(), length, &info),
          "cusolverMgPotrf");
  });
  if (info != 0) fail("cusolverMgPotrf: info " + std::to_string(info));
  check(cudaSetDevice(0), "cudaSetDevice");
  expect(elementAt(static_cast<double*>(parts[0]), 0), std::sqrt(static_cast<double>(n)), "(0, 0)");
  const int owner = static_cast<int>((blocks - 1) % gpus);
  check(cudaSetDevice(owner), "cudaSetDevice");
  const Size column = block * ((blocks - 1) / gpus) + (n - 1 - (blocks - 1) * block);
  expect(elementAt(static_cast<double*>(parts[static_cast<std::size_t>(owner)]), column * n + n - 1), lastOfFactor(n),
         "the last diagonal element");
  report("peer/cusolvermg/cholesky", choleskyFlops(n), time, gpus, n, block);
}

double gemmFlops(Size n) { return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

void expectProduct(double corner, double beside, Size n) {
  const double d = static_cast<double>(n);
  expect(corner, 3 * d - 2 + (d - 1) * (d - 1), "(0, 0)");
  expect(beside, 3 * d - 2, "(1, 0)");
}

void gemmOnOne(Size n, int repeats) {
  cublasHandle_t handle;
  check(cublasCreate(&handle), "cublasCreate");
  double* a = deviceMatrix(n * n);
  double* b = deviceMatrix(n * n);
  double* c = deviceMatrix(n * n);
  fillColumns(a, n, 0, n);
  fillColumns(b, n, 0, n);
  const double one = 1;
  const double zero = 0;
  const int order = static_cast<int>(n);
  const double time = best(1, repeats, [] {}, [&] {
    check(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, order, order, order, &one, a, order, b, order, &zero, c, order),
          "cublasDgemm");
  });
  expectProduct(elementAt(c, 0), elementAt(c, 1), n);
  report("peer/cublas/gemm", gemmFlops(n), time, 1, n, n);
}

void gemmFromHost(Size n, int gpus, int repeats, Size block) {
  std::vector<int> devices(static_cast<std::size_t>(gpus));
  for (int g = 0; g < gpus; ++g) devices[static_cast<std::size_t>(g)] = g;
  double* matrices[3];
  for (double*& matrix : matrices) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, static_cast<std::size_t>(n * n) * sizeof(double), cudaHostAllocPortable),
          "cudaHostAlloc");
    matrix = static_cast<double*>(memory);
  }
  for (int m = 0; m < 2; ++m) {
    std::fill(matrices[m], matrices[m] + n * n, 1.0);
    for (Size i = 0; i < n; ++i) matrices[m][i * n + i] = static_cast<double>(n);
  }
  cublasXtHandle_t handle;
  check(cublasXtCreate(&handle), "cublasXtCreate");
  check(cublasXtDeviceSelect(handle, gpus, devices.data()), "cublasXtDeviceSelect");
  check(cublasXtSetBlockDim(handle, static_cast<int>(block)), "cublasXtSetBlockDim");
  const double one = 1;
  const double zero = 0;
  const std::size_t order = static_cast<std::size_t>(n);
  const double time = best(gpus, repeats, [] {}, [&] {
    check(cublasXtDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, order, order, order, &one, matrices[0], order, matrices[1],
                        order, &zero, matrices[2], order),
          "cublasXtDgemm");
  });
  expectProduct(matrices[2][0], matrices[2][1], n);
  report("peer/cublasxt/gemm-host", gemmFlops(n), time, gpus, n, block);
}

const char* const kUsage = "usage: gpu_solvers cholesky|gemm|gemm-host N [--gpus G] [--repeats R] [--block B]";

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::puts(kUsage);
    return 0;
  }
  if (argc < 3) fail(kUsage);
  const std::string what = argv[1];
  const Size n = std::atoll(argv[2]);
  int gpus = 1;
  int repeats = 3;
  Size block = 0;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--gpus") gpus = std::atoi(argv[i + 1]);
    else if (name == "--repeats") repeats = std::atoi(argv[i + 1]);
    else if (name == "--block") block = std::atoll(argv[i + 1]);
    else fail(kUsage);
  }
  if (n < 2 || gpus < 1 || repeats < 1) fail(kUsage);
  if (what == "cholesky" && gpus == 1) choleskyOnOne(n, repeats);
  else if (what == "cholesky") choleskyOnSeveral(n, gpus, repeats, block > 0 ? block : 512);
  else if (what == "gemm" && gpus == 1) gemmOnOne(n, repeats);
  else if (what == "gemm-host") gemmFromHost(n, gpus, repeats, block > 0 ? block : 4096);
  else fail(kUsage);
  return 0;
}
