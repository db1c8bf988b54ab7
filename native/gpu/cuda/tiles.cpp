// gemm, syrk, trsm and potrf on CUDA GPUs: cuBLAS and cuSOLVER, loaded at run time, with the names, parameters and
// results of the host kernels (kernels/tile.cpp).
//
// Invariants: every compute stream has handles of its own, bound to it for good (setting a handle's stream resets its
// workspace); all workspaces exist before the first task; no call here waits for the GPU. A copy behind the factorisation
// brings potrf's outcome to a pinned word. It becomes the task's status when the stream has got there.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "gpu/cuda/tile_libraries.h"
#include "gpu/cuda/tiles.h"
#include "gpu/cuda/triangular_solve.h"
#include "gpu/events.h"
#include "kernels/kernels.h"
#include "kernels/tile_arguments.h"

namespace headrace {

namespace {

/// cuBLAS' own advice for Hopper. cuBLAS would allocate a larger workspace by itself while kernels run.
constexpr std::size_t kBlasWorkspace = std::size_t{32} << 20;
/// Largest tile that the workspace is made for. HEADRACE_TILE_LIMIT overrides it.
constexpr int kTileLimit = 8192;

int operation(char trans) { return trans == 'N' ? 0 : 1; }
int triangle(char uplo) { return uplo == 'L' ? 0 : 1; }

int tileLimit() {
  const char* given = std::getenv("HEADRACE_TILE_LIMIT");
  const int limit = given != nullptr ? std::atoi(given) : 0;
  return limit > 0 ? limit : kTileLimit;
}

}  // namespace

/// The handles and workspaces of one stream for tile operations.
struct TileLibrary {
  void* blas = nullptr;
  void* solver = nullptr;
  std::uint64_t blasWorkspace = 0;
  std::uint64_t work =
      0;  // of potrf and of the triangular solve, which follow each other in the stream
  int workBytes = 0;
  TriangleKernels triangles;
  std::uint64_t info = 0;  // an int on the device per pinned outcome word
};

namespace {

std::int32_t failed(GpuStream& stream, const char* call, int code) {
  stream.device->refuse(DriverStatus::refused,
                        std::string(call) + " returned status " + std::to_string(code));
  return HEADRACE_DRIVER_ERROR;
}

/// The stream of the running kernel with its handles; or null, with the reason in the device's error text.
GpuStream* ready() {
  GpuStream* stream = currentStream();
  if (stream->tiles != nullptr) return stream;
  stream->device->refuse(DriverStatus::refused,
                         "cuBLAS and cuSOLVER are not ready on this stream: the kernel's id was "
                         "never asked for on this GPU, or the libraries are missing");
  return nullptr;
}

template <typename T>
std::int32_t gemm(const headrace_task* task) {
  GemmArguments<T> g;
  const std::int32_t code = g.read(task);
  if (code != 0 || g.m == 0 || g.n == 0) return code;
  GpuStream* stream = ready();
  if (stream == nullptr) return HEADRACE_DRIVER_ERROR;
  const int status =
      tileFunctions<T>().gemm(stream->tiles->blas, operation(g.transA), operation(g.transB), g.m,
                              g.n, g.k, &g.alpha, g.a, g.lda, g.b, g.ldb, &g.beta, g.c, g.ldc);
  return status == 0 ? 0 : failed(*stream, "cuBLAS gemm", status);
}

template <typename T>
std::int32_t syrk(const headrace_task* task) {
  SyrkArguments<T> s;
  const std::int32_t code = s.read(task);
  if (code != 0 || s.n == 0) return code;
  GpuStream* stream = ready();
  if (stream == nullptr) return HEADRACE_DRIVER_ERROR;
  const int status =
      tileFunctions<T>().syrk(stream->tiles->blas, triangle(s.uplo), operation(s.trans), s.n, s.k,
                              &s.alpha, s.a, s.lda, &s.beta, s.c, s.ldc);
  return status == 0 ? 0 : failed(*stream, "cuBLAS syrk", status);
}

template <typename T>
std::int32_t trsm(const headrace_task* task) {
  TrsmArguments<T> t;
  const std::int32_t code = t.read(task);
  if (code != 0 || t.m == 0 || t.n == 0) return code;
  GpuStream* stream = ready();
  if (stream == nullptr) return HEADRACE_DRIVER_ERROR;
  const TileLibrary& tiles = *stream->tiles;
  const SolveContext context{stream, tiles.blas, &tiles.triangles, tiles.work,
                             static_cast<std::size_t>(tiles.workBytes)};
  if (solvesInBlocks(context, t)) return solveInBlocks(context, t);
  const int status = tileFunctions<T>().trsm(tiles.blas, t.side == 'L' ? 0 : 1, triangle(t.uplo),
                                             operation(t.trans), t.diag == 'N' ? 0 : 1, t.m, t.n,
                                             &t.alpha, t.a, t.lda, t.b, t.ldb);
  return status == 0 ? 0 : failed(*stream, "cuBLAS trsm", status);
}

template <typename T>
std::int32_t factor(GpuStream& stream, const PotrfArguments<T>& p, std::uint64_t info) {
  const Functions<T>& call = tileFunctions<T>();
  TileLibrary& tiles = *stream.tiles;
  int elements = 0;
  int status = call.potrfBytes(tiles.solver, triangle(p.uplo), p.n, p.a, p.lda, &elements);
  if (status != 0) return failed(stream, "cuSOLVER potrf_bufferSize", status);
  const double needed = static_cast<double>(elements) * sizeof(T);
  if (needed > tiles.workBytes) {
    stream.device->refuse(DriverStatus::refused,
                          "potrf of a tile of " + std::to_string(p.n) + " needs " +
                              std::to_string(static_cast<std::int64_t>(needed)) +
                              " bytes of workspace, more than the " +
                              std::to_string(tiles.workBytes) +
                              " made at start: set HEADRACE_TILE_LIMIT to the largest tile");
    return HEADRACE_DRIVER_ERROR;
  }
  status = call.potrf(tiles.solver, triangle(p.uplo), p.n, p.a, p.lda,
                      reinterpret_cast<T*>(tiles.work), elements, reinterpret_cast<int*>(info));
  return status == 0 ? 0 : failed(stream, "cuSOLVER potrf", status);
}

template <typename T>
std::int32_t potrf(const headrace_task* task) {
  PotrfArguments<T> p;
  std::int32_t code = p.read(task);
  if (code != 0 || p.n == 0) return code;
  GpuStream* stream = ready();
  if (stream == nullptr) return HEADRACE_DRIVER_ERROR;
  std::int32_t* pinned = takeOutcome(*stream);
  if (pinned == nullptr) {
    stream->device->refuse(DriverStatus::refused, "too many factorisations in flight");
    return HEADRACE_DRIVER_ERROR;
  }
  // In a graph the stream copies the outcome away before its next call.
  const auto word = stream->capture != nullptr
                        ? std::uint64_t{0}
                        : static_cast<std::uint64_t>(pinned - stream->outcomeWords);
  const std::uint64_t info = stream->tiles->info + word * 4;
  code = factor(*stream, p, info);
  if (code == 0) {
    const int status = stream->device->api->copyToHost(pinned, info, 4, stream->stream);
    if (status != 0) {
      return stream->device->fail(status, "cuMemcpyDtoHAsync") == DriverStatus::lost
                 ? HEADRACE_DEVICE_LOST
                 : HEADRACE_DRIVER_ERROR;
    }
  }
  // Also if it failed: the word may be used again only after the stream has passed this point.
  reportLater(*stream, pinned);
  return code;
}

/// Runs every operation once on an 8 x 8 unit matrix, so that the libraries' code is loaded before tasks need it.
template <typename T>
DriverStatus warmUp(GpuStream& stream) {
  GpuDevice& device = *stream.device;
  TileLibrary& tiles = *stream.tiles;
  const Functions<T>& call = tileFunctions<T>();
  T* a = reinterpret_cast<T*>(tiles.work);
  T* b = a + 64;
  T* work = a + 256;
  const T one = 1;
  const T zero = 0;
  int elements = 0;
  int status = device.api->fill(tiles.work, 0, 256 * sizeof(T), stream.stream);
  if (status != 0) return device.fail(status, "cuMemsetD8Async");
  status = call.gemm(tiles.blas, 0, 1, 8, 8, 8, &one, a, 8, a, 8, &zero, b, 8);
  if (status == 0) status = call.syrk(tiles.blas, 0, 0, 8, 8, &one, a, 8, &zero, b, 8);
  if (status == 0) status = call.trsm(tiles.blas, 1, 0, 1, 1, 8, 8, &one, a, 8, b, 8);
  if (status == 0) status = call.potrfBytes(tiles.solver, 0, 8, a, 8, &elements);
  if (status == 0 && (static_cast<std::size_t>(elements) + 256) * sizeof(T) <=
                         static_cast<std::size_t>(tiles.workBytes)) {
    status =
        call.potrf(tiles.solver, 0, 8, a, 8, work, elements, reinterpret_cast<int*>(tiles.info));
  }
  return status == 0 ? DriverStatus::ok
                     : device.refuse(DriverStatus::refused,
                                     "cuBLAS and cuSOLVER do not work here: "
                                     "status " +
                                         std::to_string(status));
}

/// The warm-up is over when this returns, so none of its kernels runs when the pause ends. Only the libraries' own
/// kernels run meanwhile (the caller holds a pause).
DriverStatus drain(GpuStream& stream) {
  GpuEvent end;
  end.device = stream.device;
  DriverStatus status = gpuEventRecord(&end, &stream);
  if (status == DriverStatus::ok) {
    while ((status = gpuEventQuery(&end)) == DriverStatus::notReady) sched_yield();
  }
  return status;
}

DriverStatus workBytes(GpuStream& stream, std::size_t* bytes) {
  const Libraries& library = tileLibraries();
  const int limit = tileLimit();
  // The matrix is not read, but a null one might be refused.
  auto* a64 = reinterpret_cast<double*>(stream.tiles->blasWorkspace);
  auto* a32 = reinterpret_cast<float*>(stream.tiles->blasWorkspace);
  for (const int uplo : {0, 1}) {
    int f64 = 0;
    int f32 = 0;
    int status = library.f64.potrfBytes(stream.tiles->solver, uplo, limit, a64, limit, &f64);
    if (status == 0) {
      status = library.f32.potrfBytes(stream.tiles->solver, uplo, limit, a32, limit, &f32);
    }
    if (status != 0) {
      return stream.device->refuse(DriverStatus::refused,
                                   "cuSOLVER potrf_bufferSize returned " + std::to_string(status));
    }
    *bytes =
        std::max({*bytes, static_cast<std::size_t>(f64) * 8, static_cast<std::size_t>(f32) * 4});
  }
  *bytes = std::max(*bytes, triangularSolveBytes(limit));
  *bytes += 4096;  // the warm-up's matrices
  return DriverStatus::ok;
}

DriverStatus prepare(GpuStream& stream) {
  GpuDevice& device = *stream.device;
  const GpuApi& api = *device.api;
  const Libraries& library = tileLibraries();
  const DriverStatus allowed = device.permit("cublasCreate and cuMemAlloc");
  if (allowed != DriverStatus::ok) return allowed;
  DriverStatus status = DriverStatus::ok;
  stream.tiles = new TileLibrary;
  TileLibrary& tiles = *stream.tiles;
  int code = library.blasCreate(&tiles.blas);
  if (code == 0) code = library.blasSetStream(tiles.blas, stream.stream);
  if (code == 0) code = library.solverCreate(&tiles.solver);
  if (code == 0) code = library.solverSetStream(tiles.solver, stream.stream);
  if (code != 0) {
    status = device.refuse(DriverStatus::refused,
                           "cuBLAS or cuSOLVER gives no handle: status " + std::to_string(code));
  }
  std::size_t bytes = 0;
  if (status == DriverStatus::ok) {
    code = api.memoryAlloc(&tiles.blasWorkspace, kBlasWorkspace);
    status = device.check(code, "cuMemAlloc");
  }
  if (status == DriverStatus::ok) status = loadTriangleKernels(device, &tiles.triangles);
  if (status == DriverStatus::ok) status = workBytes(stream, &bytes);
  tiles.workBytes = static_cast<int>(std::min<std::size_t>(bytes, 2147483647));
  if (status == DriverStatus::ok) {
    code = api.memoryAlloc(&tiles.work, static_cast<std::size_t>(tiles.workBytes));
    if (code == 0) code = api.memoryAlloc(&tiles.info, stream.sparePinned.size() * 4);
    if (code != 0) status = device.fail(code, "cuMemAlloc");
  }
  if (status == DriverStatus::ok) {
    code = library.blasSetWorkspace(tiles.blas, reinterpret_cast<void*>(tiles.blasWorkspace),
                                    kBlasWorkspace);
    if (code != 0) {
      status = device.refuse(DriverStatus::refused,
                             "cublasSetWorkspace returned " + std::to_string(code));
    }
  }
  if (status != DriverStatus::ok) releaseTiles(stream);
  return status;
}

}  // namespace

TileReport tileReport() { return tileLibraries().report; }

void releaseTiles(GpuStream& stream) {
  const Libraries& library = tileLibraries();
  const GpuApi& api = *stream.device->api;
  TileLibrary& tiles = *stream.tiles;
  if (tiles.solver != nullptr) library.solverDestroy(tiles.solver);
  if (tiles.blas != nullptr) library.blasDestroy(tiles.blas);
  for (const std::uint64_t memory : {tiles.blasWorkspace, tiles.work, tiles.info}) {
    if (memory != 0) api.memoryFree(memory);
  }
  delete stream.tiles;
  stream.tiles = nullptr;
}

DriverStatus prepareTiles(DeviceHandle handle) {
  auto& device = *static_cast<GpuDevice*>(handle);
  if (!tileLibraries().report.found) {
    return device.refuse(DriverStatus::unsupported, tileLibraries().report.reason);
  }
  std::vector<GpuStream*> fresh;
  DriverStatus status = DriverStatus::ok;
  for (GpuStream* stream : device.streams) {
    if (stream->purpose != StreamPurpose::compute || stream->tiles != nullptr) continue;
    if (status == DriverStatus::ok) status = prepare(*stream);
    if (status == DriverStatus::ok) fresh.push_back(stream);
  }
  // Only now: an allocation for one stream would wait for the work on another.
  for (GpuStream* stream : fresh) {
    if (status == DriverStatus::ok) status = warmUp<double>(*stream);
    if (status == DriverStatus::ok) status = warmUp<float>(*stream);
  }
  for (GpuStream* stream : fresh) {
    const DriverStatus drained = drain(*stream);
    if (status == DriverStatus::ok) status = drained;
  }
  if (status == DriverStatus::ok) return status;
  for (GpuStream* stream : fresh) releaseTiles(*stream);
  return status;
}

std::int32_t registerCudaTileKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"gemm_f64", gemm<double>},   {"gemm_f32", gemm<float>},   {"syrk_f64", syrk<double>},
      {"syrk_f32", syrk<float>},    {"trsm_f64", trsm<double>},  {"trsm_f32", trsm<float>},
      {"potrf_f64", potrf<double>}, {"potrf_f32", potrf<float>},
  };
  for (const auto& each : kernels) {
    registry->add(registry, each.name, HEADRACE_KERNEL_CUDA, each.kernel);
  }
  return 0;
}

}  // namespace headrace
