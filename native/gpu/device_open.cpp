// Opening and closing a GPU, and running a function on its thread.
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "core/core_error.h"
#include "gpu/device.h"
#include "gpu/device_thread.h"
#include "gpu/quiescent_section.h"

namespace headrace {

namespace {

/// A slab without a given size is a multiple of this.
constexpr std::uint64_t kSlabUnit = std::uint64_t{2} << 20;
/// How long loading a kernel waits for others to end (nanoseconds).
constexpr std::int64_t kQuietPatience = 10'000'000'000;
/// Commands that each ring submits between two checks for that moment.
constexpr int kQuietTurn = 16;

/// Nine tenths of what is free, or of a process's share of the device. The rest is for libraries' workspaces and other
/// programs. A process that comes later still finds its share free.
std::uint64_t defaultBytes(const DeviceDescription& description, std::int32_t sharers) {
  const std::uint64_t bytes =
      std::min(description.freeBytes, description.totalBytes / std::max(sharers, 1));
  return bytes / 10 * 9 / kSlabUnit * kSlabUnit;
}

}  // namespace

DeviceThread::DeviceThread(Runtime& runtime, const DriverTable& driver, std::int32_t gpu,
                           std::int32_t ordinal)
    : runtime_(runtime), driver_(driver), gpu_(gpu), ordinal_(ordinal), stolen_(runtime.stolen) {
  thread_ = std::thread([this] { run(); });
}

DeviceThread::~DeviceThread() {
  join();
  closeDevice();
}

void DeviceThread::call(const std::function<void()>& function) {
  struct Result {
    bool done = false;
    std::exception_ptr error;
  } result;
  std::unique_lock<std::mutex> guard(callLock_);
  calls_.emplace_back([&] {
    std::exception_ptr error;
    try {
      function();
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard<std::mutex> inner(callLock_);
    result.error = std::move(error);  // the caller's alone from here: it also frees it
    result.done = true;
    callDone_.notify_all();
  });
  callsWaiting_.store(true, std::memory_order_seq_cst);
  sleeper_.unpark();
  callDone_.wait(guard, [&] { return result.done; });
  if (result.error) std::rethrow_exception(result.error);
}

void DeviceThread::callQuiet(const std::function<void()>& function) {
  callQuiet(
      [&] {
        function();
        return true;
      },
      kQuietPatience,
      "kernels have been running for 10 s, and a kernel can be loaded only while none "
      "runs: use its class once before");
}

void DeviceThread::callQuiet(const std::function<bool()>& function, std::int64_t patience,
                             const char* late) {
  call([&] {
    const std::int64_t limit = now() + patience;
    for (;;) {
      {
        const QuiescentSection pause;
        if (pause.holds() && function()) return;
      }
      if (now() > limit) {
        throw CoreError("DRIVER", late);
      }
      if (!serve(kQuietTurn)) sched_yield();
    }
  });
}

bool DeviceThread::runCalls() {
  if (!callsWaiting_.load(std::memory_order_acquire)) return false;
  std::deque<std::function<void()>> calls;
  {
    std::lock_guard<std::mutex> guard(callLock_);
    callsWaiting_.store(false, std::memory_order_relaxed);
    calls.swap(calls_);
  }
  turn_.take();
  if (bind(*this) != DriverStatus::ok) lost_ = true;
  for (auto& function : calls) function();
  turn_.giveBack();
  return !calls.empty();
}

void DeviceThread::openDevice(std::uint64_t bytes, std::int32_t sharers, Space& space) {
  DeviceDescription description{};
  char reason[256] = "";
  DriverStatus status = driver_.open(ordinal_, &device_, &description, reason, sizeof reason);
  if (status != DriverStatus::ok) {
    device_ = nullptr;
    throw CoreError("DRIVER_UNAVAILABLE", std::string("cannot open ") + driver_.name + " GPU " +
                                              std::to_string(ordinal_) + ": " + reason);
  }
  if (bytes == 0) bytes = defaultBytes(description, sharers);
  status = bind(*this);
  if (status == DriverStatus::ok) status = driver_.memoryAlloc(device_, bytes, &slab_);
  if (status != DriverStatus::ok) {
    slab_ = 0;
    throw CoreError(status == DriverStatus::outOfMemory ? "OUT_OF_MEMORY" : "DRIVER",
                    "cannot allocate " + std::to_string(bytes) + " bytes on " + driver_.name +
                        " GPU " + std::to_string(ordinal_) + ": " + driver_.errorText(device_) +
                        (status == DriverStatus::outOfMemory ? ". Ask for less gpuMemory" : ""));
  }
  shared_ = driver_.memoryShare(device_, slab_, &share_) == DriverStatus::ok;
  space_ = &space;
  space.kind = driver_.spaceKind;
  space.base = slab_;
  space.bytes = bytes;
  space.device = device_;
  space.name = description.name;
  space.uuid = description.uuid;
  space.flushOptions = description.flushOptions;
  space.writeOrdering = description.writeOrdering;
}

void DeviceThread::openQueue(Queue& queue) {
  auto stream = std::make_unique<StreamQueue>(queue);
  stream->device = gpu_;
  stream->thread = this;
  const StreamPurpose purpose = queue.kind == QueueKind::compute ? StreamPurpose::compute
                                : queue.kind == QueueKind::h2d   ? StreamPurpose::hostToDevice
                                : queue.kind == QueueKind::d2h   ? StreamPurpose::deviceToHost
                                                                 : StreamPurpose::peer;
  DriverStatus status = driver_.streamCreate(device_, purpose, &stream->stream);
  for (StreamSlot& slot : stream->slots) {
    if (status == DriverStatus::ok) status = driver_.eventCreate(device_, false, &slot.plain);
  }
  if (status != DriverStatus::ok) {
    throw CoreError("DRIVER", std::string("cannot create streams and events on ") + driver_.name +
                                  " GPU " + std::to_string(ordinal_) + ": " +
                                  driver_.errorText(device_));
  }
  queue.setOwner(&sleeper_);
  queue.stream = stream.get();
  streams_.push_back(std::move(stream));
}

void DeviceThread::registerHost(void* pointer, std::uint64_t bytes, std::uint64_t reserve) {
  const DriverStatus status = driver_.hostRegister(device_, pointer, bytes, reserve);
  if (status == DriverStatus::ok) {
    registered_ = pointer;
  } else if (status != DriverStatus::unsupported) {
    throw CoreError("OUT_OF_MEMORY", "cannot page-lock " + std::to_string(bytes) +
                                         " bytes of host memory: " + driver_.errorText(device_));
  }
}

bool DeviceThread::enablePeer(const DeviceThread& peer) {
  return driver_.enablePeer(device_, peer.device_) == DriverStatus::ok;
}

void DeviceThread::loadFunctions() {
  const std::int32_t variant = space_->kind == SpaceKind::cuda  ? HEADRACE_KERNEL_CUDA
                               : space_->kind == SpaceKind::hip ? HEADRACE_KERNEL_HIP
                                                                : HEADRACE_KERNEL_HOST;
  const std::int32_t count = runtime_.registry.size();
  for (auto id = static_cast<std::int32_t>(functions_.size()); id < count; ++id) {
    const KernelEntry& entry = *runtime_.registry.entry(id);
    const DeviceCode& code = entry.code[variant];
    FunctionHandle function = nullptr;
    const bool loaded = code.image == nullptr ||
                        driver_.functionLoad(device_, code.image, code.imageBytes,
                                             code.symbol.c_str(), &function) == DriverStatus::ok;
    // Code that an earlier core compiled for its own GPUs need not fit these: then the kernel is unknown here.
    if (!loaded && code.rules == nullptr) {
      throw CoreError("KERNEL_LIBRARY", "cannot load device code of kernel " + entry.name + ": " +
                                            driver_.errorText(device_));
    }
    functions_.push_back(function);
  }
}

void DeviceThread::tryFunctions(const std::string& image,
                                const std::vector<Registry::DeviceKernel>& kernels) {
  for (const Registry::DeviceKernel& kernel : kernels) {
    FunctionHandle function = nullptr;
    DriverStatus status =
        driver_.functionLoad(device_, image.data(), image.size(), kernel.symbol.c_str(), &function);
    if (status == DriverStatus::ok) status = gpuCheckSignature(device_, function, *kernel.rules);
    if (status != DriverStatus::ok) {
      throw CoreError("KERNEL_SOURCE", "kernel " + kernel.name + " on GPU " +
                                           std::to_string(ordinal_) + ": " +
                                           driver_.errorText(device_));
    }
  }
}

void DeviceThread::forgetImage(const std::string& image) { gpuForgetImage(device_, image.data()); }

void DeviceThread::join() {
  ending_.store(true, std::memory_order_seq_cst);
  sleeper_.unpark();
  if (thread_.joinable()) thread_.join();
}

void DeviceThread::closeDevice() {
  if (device_ == nullptr) return;
  driver_.bind(device_);
  freeGraphs(true);
  graphs_.clear();
  for (auto& stream : streams_) {
    for (StreamSlot& slot : stream->slots) {
      for (EventHandle event : {slot.plain, slot.begin, slot.end}) {
        if (event != nullptr) driver_.eventDestroy(event);
      }
    }
    if (stream->stream != nullptr) driver_.streamDestroy(stream->stream);
    stream->queue.stream = nullptr;
  }
  streams_.clear();
  if (registered_ != nullptr) driver_.hostUnregister(device_, registered_);
  if (!keepsShared_ || !shared_ || share_.ipcBytes == 0) {
    if (slab_ != 0) driver_.memoryFree(device_, slab_);
    driver_.close(device_);
  }
  device_ = nullptr;
  shared_ = false;
}

}  // namespace headrace
