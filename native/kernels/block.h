// The arguments of the kernel `copy_block`, which copies a block of a column-major matrix into a block of another one
// (scheduler/program/parts/take-over-classes.ts):
//
//   flows: to, from; params: bytes of an element, rows, columns, then of `to` and of `from` the leading dimension and the
//   first element. All but the first are in elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace headrace {

/// A copy of `columns` pieces of `width` bytes. Pieces begin every `toPitch` and `fromPitch` bytes.
struct BlockCopy {
  std::uint8_t* to;
  const std::uint8_t* from;
  std::size_t width;
  std::size_t columns;
  std::size_t toPitch;
  std::size_t fromPitch;
};

/// Checks the arguments. A block without gaps becomes one piece.
inline std::int32_t readBlockCopy(const headrace_task* task, BlockCopy& copy) {
  if (task->flow_count != 2 || task->param_count != 7) return HEADRACE_BAD_ARGUMENTS;
  const double* params = task->params;
  for (int i = 0; i < 7; ++i) {
    if (!(params[i] >= 0)) return HEADRACE_BAD_ARGUMENTS;
  }
  const double each = params[0];
  const double rows = params[1];
  const double columns = params[2];
  const double leads[] = {params[3], params[5]};
  const double firsts[] = {params[4], params[6]};
  std::uint8_t* pointers[2];
  for (int i = 0; i < 2; ++i) {
    if (columns > 1 && leads[i] < rows) return HEADRACE_BAD_ARGUMENTS;
    pointers[i] =
        static_cast<std::uint8_t*>(task->flows[i]) + static_cast<std::size_t>(firsts[i] * each);
    const double span = columns > 0 ? (columns - 1) * leads[i] + rows : 0;
    if (!inSpace(task, pointers[i], span * each)) return HEADRACE_OUT_OF_RANGE;
  }
  const bool isDense = columns == 1 || (leads[0] == rows && leads[1] == rows);
  copy.to = pointers[0];
  copy.from = pointers[1];
  copy.width = static_cast<std::size_t>((isDense ? rows * columns : rows) * each);
  copy.columns = isDense ? 1 : static_cast<std::size_t>(columns);
  copy.toPitch = isDense ? copy.width : static_cast<std::size_t>(leads[0] * each);
  copy.fromPitch = isDense ? copy.width : static_cast<std::size_t>(leads[1] * each);
  return 0;
}

}  // namespace headrace
