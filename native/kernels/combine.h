// Element types and operators of the kernels `reduce_identity` and `reduce_combine`, by their numbers in the tasks' parameters
// (scheduler/program/operator-classes.ts).
#pragma once

#include <cstdint>

namespace headrace {

enum class Element : std::int32_t { f64, f32, i32, u32, u8 };
enum class Operator : std::int32_t { sum, product, min, max };

constexpr std::int32_t kElements = 5;
constexpr std::int32_t kOperators = 4;

/// Bytes of an element of type number `element`; 0 for a number that names no type.
inline std::int64_t elementBytes(double element) {
  constexpr std::int64_t kBytes[kElements] = {8, 4, 4, 4, 1};
  return element >= 0 && element < kElements ? kBytes[static_cast<std::int32_t>(element)] : 0;
}

}  // namespace headrace
