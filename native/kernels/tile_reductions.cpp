// Kernels that reduce a tile to a few doubles, for tiles of doubles (`_f64`) and floats (`_f32`). Tiles are column-major.
//
//   tile_sum, tile_min, tile_max, tile_largest   flows to, A     params m, n, lda
//       the sum, minimum, maximum of the elements and of their absolute values
//   tile_frobenius                               flows to, A     params m, n, lda
//       the square root of the sum of squares, which neither overflows nor vanishes (LAPACK's LASSQ)
//   tile_columns, tile_rows                      flows to, A     params m, n, lda
//       for each column (row) the sum of the absolute values; `to` has n (m) numbers
//   tile_dot                                     flows to, A, B  params m, n, lda, ldb
//       the sum of the products of the elements of A and B
//
// Invariant: the order of the operations depends on the shape only. A NaN gives a NaN.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/kernels.h"
#include "kernels/tile_arguments.h"

namespace headrace {
namespace {

using Index = std::ptrdiff_t;

enum class What { sum, min, max, largest, frobenius, columns, rows };

double least(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double most(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// The running scale and the sum of squares divided by its square.
struct Squares {
  double scale = 0;
  double sum = 1;

  void add(double value) {
    const double size = std::abs(value);
    if (size == 0) return;
    if (scale < size) {
      sum = 1 + sum * (scale / size) * (scale / size);
      scale = size;
    } else if (std::isinf(size)) {
      // The scale is infinite already.
    } else {
      sum += (size / scale) * (size / scale);
      if (std::isnan(size)) scale = size;
    }
  }
  double norm() const { return scale * std::sqrt(sum); }
};

/// Calls with every element, column by column.
template <typename T, typename Visit>
void each(int m, int n, const T* a, Index lda, Visit visit) {
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) visit(i, j, static_cast<double>(a[i + j * lda]));
  }
}

template <What what, typename T>
void reduceTile(int m, int n, const T* a, Index lda, double* to) {
  if constexpr (what == What::frobenius) {
    Squares squares;
    each(m, n, a, lda, [&](Index, Index, double value) { squares.add(value); });
    to[0] = squares.norm();
  } else if constexpr (what == What::columns || what == What::rows) {
    constexpr bool byRow = what == What::rows;
    std::fill(to, to + (byRow ? m : n), 0.0);
    each(m, n, a, lda,
         [&](Index i, Index j, double value) { to[byRow ? i : j] += std::abs(value); });
  } else {
    double result = what == What::sum ? 0 : static_cast<double>(a[0]);
    if constexpr (what == What::largest) result = std::abs(result);
    each(m, n, a, lda, [&](Index, Index, double value) {
      if constexpr (what == What::sum) result += value;
      if constexpr (what == What::min) result = std::isnan(value) ? value : least(result, value);
      if constexpr (what == What::max) result = std::isnan(value) ? value : most(result, value);
      if constexpr (what == What::largest) {
        result = std::isnan(value) ? value : most(result, std::abs(value));
      }
    });
    to[0] = result;
  }
}

template <What what, typename T>
std::int32_t reduceKernel(const headrace_task* task) {
  TileParams params(task, 2, 3);
  const int m = params.size();
  const int n = params.size();
  const int lda = params.leading(m);
  if (!params.ok() || m == 0 || n == 0) return HEADRACE_BAD_ARGUMENTS;
  const int count = what == What::columns ? n : what == What::rows ? m : 1;
  double* to;
  const T* a;
  if (!tileMatrix<double>(task, 0, count, 1, count, &to) ||
      !tileMatrix<T>(task, 1, m, n, lda, &a)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  reduceTile<what, T>(m, n, a, lda, to);
  return 0;
}

template <typename T>
std::int32_t dotKernel(const headrace_task* task) {
  TileParams params(task, 3, 4);
  const int m = params.size();
  const int n = params.size();
  const int lda = params.leading(m);
  const Index ldb = params.leading(m);
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  double* to;
  const T* a;
  const T* b;
  if (!tileMatrix<double>(task, 0, 1, 1, 1, &to) || !tileMatrix<T>(task, 1, m, n, lda, &a) ||
      !tileMatrix<T>(task, 2, m, n, static_cast<int>(ldb), &b)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  double sum = 0;
  each(m, n, a, lda,
       [&](Index i, Index j, double value) { sum += value * static_cast<double>(b[i + j * ldb]); });
  to[0] = sum;
  return 0;
}

template <typename T>
void registerAll(headrace_registry* registry, const std::string& suffix) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"sum", reduceKernel<What::sum, T>},
      {"min", reduceKernel<What::min, T>},
      {"max", reduceKernel<What::max, T>},
      {"largest", reduceKernel<What::largest, T>},
      {"frobenius", reduceKernel<What::frobenius, T>},
      {"columns", reduceKernel<What::columns, T>},
      {"rows", reduceKernel<What::rows, T>},
      {"dot", dotKernel<T>},
  };
  for (const auto& kernel : kernels) {
    const std::string name = std::string("tile_") + kernel.name + suffix;
    registry->add(registry, name.c_str(), HEADRACE_KERNEL_HOST, kernel.kernel);
  }
}

}  // namespace

std::int32_t registerTileReductionKernels(headrace_registry* registry) {
  registerAll<double>(registry, "_f64");
  registerAll<float>(registry, "_f32");
  return 0;
}

}  // namespace headrace
