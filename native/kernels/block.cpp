// The kernel `copy_block` on the host and on emulated GPUs (kernels/block.h). On GPUs the driver copies
// (gpu/cuda/kernels.cpp).
#include "kernels/block.h"

#include <cstring>

namespace headrace {

namespace {

std::int32_t copyBlock(const headrace_task* task) {
  BlockCopy copy;
  const std::int32_t code = readBlockCopy(task, copy);
  if (code != 0) return code;
  for (std::size_t i = 0; i < copy.columns; ++i) {
    std::memcpy(copy.to + i * copy.toPitch, copy.from + i * copy.fromPitch, copy.width);
  }
  return 0;
}

}  // namespace

std::int32_t registerBlockKernels(headrace_registry* registry) {
  registry->add(registry, "copy_block", HEADRACE_KERNEL_HOST, copyBlock);
  return 0;
}

}  // namespace headrace
