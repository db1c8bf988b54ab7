// Signature and geometry of registered device code: see gpu/launch_rules.h.
#include "gpu/launch_rules.h"

#include <cmath>
#include <cstring>

namespace headrace {

namespace {

constexpr double kGridLimit[3] = {2147483647, 65535, 65535};
constexpr double kBlockLimit[3] = {1024, 1024, 64};

bool extent(const ExtentRule& rule, const headrace_task& task, double low, double high,
            std::uint32_t* result) {
  double value = rule.constant;
  if (rule.param >= 0) {
    if (rule.param >= task.param_count) return false;
    value = std::ceil(task.params[rule.param] / rule.constant);
  }
  if (!(value >= low && value <= high)) return false;
  *result = static_cast<std::uint32_t>(value);
  return true;
}

bool whole(double value, double limit) {
  return value == std::trunc(value) && value >= -limit && value < limit;
}

}  // namespace

bool parseArgumentType(const std::string& text, ArgumentType* type) {
  static const char* const names[] = {"pointer", "f64", "f32", "i32", "i64"};
  for (int i = 0; i < 5; ++i) {
    if (text == names[i]) {
      *type = static_cast<ArgumentType>(i);
      return true;
    }
  }
  return false;
}

std::size_t argumentBytes(ArgumentType type) {
  return type == ArgumentType::f32 || type == ArgumentType::i32 ? 4 : 8;
}

std::int32_t LaunchRules::plan(const headrace_task& task, headrace_launch& launch,
                               const char** why) const {
  std::int32_t nextFlow = 0;
  std::int32_t nextParam = 0;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const ArgumentRule& rule = signature[i];
    const bool pointer = rule.type == ArgumentType::pointer;
    const std::int32_t index = rule.index >= 0 ? rule.index : pointer ? nextFlow++ : nextParam++;
    if (index >= (pointer ? task.flow_count : task.param_count)) {
      *why = pointer ? "the task has fewer flows than the kernel has pointers"
                     : "the task has fewer parameters than the kernel has numbers";
      return HEADRACE_BAD_ARGUMENTS;
    }
    launch.arguments[i] = &launch.storage[i];
    if (pointer) {
      launch.storage[i] = reinterpret_cast<std::uint64_t>(task.flows[index]);
      continue;
    }
    const double value = task.params[index];
    switch (rule.type) {
      case ArgumentType::f64: std::memcpy(&launch.storage[i], &value, 8); break;
      case ArgumentType::f32: {
        const auto single = static_cast<float>(value);
        std::memcpy(&launch.storage[i], &single, 4);
        break;
      }
      case ArgumentType::i32: {
        if (!whole(value, 2147483648.0)) {
          *why = "a parameter of type i32 is not a whole number in its range";
          return HEADRACE_BAD_ARGUMENTS;
        }
        const auto integer = static_cast<std::int32_t>(value);
        std::memcpy(&launch.storage[i], &integer, 4);
        break;
      }
      default: {
        if (!whole(value, 9007199254740992.0)) {
          *why = "a parameter of type i64 is not a whole number below 2^53";
          return HEADRACE_BAD_ARGUMENTS;
        }
        const auto integer = static_cast<std::int64_t>(value);
        std::memcpy(&launch.storage[i], &integer, 8);
      }
    }
  }
  if (nextFlow != 0 && nextFlow != task.flow_count) {
    *why = "the task has more flows than the kernel has pointers";
    return HEADRACE_BAD_ARGUMENTS;
  }
  bool fits = true;
  for (int d = 0; d < 3; ++d) {
    fits = fits && extent(grid[d], task, 0, kGridLimit[d], &launch.grid[d]) &&
           extent(block[d], task, 1, kBlockLimit[d], &launch.block[d]);
  }
  if (!fits || !extent(sharedBytes, task, 0, 1 << 20, &launch.shared_bytes)) {
    *why = "the launch geometry is out of range, or names a parameter that the task has not got";
    return HEADRACE_BAD_ARGUMENTS;
  }
  return 0;
}

}  // namespace headrace
