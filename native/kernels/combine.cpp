// Kernels of reductions (scheduler/program/reductions.ts):
//
//   reduce_identity  flows: to; params: element, count, value. to[i] = value
//   reduce_combine   flows: to, from; params: element, count, operator. to[i] = to[i] op from[i]
//
// Integers wrap. A NaN operand makes the result a NaN, also for min and max, and every NaN result has the same bits;
// -0 is less than +0 (IEEE 754-2019, 9.6). native/gpu/cuda/basic.cu does the same bit for bit.
#include "kernels/combine.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/kernels.h"

namespace headrace {

namespace {

/// Integers of the width of T on which sums and products wrap without overflow.
template <typename T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T, std::uint32_t>;

template <typename T, Operator kOperator>
T combined(T left, T right) {
  if constexpr (kOperator == Operator::sum || kOperator == Operator::product) {
    const auto a = static_cast<Wrapping<T>>(left);
    const auto b = static_cast<Wrapping<T>>(right);
    const auto result = static_cast<T>(kOperator == Operator::sum ? a + b : a * b);
    if constexpr (std::is_floating_point_v<T>) {
      return result == result ? result : std::numeric_limits<T>::quiet_NaN();
    }
    return result;
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (left != left || right != right) return std::numeric_limits<T>::quiet_NaN();
      if (left == right) {
        return std::signbit(left) == (kOperator == Operator::min) ? left : right;
      }
    }
    return (left < right) == (kOperator == Operator::min) ? left : right;
  }
}

template <typename T, Operator kOperator>
void combineAll(void* to, const void* from, std::int64_t count) {
  auto* a = static_cast<T*>(to);
  const auto* b = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) a[i] = combined<T, kOperator>(a[i], b[i]);
}

template <typename T>
std::int32_t combineAs(double op, void* to, const void* from, std::int64_t count) {
  switch (static_cast<Operator>(static_cast<std::int32_t>(op))) {
    case Operator::sum: combineAll<T, Operator::sum>(to, from, count); return 0;
    case Operator::product: combineAll<T, Operator::product>(to, from, count); return 0;
    case Operator::min: combineAll<T, Operator::min>(to, from, count); return 0;
    case Operator::max: combineAll<T, Operator::max>(to, from, count); return 0;
  }
  return HEADRACE_BAD_ARGUMENTS;
}

template <typename T>
std::int32_t setAll(void* to, std::int64_t count, double value) {
  auto* a = static_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) a[i] = static_cast<T>(value);
  return 0;
}

std::int32_t identity(const headrace_task* task) {
  if (task->flow_count != 1 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  const double* params = task->params;
  const std::int64_t each = elementBytes(params[0]);
  if (each == 0) return HEADRACE_BAD_ARGUMENTS;
  if (!inSpace(task, task->flows[0], params[1] * each)) return HEADRACE_OUT_OF_RANGE;
  const auto count = static_cast<std::int64_t>(params[1]);
  switch (static_cast<Element>(static_cast<std::int32_t>(params[0]))) {
    case Element::f64: return setAll<double>(task->flows[0], count, params[2]);
    case Element::f32: return setAll<float>(task->flows[0], count, params[2]);
    case Element::i32: return setAll<std::int32_t>(task->flows[0], count, params[2]);
    case Element::u32: return setAll<std::uint32_t>(task->flows[0], count, params[2]);
    case Element::u8: return setAll<std::uint8_t>(task->flows[0], count, params[2]);
  }
  return HEADRACE_BAD_ARGUMENTS;
}

std::int32_t combine(const headrace_task* task) {
  if (task->flow_count != 2 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  const double* params = task->params;
  const std::int64_t each = elementBytes(params[0]);
  if (each == 0 || !(params[2] >= 0 && params[2] < kOperators)) return HEADRACE_BAD_ARGUMENTS;
  void* to = task->flows[0];
  const void* from = task->flows[1];
  const double bytes = params[1] * each;
  if (!inSpace(task, to, bytes) || !inSpace(task, from, bytes)) return HEADRACE_OUT_OF_RANGE;
  const auto count = static_cast<std::int64_t>(params[1]);
  switch (static_cast<Element>(static_cast<std::int32_t>(params[0]))) {
    case Element::f64: return combineAs<double>(params[2], to, from, count);
    case Element::f32: return combineAs<float>(params[2], to, from, count);
    case Element::i32: return combineAs<std::int32_t>(params[2], to, from, count);
    case Element::u32: return combineAs<std::uint32_t>(params[2], to, from, count);
    case Element::u8: return combineAs<std::uint8_t>(params[2], to, from, count);
  }
  return HEADRACE_BAD_ARGUMENTS;
}

}  // namespace

std::int32_t registerCombineKernels(headrace_registry* registry) {
  registry->add(registry, "reduce_identity", HEADRACE_KERNEL_HOST, identity);
  registry->add(registry, "reduce_combine", HEADRACE_KERNEL_HOST, combine);
  return 0;
}

}  // namespace headrace
