// The launch of a kernel given as source or device code: its signature and its geometry, as registered.
//
// Invariant: a plan never lets a launch through whose flows or parameters do not fit the signature. It checks that
// integer arguments are whole and in range.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/kernel.h"

namespace headrace {

/// Type of one kernel argument.
enum class ArgumentType : std::uint8_t { pointer, f64, f32, i32, i64 };

/// One kernel argument: a flow's address (pointer) or a parameter. Without an index, pointers take the task's flows in
/// order and the others its parameters in order.
struct ArgumentRule {
  ArgumentRule(ArgumentType type, std::int32_t index = -1) : type(type), index(index) {}
  ArgumentType type;
  std::int32_t index;
};

/// One extent: `constant`, or the parameter divided by `constant` and rounded up.
struct ExtentRule {
  std::int32_t param = -1;
  double constant = 1;
};

struct LaunchRules {
  std::vector<ArgumentRule> signature;
  ExtentRule grid[3];
  ExtentRule block[3];
  ExtentRule sharedBytes{-1, 0};

  /// Fills a launch; 0, or HEADRACE_BAD_ARGUMENTS with `why` set to a text that lives for ever.
  std::int32_t plan(const headrace_task& task, headrace_launch& launch, const char** why) const;
};

/// "pointer", "f64", "f32", "i32", "i64"; false for any other text.
bool parseArgumentType(const std::string& text, ArgumentType* type);
/// Bytes of an argument on a device.
std::size_t argumentBytes(ArgumentType type);

}  // namespace headrace
