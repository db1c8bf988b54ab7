// The basic kernels on CUDA GPUs: same names, flows and parameters as on the host (kernels/basic.cpp), as embedded PTX
// (native/gpu/cuda/basic.cu). Two exist here only, for tests of the runtime:
//
//   await_word       flows: word, seen; params: value [, blocks, threads]. Busy until the int64 word equals value (20 s
//                    at most), then seen = value or -1
//   illegal_address  writes to an illegal address: the device is lost
//
// `taskbench` takes up to 16 inputs here and reports a wrong one through a word of pinned host memory.
#include <cstring>

#include "gpu/cuda/kernels_ptx.h"
#include "gpu/device.h"
#include "kernels/block.h"
#include "kernels/combine.h"
#include "kernels/kernels.h"

namespace headrace {

namespace {

constexpr std::uint32_t kBlock = 256;
/// Enough blocks to fill any GPU; the kernels go through longer data in steps.
constexpr double kMaxBlocks = 4096;

/// Puts arguments into a launch, by position.
class Arguments {
 public:
  explicit Arguments(headrace_launch* launch) : launch_(launch) {}
  Arguments& pointer(const void* value) { return add(&value, sizeof value); }
  Arguments& integer(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return add(&whole, sizeof whole);
  }
  Arguments& number(double value) { return add(&value, sizeof value); }
  template <typename Struct>
  Arguments& structure(const Struct& value) {
    return add(&value, sizeof value);
  }

 private:
  Arguments& add(const void* bytes, std::size_t count) {
    std::memcpy(&launch_->storage[word_], bytes, count);
    launch_->arguments[next_++] = &launch_->storage[word_];
    word_ += (count + 7) / 8;
    return *this;
  }
  headrace_launch* launch_;
  int next_ = 0;
  std::size_t word_ = 0;
};

void shape(headrace_launch* launch, double blocks, double threads) {
  launch->grid[0] = static_cast<std::uint32_t>(blocks);
  launch->block[0] = static_cast<std::uint32_t>(threads);
  launch->grid[1] = launch->grid[2] = launch->block[1] = launch->block[2] = 1;
}

void shapeFor(headrace_launch* launch, double count) {
  const double blocks = (count + kBlock - 1) / kBlock;
  shape(launch, blocks < kMaxBlocks ? blocks : kMaxBlocks, kBlock);
}

std::int32_t empty(const headrace_task*, headrace_launch* launch) {
  shape(launch, 1, 1);
  return 0;
}

std::int32_t fillF64(const headrace_task* task, headrace_launch* launch) {
  if (task->flow_count < 1 || task->param_count < 2) return HEADRACE_BAD_ARGUMENTS;
  if (!inSpace(task, task->flows[0], task->params[0] * 8)) return HEADRACE_OUT_OF_RANGE;
  shapeFor(launch, task->params[0]);
  Arguments(launch).pointer(task->flows[0]).integer(task->params[0]).number(task->params[1]);
  return 0;
}

std::int32_t addF64(const headrace_task* task, headrace_launch* launch) {
  if (task->flow_count < 2 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const double count = task->params[0];
  if (!inSpace(task, task->flows[0], count * 8) || !inSpace(task, task->flows[1], count * 8)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  shapeFor(launch, count);
  Arguments(launch)
      .pointer(task->flows[0])
      .pointer(task->flows[1])
      .integer(count)
      .number(task->param_count > 1 ? task->params[1] : 1);
  return 0;
}

std::int32_t identity(const headrace_task* task, headrace_launch* launch) {
  if (task->flow_count != 1 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  const double* params = task->params;
  const auto each = static_cast<double>(elementBytes(params[0]));
  if (each == 0) return HEADRACE_BAD_ARGUMENTS;
  if (!inSpace(task, task->flows[0], params[1] * each)) return HEADRACE_OUT_OF_RANGE;
  shapeFor(launch, params[1]);
  Arguments(launch).pointer(task->flows[0]).integer(params[1]).integer(params[0]).number(params[2]);
  return 0;
}

std::int32_t combine(const headrace_task* task, headrace_launch* launch) {
  if (task->flow_count != 2 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  const double* params = task->params;
  const auto each = static_cast<double>(elementBytes(params[0]));
  if (each == 0 || !(params[2] >= 0 && params[2] < kOperators)) return HEADRACE_BAD_ARGUMENTS;
  const double bytes = params[1] * each;
  if (!inSpace(task, task->flows[0], bytes) || !inSpace(task, task->flows[1], bytes)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  shapeFor(launch, params[1]);
  Arguments(launch)
      .pointer(task->flows[0])
      .pointer(task->flows[1])
      .integer(params[1])
      .integer(params[0])
      .integer(params[2]);
  return 0;
}

std::int32_t spin(const headrace_task* task, headrace_launch* launch) {
  if (task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  shape(launch, 1, 1);
  Arguments(launch).number(task->params[0]);
  return 0;
}

std::int32_t computeBoundPlan(const headrace_task* task, headrace_launch* launch) {
  if (task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  shape(launch, 1, 64);
  Arguments(launch).integer(task->params[0]).pointer(task->space_base);
  return 0;
}

std::int32_t awaitWord(const headrace_task* task, headrace_launch* launch) {
  if (task->flow_count < 2 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  if (!inSpace(task, task->flows[0], 8) || !inSpace(task, task->flows[1], 8)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  shape(launch, task->param_count > 1 ? task->params[1] : 1,
        task->param_count > 2 ? task->params[2] : 1);
  Arguments(launch).pointer(task->flows[0]).pointer(task->flows[1]).integer(task->params[0]);
  return 0;
}

constexpr std::int32_t kTaskBenchParams = 5;
constexpr std::int32_t kTaskBenchInputs = 16;

/// As in basic.cu.
struct TaskBenchInputs {
  const void* data[kTaskBenchInputs];
  std::int32_t columns[kTaskBenchInputs];
};

std::int32_t taskBench(const headrace_task* task, headrace_launch* launch) {
  const std::int32_t count = task->flow_count - 1;
  if (count < 0 || count > kTaskBenchInputs || task->param_count != kTaskBenchParams + count) {
    return HEADRACE_BAD_ARGUMENTS;
  }
  const double bytes = task->params[3];
  TaskBenchInputs inputs{};
  if (!inSpace(task, task->flows[0], bytes)) return HEADRACE_OUT_OF_RANGE;
  for (std::int32_t i = 0; i < count; ++i) {
    if (!inSpace(task, task->flows[i + 1], bytes)) return HEADRACE_OUT_OF_RANGE;
    inputs.data[i] = task->flows[i + 1];
    inputs.columns[i] = static_cast<std::int32_t>(task->params[kTaskBenchParams + i]);
  }
  GpuStream& stream = *currentStream();
  std::int32_t* outcome = takeOutcome(stream);
  if (outcome == nullptr) return HEADRACE_DRIVER_ERROR;
  const double epoch = task->params[2] * 4294967296.0;
  shape(launch, 1, 64);
  Arguments(launch)
      .pointer(task->flows[0])
      .integer(bytes / 16)
      .integer(epoch + task->params[0])
      .integer(task->params[1])
      .integer(task->params[4])
      .integer(count)
      .pointer(outcome)
      .structure(inputs);
  reportLater(stream, outcome);
  return 0;
}

std::int32_t illegalAddress(const headrace_task*, headrace_launch* launch) {
  shape(launch, 1, 1);
  Arguments(launch).integer(64);
  return 0;
}

std::int32_t copyBytes(const headrace_task* task) {
  if (task->flow_count < 2 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const double bytes = task->params[0];
  if (!inSpace(task, task->flows[0], bytes) || !inSpace(task, task->flows[1], bytes)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  if (bytes == 0) return 0;
  GpuStream* stream = currentStream();
  const int code =
      stream->device->api->copyOnDevice(reinterpret_cast<std::uint64_t>(task->flows[0]),
                                        reinterpret_cast<std::uint64_t>(task->flows[1]),
                                        static_cast<std::size_t>(bytes), stream->stream);
  if (code == 0) return 0;
  return stream->device->fail(code, "cuMemcpyDtoDAsync") == DriverStatus::lost
             ? HEADRACE_DEVICE_LOST
             : HEADRACE_DRIVER_ERROR;
}

std::int32_t copyBlock(const headrace_task* task) {
  BlockCopy copy;
  const std::int32_t bad = readBlockCopy(task, copy);
  if (bad != 0) return bad;
  if (copy.width == 0 || copy.columns == 0) return 0;
  GpuStream* stream = currentStream();
  const GpuApi& api = *stream->device->api;
  const auto to = reinterpret_cast<std::uint64_t>(copy.to);
  const auto from = reinterpret_cast<std::uint64_t>(copy.from);
  const bool isDense = copy.columns == 1;
  const int code = isDense ? api.copyOnDevice(to, from, copy.width, stream->stream)
                           : api.copyBlock(to, copy.toPitch, from, copy.fromPitch, copy.width,
                                           copy.columns, stream->stream);
  if (code == 0) return 0;
  return stream->device->fail(code, isDense ? "cuMemcpyDtoDAsync" : "cuMemcpy2DAsync") ==
                 DriverStatus::lost
             ? HEADRACE_DEVICE_LOST
             : HEADRACE_DRIVER_ERROR;
}

std::int32_t failKernel(const headrace_task* task) {
  return task->param_count < 1 ? HEADRACE_BAD_ARGUMENTS
                               : static_cast<std::int32_t>(task->params[0]);
}

}  // namespace

std::int32_t registerCudaBasicKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    const char* symbol;
    headrace_plan plan;
  } kernels[] = {
      {"empty", "headrace_empty", empty},
      {"fill_f64", "headrace_fill_f64", fillF64},
      {"add_f64", "headrace_add_f64", addF64},
      {"reduce_identity", "headrace_identity", identity},
      {"reduce_combine", "headrace_combine", combine},
      {"spin", "headrace_spin", spin},
      {"compute_bound", "headrace_compute_bound", computeBoundPlan},
      {"await_word", "headrace_await_word", awaitWord},
      {"illegal_address", "headrace_illegal_address", illegalAddress},
      {"taskbench", "headrace_taskbench", taskBench},
  };
  for (const auto& each : kernels) {
    registry->add_device(registry, each.name, HEADRACE_KERNEL_CUDA, kBasicPtx, sizeof kBasicPtx,
                         each.symbol, each.plan);
  }
  for (const std::int32_t kind : {HEADRACE_KERNEL_CUDA, HEADRACE_KERNEL_HIP}) {
    registry->add(registry, "copy_bytes", kind, copyBytes);
    registry->add(registry, "copy_block", kind, copyBlock);
    registry->add(registry, "fail", kind, failKernel);
  }
  return 0;
}

}  // namespace headrace
