// The blocked triangular solve: see gpu/cuda/triangular_solve.h.
//
// Invariants: the order is cut into blocks of one width and a rest, which is smaller and which cuBLAS solves; the workspace
// holds the inverses of all blocks, half as much again for joining them, and at least one row of a block's right side.
#include "gpu/cuda/triangular_solve.h"

#include <algorithm>
#include <string>

#include "gpu/cuda/tile_libraries.h"
#include "gpu/cuda/triangles_ptx.h"

namespace headrace {

namespace {

constexpr int kSide = 64;  // rows that one block of threads inverts (gpu/cuda/triangles.cu)
constexpr unsigned kThreads = 256;
/// Below, cuBLAS is as fast.
constexpr int kLeastOrder = 256;
constexpr int kLeastRightSides = 64;

/// Wider blocks need fewer calls and more arithmetic. Measured on an H100 (docs/gpu-results.md).
int widthFor(int order) { return order >= 1024 ? 512 : 256; }

std::size_t inverseElements(int blocks, int width) {
  return static_cast<std::size_t>(blocks) * width * width;
}

/// Elements before the right side's copy: the inverses, and the products between the steps of their joining.
std::size_t reservedElements(int blocks, int width) {
  return inverseElements(blocks, width) + inverseElements(blocks, width) / 4;
}

template <typename T>
class BlockedSolve {
 public:
  BlockedSolve(const SolveContext& context, const TrsmArguments<T>& t)
      : context_(context),
        t_(t),
        order_(t.side == 'L' ? t.m : t.n),
        width_(widthFor(order_)),
        blocks_(order_ / width_),
        inverses_(reinterpret_cast<T*>(context.work)),
        between_(inverses_ + inverseElements(blocks_, width_)),
        copy_(inverses_ + reservedElements(blocks_, width_)) {
    const std::size_t rest = context.workBytes / sizeof(T) - reservedElements(blocks_, width_);
    atOnce_ = static_cast<int>(std::min<std::size_t>(rest / width_, 1 << 20));
  }

  std::int32_t run() {
    if (!invert()) return code_;
    const int whole = blocks_ * width_;
    const int rest = order_ - whole;
    // The rest is solved last if the solve goes from the first row or column on, else first.
    if (rest == 0) {
      solve(0, whole, t_.alpha);
    } else if (forward()) {
      solve(0, whole, t_.alpha) && update(whole, rest, 0, whole, t_.alpha) &&
          library(whole, rest, T{1});
    } else {
      library(whole, rest, t_.alpha) && update(0, whole, whole, rest, t_.alpha) &&
          solve(0, whole, T{1});
    }
    return code_;
  }

 private:
  bool left() const { return t_.side == 'L'; }
  /// Whether the first unknowns depend on no others: op(A) is lower and on the left, or upper and on the right.
  bool forward() const { return ((t_.uplo == 'L') == (t_.trans == 'N')) == left(); }
  const T* a(int row, int column) const {
    return t_.a + row + static_cast<std::int64_t>(column) * t_.lda;
  }
  /// Where the right sides of unknown `at` begin.
  T* b(int at) const { return t_.b + (left() ? at : static_cast<std::int64_t>(at) * t_.ldb); }
  int rightSides() const { return left() ? t_.n : t_.m; }

  bool driver(int code, const char* call) {
    if (code == 0) return true;
    code_ = context_.stream->device->fail(code, call) == DriverStatus::lost ? HEADRACE_DEVICE_LOST
                                                                            : HEADRACE_DRIVER_ERROR;
    return false;
  }
  bool cublas(int status, const char* call) {
    if (status == 0) return true;
    context_.stream->device->refuse(
        DriverStatus::refused, std::string(call) + " returned status " + std::to_string(status));
    code_ = HEADRACE_DRIVER_ERROR;
    return false;
  }
  bool launch(FunctionHandle function, unsigned x, unsigned y, void** arguments) {
    return driver(context_.stream->device->api->launch(function, x, y, 1, kThreads, 1, 1, 0,
                                                       context_.stream->stream, arguments, nullptr),
                  "cuLaunchKernel");
  }

  /// Every block's inverse, in blocks of twice the width until the width is reached.
  bool invert() {
    // An upper triangle is a lower one with rows and columns exchanged.
    const bool lower = t_.uplo == 'L';
    const T* matrix = t_.a;
    std::int64_t row = lower ? 1 : t_.lda;
    std::int64_t column = lower ? t_.lda : 1;
    std::int64_t unit = t_.diag == 'U';
    T* out = inverses_;
    T* between = between_;
    std::int64_t outRow = lower ? 1 : width_;
    std::int64_t outColumn = lower ? width_ : 1;
    std::int64_t width = width_;
    std::int64_t whole = static_cast<std::int64_t>(blocks_) * width_;
    constexpr int kType = sizeof(T) == 8 ? 0 : 1;
    void* first[] = {&matrix, &row, &column, &unit, &out, &outRow, &outColumn, &width, &whole};
    if (!launch(context_.kernels->invert[kType], static_cast<unsigned>(whole / kSide), 1, first))
      return false;
    for (std::int64_t half = kSide; half < width_; half *= 2) {
      for (std::int64_t step = 0; step < 2; ++step) {
        void* next[] = {&matrix, &row,  &column,  &out,  &outRow, &outColumn,
                        &width,  &half, &between, &step, &whole};
        const auto tiles = static_cast<unsigned>(half / kSide);
        const auto pairs = static_cast<unsigned>(whole / (2 * half));
        if (!launch(context_.kernels->join[kType], tiles * tiles, pairs, next)) return false;
      }
    }
    return true;
  }

  /// The unknowns [at, at + count) of whole blocks.
  bool solve(int at, int count, T alpha) {
    if (count == width_) return block(at, alpha);
    const int half = count / width_ / 2 * width_;
    const int rest = count - half;
    if (forward()) {
      return solve(at, half, alpha) && update(at + half, rest, at, half, alpha) &&
             solve(at + half, rest, T{1});
    }
    return solve(at + half, rest, alpha) && update(at, half, at + half, rest, alpha) &&
           solve(at, half, T{1});
  }

  /// Subtracts what the known `count` unknowns at `known` give for the `rows` ones at `at`.
  bool update(int at, int rows, int known, int count, T alpha) {
    const T minus = -1;
    const bool plain = t_.trans == 'N';
    const auto& gemm = tileFunctions<T>().gemm;
    // op(A) between the two, and as it lies in A.
    const T* between = left() == plain ? a(at, known) : a(known, at);
    const int op = plain ? 0 : 1;
    return cublas(left() ? gemm(context_.blas, op, 0, rows, t_.n, count, &minus, between, t_.lda,
                                b(known), t_.ldb, &alpha, b(at), t_.ldb)
                         : gemm(context_.blas, 0, op, t_.m, rows, count, &minus, b(known), t_.ldb,
                                between, t_.lda, &alpha, b(at), t_.ldb),
                  "cuBLAS gemm");
  }

  /// One block: its right sides times the inverse. The product needs them apart from its result.
  bool block(int at, T alpha) {
    const T* inverse = inverses_ + inverseElements(at / width_, width_);
    for (int from = 0; from < rightSides(); from += atOnce_) {
      if (!portion(at, from, std::min(atOnce_, rightSides() - from), inverse, alpha)) return false;
    }
    return true;
  }

  bool portion(int at, int from, int count, const T* inverse, T alpha) {
    const T zero = 0;
    const int op = t_.trans == 'N' ? 0 : 1;
    const auto& gemm = tileFunctions<T>().gemm;
    T* to = b(at) + (left() ? static_cast<std::int64_t>(from) * t_.ldb : from);
    const int rows = left() ? width_ : count;
    if (!copy(to, rows, left() ? count : width_)) return false;
    return cublas(left() ? gemm(context_.blas, op, 0, rows, count, width_, &alpha, inverse, width_,
                                copy_, rows, &zero, to, t_.ldb)
                         : gemm(context_.blas, 0, op, rows, width_, width_, &alpha, copy_, rows,
                                inverse, width_, &zero, to, t_.ldb),
                  "cuBLAS gemm");
  }

  bool copy(const T* from, int rows, int columns) {
    const GpuApi& api = *context_.stream->device->api;
    const auto to = reinterpret_cast<std::uint64_t>(copy_);
    const auto source = reinterpret_cast<std::uint64_t>(from);
    const std::size_t bytes = static_cast<std::size_t>(rows) * sizeof(T);
    if (rows == t_.ldb) {
      return driver(api.copyOnDevice(to, source, bytes * columns, context_.stream->stream),
                    "cuMemcpyDtoDAsync");
    }
    return driver(api.copyBlock(to, bytes, source, static_cast<std::size_t>(t_.ldb) * sizeof(T),
                                bytes, static_cast<std::size_t>(columns), context_.stream->stream),
                  "cuMemcpy2DAsync");
  }

  bool library(int at, int count, T alpha) {
    return cublas(tileFunctions<T>().trsm(context_.blas, left() ? 0 : 1, t_.uplo == 'L' ? 0 : 1,
                                          t_.trans == 'N' ? 0 : 1, t_.diag == 'N' ? 0 : 1,
                                          left() ? count : t_.m, left() ? t_.n : count, &alpha,
                                          a(at, at), t_.lda, b(at), t_.ldb),
                  "cuBLAS trsm");
  }

  const SolveContext& context_;
  const TrsmArguments<T>& t_;
  const int order_;
  const int width_;
  const int blocks_;
  T* inverses_;
  T* between_;
  T* copy_;
  int atOnce_;
  std::int32_t code_ = 0;
};

}  // namespace

DriverStatus loadTriangleKernels(GpuDevice& device, TriangleKernels* kernels) {
  const struct {
    const char* symbol;
    FunctionHandle* function;
  } all[] = {{"headrace_invert_triangles_f64", &kernels->invert[0]},
             {"headrace_invert_triangles_f32", &kernels->invert[1]},
             {"headrace_join_inverses_f64", &kernels->join[0]},
             {"headrace_join_inverses_f32", &kernels->join[1]}};
  for (const auto& each : all) {
    const DriverStatus status =
        gpuFunctionLoad(&device, kTrianglesPtx, sizeof kTrianglesPtx, each.symbol, each.function);
    if (status != DriverStatus::ok) return status;
  }
  return DriverStatus::ok;
}

std::size_t triangularSolveBytes(int limit) {
  const int width = widthFor(limit);
  const std::size_t rightSides = static_cast<std::size_t>(limit) * width;
  return (reservedElements(limit / width, width) + rightSides) * sizeof(double);
}

template <typename T>
bool solvesInBlocks(const SolveContext& context, const TrsmArguments<T>& t) {
  const int order = t.side == 'L' ? t.m : t.n;
  const int rightSides = t.side == 'L' ? t.n : t.m;
  if (order < kLeastOrder || rightSides < kLeastRightSides) return false;
  const int width = widthFor(order);
  const std::size_t least = (reservedElements(order / width, width) +
                             static_cast<std::size_t>(kLeastRightSides) * width) *
                            sizeof(T);
  return least <= context.workBytes;
}

template <typename T>
std::int32_t solveInBlocks(const SolveContext& context, const TrsmArguments<T>& t) {
  return BlockedSolve<T>(context, t).run();
}

template bool solvesInBlocks(const SolveContext&, const TrsmArguments<double>&);
template bool solvesInBlocks(const SolveContext&, const TrsmArguments<float>&);
template std::int32_t solveInBlocks(const SolveContext&, const TrsmArguments<double>&);
template std::int32_t solveInBlocks(const SolveContext&, const TrsmArguments<float>&);

}  // namespace headrace
