// Kernels of the method of conjugate gradients, for vectors of doubles (`_f64`) and floats (`_f32`); scalars are doubles.
//
//   axpby       flows y, x              params count, alpha, beta
//       y = alpha x + beta y. With beta = 0 y is not read, with alpha = 0 x is not read
//   five_point  flows to, from, above, below (lists of one row, or of none)
//                                       params rows, columns, centre, horizontal, vertical
//       to = the weighted sum of each element of a grid, row by row, and its four neighbours; zeros lie beyond the grid
//   edge_rows   flows first, last, from  params rows, columns
//       copies of the first and the last row
//   parts_sum   flows to, parts (list)  params none
//       the sum from left to right; 0 of an empty list
//   cg_step     flows alpha, minus, iterations, rr, parts (list)  params goal
//       alpha = rr / sum of parts, minus = -alpha, iterations + 1; returns that number when the sum is not positive and finite.
//       Once rr is at most the goal, alpha is 0
//   cg_turn     flows beta, rr, parts (list)  params goal
//       beta = sum of parts / rr, rr = sum of parts. Once rr is at most the goal, it stays and beta is 0
//
// Invariant: the order of the operations depends on the shapes only. Behind the parameters stand the numbers of data of the lists.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "kernels/kernels.h"
#include "kernels/tile_arguments.h"

namespace headrace {
namespace {

using Index = std::ptrdiff_t;

template <typename T>
std::int32_t axpby(const headrace_task* task) {
  TileParams params(task, 2, 3);
  const int count = params.size();
  const double alpha = params.scalar();
  const double beta = params.scalar();
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* y;
  const T* x;
  if (!tileMatrix<T>(task, 0, count, 1, count, &y) ||
      !tileMatrix<T>(task, 1, count, 1, count, &x)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  if (alpha == 0 && beta == 1) return 0;
  if (alpha == 0 && beta == 0) {
    std::fill(y, y + count, T{0});
  } else if (beta == 0) {
    for (Index i = 0; i < count; ++i) y[i] = static_cast<T>(alpha * x[i]);
  } else if (beta == 1) {
    for (Index i = 0; i < count; ++i) y[i] = static_cast<T>(y[i] + alpha * x[i]);
  } else {
    for (Index i = 0; i < count; ++i) y[i] = static_cast<T>(alpha * x[i] + beta * y[i]);
  }
  return 0;
}

/// The number of data of a list whose number stands at `index`; -1 when it makes no sense.
int listCount(const headrace_task* task, int index, int most) {
  if (index >= task->param_count) return -1;
  const double value = task->params[index];
  return value >= 0 && value <= most ? static_cast<int>(value) : -1;
}

template <typename T>
std::int32_t fivePoint(const headrace_task* task) {
  const int above = listCount(task, 5, 1);
  const int below = listCount(task, 6, 1);
  if (above < 0 || below < 0) return HEADRACE_BAD_ARGUMENTS;
  TileParams params(task, 2 + above + below, 7);
  const int rows = params.size();
  const int columns = params.size();
  const double centre = params.scalar();
  const double horizontal = params.scalar();
  const double vertical = params.scalar();
  if (!params.ok()) return HEADRACE_BAD_ARGUMENTS;
  T* to;
  const T* from;
  const T* up = nullptr;
  const T* down = nullptr;
  if (!tileMatrix<T>(task, 0, columns, rows, columns, &to) ||
      !tileMatrix<T>(task, 1, columns, rows, columns, &from) ||
      (above == 1 && !tileMatrix<T>(task, 2, columns, 1, columns, &up)) ||
      (below == 1 && !tileMatrix<T>(task, 2 + above, columns, 1, columns, &down))) {
    return HEADRACE_OUT_OF_RANGE;
  }
  for (Index i = 0; i < rows; ++i) {
    const T* row = from + i * columns;
    const T* before = i > 0 ? row - columns : up;
    const T* after = i + 1 < rows ? row + columns : down;
    for (Index j = 0; j < columns; ++j) {
      const double left = j > 0 ? row[j - 1] : 0;
      const double right = j + 1 < columns ? row[j + 1] : 0;
      const double higher = before == nullptr ? 0 : before[j];
      const double lower = after == nullptr ? 0 : after[j];
      to[i * columns + j] = static_cast<T>(centre * row[j] + horizontal * (left + right) +
                                           vertical * (higher + lower));
    }
  }
  return 0;
}

template <typename T>
std::int32_t edgeRows(const headrace_task* task) {
  TileParams params(task, 3, 2);
  const int rows = params.size();
  const int columns = params.size();
  if (!params.ok() || rows == 0) return HEADRACE_BAD_ARGUMENTS;
  T* first;
  T* last;
  const T* from;
  if (!tileMatrix<T>(task, 0, columns, 1, columns, &first) ||
      !tileMatrix<T>(task, 1, columns, 1, columns, &last) ||
      !tileMatrix<T>(task, 2, columns, rows, columns, &from)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  std::copy_n(from, columns, first);
  std::copy_n(from + static_cast<Index>(rows - 1) * columns, columns, last);
  return 0;
}

/// The flow as a single double; nullptr when it does not lie inside the memory space.
double* number(const headrace_task* task, int flow) {
  return inSpace(task, task->flows[flow], sizeof(double)) ? static_cast<double*>(task->flows[flow])
                                                          : nullptr;
}

/// Adds up the flows from `first` on. False when one does not lie inside the memory space.
bool addParts(const headrace_task* task, int first, double* sum) {
  *sum = 0;
  for (int flow = first; flow < task->flow_count; ++flow) {
    const double* part = number(task, flow);
    if (part == nullptr) return false;
    *sum += *part;
  }
  return true;
}

std::int32_t partsSum(const headrace_task* task) {
  if (task->flow_count < 1 || task->param_count != 1) return HEADRACE_BAD_ARGUMENTS;
  double* to = number(task, 0);
  double sum;
  if (to == nullptr || !addParts(task, 1, &sum)) return HEADRACE_OUT_OF_RANGE;
  *to = sum;
  return 0;
}

std::int32_t step(const headrace_task* task) {
  if (task->flow_count < 4 || task->param_count != 2) return HEADRACE_BAD_ARGUMENTS;
  double* alpha = number(task, 0);
  double* minus = number(task, 1);
  double* iterations = number(task, 2);
  const double* rr = number(task, 3);
  double sum;
  if (alpha == nullptr || minus == nullptr || iterations == nullptr || rr == nullptr ||
      !addParts(task, 4, &sum)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  if (*rr <= task->params[0]) {
    *alpha = *minus = 0;
    return 0;
  }
  *iterations += 1;
  if (!(sum > 0) || std::isinf(sum)) return static_cast<std::int32_t>(*iterations);
  *alpha = *rr / sum;
  *minus = -*alpha;
  return 0;
}

std::int32_t turn(const headrace_task* task) {
  if (task->flow_count < 2 || task->param_count != 2) return HEADRACE_BAD_ARGUMENTS;
  double* beta = number(task, 0);
  double* rr = number(task, 1);
  double sum;
  if (beta == nullptr || rr == nullptr || !addParts(task, 2, &sum)) return HEADRACE_OUT_OF_RANGE;
  *beta = 0;
  if (*rr <= task->params[0]) return 0;
  *beta = sum / *rr;
  *rr = sum;
  return 0;
}

template <typename T>
void registerVectors(headrace_registry* registry, const std::string& suffix) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {{"axpby", axpby<T>}, {"five_point", fivePoint<T>}, {"edge_rows", edgeRows<T>}};
  for (const auto& each : kernels) {
    registry->add(registry, (each.name + suffix).c_str(), HEADRACE_KERNEL_HOST, each.kernel);
  }
}

}  // namespace

std::int32_t registerGradientKernels(headrace_registry* registry) {
  registerVectors<double>(registry, "_f64");
  registerVectors<float>(registry, "_f32");
  registry->add(registry, "parts_sum", HEADRACE_KERNEL_HOST, partsSum);
  registry->add(registry, "cg_step", HEADRACE_KERNEL_HOST, step);
  registry->add(registry, "cg_turn", HEADRACE_KERNEL_HOST, turn);
  return 0;
}

}  // namespace headrace
