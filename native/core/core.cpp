// Opening and closing a core: see core/core.h.
#include "core/core.h"

#include <sched.h>

#include <algorithm>

#include "core/clock.h"
#include "gpu/cuda/tiles.h"
#include "gpu/device.h"
#include "kernels/blas.h"
#include "kernels/kernels.h"

namespace headrace {

namespace {

/// A record has 16 bits for the queue that it waits for.
constexpr std::int32_t kMostLanes = 4096;

void check(const CoreOptions& options, const std::vector<QueueOptions>& queues) {
  const std::uint32_t records = options.ringRecords;
  if (records < 16 || records > (1u << 24) || (records & (records - 1)) != 0) {
    throw CoreError("INVALID_OPTION", "ringRecords must be a power of two of at least 16, not " +
                                          std::to_string(records));
  }
  if (options.workers < 0 || options.scriptWorkers < 0 || options.gpus < 0 ||
      options.firstGpu < 0 || options.gpus > 32 ||
      (options.gpus > 0 && options.computeStreams < 1)) {
    throw CoreError("INVALID_OPTION",
                    "workers, scriptWorkers and gpus must not be negative (at most 32 GPUs), and a "
                    "GPU needs at "
                    "least one compute stream");
  }
  if (options.lanes < 0 || options.lanes > kMostLanes) {
    throw CoreError("INVALID_OPTION", "lanes must lie between 0 and " + std::to_string(kMostLanes));
  }
  if (options.pinnedBytes > options.hostBytes) {
    throw CoreError("INVALID_OPTION", "pinnedBytes must not exceed hostBytes");
  }
  const auto expected = Core::queuesOf(options);
  if (queues.size() != expected.size() || queues.empty()) {
    throw CoreError("INVALID_OPTION", "the queues do not fit the options");
  }
}

/// Looks at the doorbell between two readings of the clock.
constexpr int kLooks = 64;

std::int64_t nanosecondsOf(double microseconds) {
  return static_cast<std::int64_t>(std::min(std::max(microseconds, 0.0), 1e12) * 1000);
}

/// Cores that this process may use.
std::int32_t usableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// Executes commands of free worker queues until `rung()`, until the time is over, or until there have been none for a
/// moment. False then, if there were none at all.
template <typename Rung>
bool serveQueues(QueueOwnership& ownership, Executor& executor, std::int64_t until, Rung rung) {
  // A worker that will step aside first ends its present record.
  constexpr std::int64_t kPatience = 200'000;
  bool served = false;
  Queue* held = nullptr;
  std::int64_t idleSince = 0;
  for (std::uint32_t i = 1;; ++i) {
    if (rung()) {
      served = true;
      break;
    }
    if (held != nullptr && executor.canExecute()) {
      executor.execute();
      served = true;
      idleSince = 0;
      // Records that are worth serving are short: a clock reading for each would cost too much.
      if (i % 8 == 0 && now() >= until) break;
      continue;
    }
    Queue* other = ownership.take(nullptr);
    if (other != nullptr) {
      if (held != nullptr) {
        executor.end();
        ownership.giveBack(held);
      }
      executor.begin(*other);
      held = other;
      continue;
    }
    const std::int64_t time = now();
    if (idleSince == 0) idleSince = time;
    const bool hopeless = !ownership.hasFree() && !ownership.crowded();
    if (hopeless || time >= until || time - idleSince >= kPatience) break;
    // The worker that will step aside may be waiting for this core.
    sched_yield();
  }
  if (held != nullptr) {
    executor.end();
    ownership.giveBack(held);
  }
  return served;
}

void ringFromOutside(void* self) {
  Doorbell& doorbell = static_cast<Runtime*>(self)->doorbell;
  if (doorbell.engineSleeps()) doorbell.ring();
}

}  // namespace

std::vector<QueueOptions> Core::queuesOf(const CoreOptions& options) {
  std::vector<QueueOptions> queues;
  for (std::int32_t i = 0; i < options.workers; ++i) {
    queues.push_back({QueueKind::worker, 0, -1, nullptr, nullptr});
  }
  for (std::int32_t gpu = 1; gpu <= options.gpus; ++gpu) {
    for (std::int32_t i = 0; i < options.computeStreams; ++i) {
      queues.push_back({QueueKind::compute, gpu, -1, nullptr, nullptr});
    }
    queues.push_back({QueueKind::h2d, gpu, -1, nullptr, nullptr});
    queues.push_back({QueueKind::d2h, gpu, -1, nullptr, nullptr});
    for (std::int32_t peer = 1; peer <= options.gpus; ++peer) {
      if (peer != gpu) queues.push_back({QueueKind::peer, gpu, peer, nullptr, nullptr});
    }
  }
  for (std::int32_t i = 0; i < options.scriptWorkers; ++i) {
    queues.push_back({QueueKind::script, 0, -1, nullptr, nullptr});
  }
  for (std::int32_t i = 0; i < options.lanes; ++i) {
    queues.push_back({QueueKind::lane, 0, -1, nullptr, nullptr});
  }
  return queues;
}

Core::Core(const CoreOptions& options, const std::vector<QueueOptions>& queues,
           std::int32_t* control, std::int32_t* shared)
    : runtime_(reinterpret_cast<Word*>(shared), options.cores > 0 ? options.cores : usableCores(),
               options.spinNanoseconds),
      externalDoorbell_{ringFromOutside, &runtime_},
      stolen_(runtime_.stolen) {
  check(options, queues);
  try {
    host_ = std::make_shared<HostMemory>(options.hostBytes);
  } catch (const std::runtime_error& error) {
    throw CoreError("OUT_OF_MEMORY", error.what());
  }
  // Sized once: threads keep pointers into it.
  runtime_.spaces.resize(static_cast<std::size_t>(options.gpus) + 1);
  Space& host = runtime_.spaces[0];
  host.kind = SpaceKind::host;
  host.base = reinterpret_cast<std::uint64_t>(host_->data());
  host.bytes = options.hostBytes;
  host.name = "host";
  std::int32_t index = 0;
  for (const QueueOptions& queue : queues) {
    auto* words = reinterpret_cast<Word*>(control) + std::ptrdiff_t{index} * Control::words;
    runtime_.queues.push_back(std::make_unique<Queue>(index, queue.kind, queue.space, queue.peer,
                                                      queue.ring, queue.times, options.ringRecords,
                                                      words, runtime_.shared, &runtime_.doorbell));
    ++index;
  }
  if (options.lanes > 0) lanes_ = std::make_unique<Lanes>(runtime_, index - options.lanes);
  try {
    if (options.gpus > 0) openDevices(options);
    for (auto& queue : runtime_.queues) {
      if (queue->kind == QueueKind::worker) {
        workers_.push_back(std::make_unique<Worker>(runtime_, *queue));
      } else if (queue->kind == QueueKind::script) {
        scriptPorts_.push_back(std::make_unique<ScriptPort>(runtime_, *queue));
      }
    }
    runtime_.ownership.complete();
    executor_ = std::make_unique<Executor>(runtime_, stolen_);
    for (auto& worker : workers_) worker->start();
  } catch (...) {
    close(true);
    throw;
  }
}

Core::~Core() { close(true); }

void Core::openDevices(const CoreOptions& options) {
  const DriverTable* driver = findDriver(options.driver.c_str());
  if (driver == nullptr) {
    throw CoreError("INVALID_OPTION", "there is no driver '" + options.driver + "'");
  }
  if (options.checked) enableDriverChecks();
  std::int32_t found = 0;
  char reason[256] = "";
  if (driver->probe(&found, reason, sizeof reason) != DriverStatus::ok) {
    throw CoreError("DRIVER_UNAVAILABLE", options.driver + ": " + reason);
  }
  if (found < options.gpus) {
    throw CoreError("DRIVER_UNAVAILABLE", std::to_string(options.gpus) + " GPUs were asked for, " +
                                              options.driver + " has " + std::to_string(found));
  }
  const std::int32_t sharers = (options.gpuRanks * options.gpus + found - 1) / found;
  for (std::int32_t gpu = 0; gpu < options.gpus; ++gpu) {
    const std::int32_t ordinal = (options.firstGpu + gpu) % found;
    devices_.push_back(std::make_unique<DeviceThread>(runtime_, *driver, gpu, ordinal));
    DeviceThread& device = *devices_.back();
    device.call([&] { device.openDevice(options.gpuBytes, sharers, runtime_.spaces[gpu + 1]); });
  }
  tilesAsked_.assign(devices_.size(), false);
  peers_.assign(static_cast<std::size_t>(options.gpus) * options.gpus, false);
  for (std::int32_t gpu = 0; gpu < options.gpus; ++gpu) {
    DeviceThread& device = *devices_[gpu];
    device.call([&] {
      if (gpu == 0) device.registerHost(host_->data(), options.pinnedBytes, options.hostBytes);
      for (std::int32_t peer = 0; peer < options.gpus; ++peer) {
        if (peer != gpu) peers_[gpu * options.gpus + peer] = device.enablePeer(*devices_[peer]);
      }
      for (auto& queue : runtime_.queues) {
        if (queue->kind != QueueKind::worker && queue->space == gpu + 1) device.openQueue(*queue);
      }
      device.loadFunctions();
    });
  }
}

/// Libraries are found and warmed up when a program asks for the kernels that use them, never on the hot path.
void Core::prepareTileKernels() {
  blasReport();
  for (std::size_t gpu = 0; gpu < devices_.size() && !closed_; ++gpu) {
    if (runtime_.spaces[gpu + 1].kind != SpaceKind::cuda) continue;
    DeviceThread& device = *devices_[gpu];
    if (tilesAsked_[gpu]) continue;
    device.callQuiet([&] {
      if (prepareTiles(device.device()) != DriverStatus::outOfMemory) return;
      throw CoreError("OUT_OF_MEMORY",
                      "no memory for the workspaces of cuBLAS and cuSOLVER on GPU " +
                          std::to_string(gpu) + ": ask for less gpuMemory");
    });
    tilesAsked_[gpu] = true;
  }
}

std::int32_t Core::kernel(const std::string& name, std::int32_t space) {
  if (isTileKernel(name.c_str())) prepareTileKernels();
  if (space >= 0) {
    const Space* on = runtime_.space(space);
    return on == nullptr ? -1 : runtime_.registry.find(name, on->kind);
  }
  return runtime_.registry.find(name, -1);
}

void Core::loadKernels(const std::string& path, std::vector<std::string>& names) {
  try {
    runtime_.registry.load(path, names);
  } catch (const std::runtime_error& error) {
    throw CoreError("KERNEL_LIBRARY", error.what());
  }
  for (auto& device : devices_) device->callQuiet([&] { device->loadFunctions(); });
}

void Core::compileKernels(const KernelSource& source, std::vector<std::string>& names) {
  std::vector<const GpuDevice*> gpus;
  for (std::size_t gpu = 0; gpu < devices_.size() && !closed_; ++gpu) {
    if (runtime_.spaces[gpu + 1].kind != SpaceKind::cuda) continue;
    gpus.push_back(static_cast<const GpuDevice*>(devices_[gpu]->device()));
  }
  if (gpus.empty()) {
    throw CoreError("KERNEL_SOURCE", source.name + ": CUDA kernels need a core with CUDA GPUs");
  }
  const auto architecture = [](const GpuDevice* gpu) { return gpu->major * 10 + gpu->minor; };
  const auto [oldest, newest] = std::minmax_element(
      gpus.begin(), gpus.end(),
      [&](const GpuDevice* a, const GpuDevice* b) { return architecture(a) < architecture(b); });
  CompiledKernels compiled = headrace::compileKernels(
      source, (*oldest)->major, (*oldest)->minor, architecture(*oldest) == architecture(*newest));
  // Kept for the life of the process: ids are never taken back.
  auto image = std::make_unique<const std::string>(std::move(compiled.image));
  std::vector<Registry::DeviceKernel> kernels;
  for (std::size_t i = 0; i < source.kernels.size(); ++i) {
    const KernelDeclaration& declared = source.kernels[i];
    kernels.push_back(
        {declared.name, compiled.symbols[i], std::make_shared<const LaunchRules>(declared.rules)});
  }
  // Code that does not load or does not fit its declaration must not get a number.
  try {
    for (auto& device : devices_) {
      device->callQuiet([&] { device->tryFunctions(*image, kernels); });
    }
    runtime_.registry.addDeviceCode(HEADRACE_KERNEL_CUDA, image, kernels, names);
  } catch (const std::runtime_error& error) {
    for (auto& device : devices_) device->call([&] { device->forgetImage(*image); });
    throw CoreError("KERNEL_SOURCE", source.name + ": " + error.what());
  }
  for (auto& device : devices_) device->callQuiet([&] { device->loadFunctions(); });
}

void Core::wake(std::int32_t queue) {
  Queue* target = closed_ ? nullptr : runtime_.queue(queue);
  if (target != nullptr) target->wake();
}

bool Core::waitForDoorbell(double microseconds) {
  if (closed_) return false;
  // The worker that made room for the engine can have the core now.
  runtime_.ownership.recall();
  const bool rang =
      runtime_.doorbell.wait(nanosecondsOf(microseconds), [this] { return doorbellDue(); });
  runtime_.ownership.engineWakes();
  return rang;
}

bool Core::spinForDoorbell(double microseconds) {
  if (closed_) return false;
  bool rang = true;
  runtime_.doorbell.workUntilRung([this] { return doorbellDue(); },
                                  [&](auto rung) {
                                    const std::int64_t until = now() + nanosecondsOf(microseconds);
                                    do {
                                      rang = rung();
                                      for (int i = 0; i < kLooks && !rang; ++i) {
                                        pauseProcessor();
                                        rang = rung();
                                      }
                                    } while (!rang && now() < until);
                                  });
  return rang;
}

bool Core::doorbellDue() const {
  if (guards.failureRings && runtime_.unhandled()) return true;
  return std::any_of(runtime_.queues.begin(), runtime_.queues.end(),
                     [](const auto& queue) { return queue->doorbellDue(); });
}

bool Core::serveUntilDoorbell(double microseconds) {
  QueueOwnership& ownership = runtime_.ownership;
  if (closed_ || !ownership.full()) return false;
  bool served = true;
  ownership.engineServes(true);
  ownership.engineWakes();
  runtime_.doorbell.workUntilRung([this] { return doorbellDue(); },
                                  [&](auto rung) {
                                    served = serveQueues(ownership, *executor_,
                                                         now() + nanosecondsOf(microseconds), rung);
                                  });
  ownership.engineServes(false);
  return served;
}

std::size_t Core::takeStolen(StolenSpan* into, std::size_t most) {
  const std::int64_t time = now();
  if (stolen_.due(time)) stolen_.look(time, -1);
  return runtime_.stolen.take(into, most);
}

std::string Core::lastError(std::int32_t queue) const {
  const Queue* asked = runtime_.queue(queue);
  return asked == nullptr ? "" : asked->error();
}

ScriptPort* Core::scriptPort(std::int32_t queue) {
  for (auto& port : scriptPorts_) {
    if (port->queue().index == queue) return port.get();
  }
  return nullptr;
}

const DeviceShare* Core::share(std::int32_t space) const {
  if (closed_ || space < 1 || static_cast<std::size_t>(space) > devices_.size()) return nullptr;
  return devices_[space - 1]->share();
}

void Core::keepShared() {
  for (auto& device : devices_) device->keepShared();
}

bool Core::peerAccess(std::int32_t to, std::int32_t from) const {
  const auto gpus = static_cast<std::int32_t>(devices_.size());
  if (to < 1 || from < 1 || to > gpus || from > gpus) return false;
  return to == from || peers_[(to - 1) * gpus + from - 1];
}

void Core::close(bool cancel) {
  if (closed_) return;
  closed_ = true;
  if (cancel) {
    for (std::int32_t run = 0; run < Shared::runs; ++run) {
      runtime_.cancelWord(run)->store(1, std::memory_order_release);
    }
  }
  runtime_.closing.store(true, std::memory_order_seq_cst);
  for (auto& queue : runtime_.queues) queue->wake();
  runtime_.ownership.recall();
  // A worker may wait for a GPU and vice versa: wake all first, then join one after the other.
  workers_.clear();
  scriptPorts_.clear();
  for (auto& device : devices_) device->join();
  for (auto& device : devices_) device->closeDevice();
  host_->discard();
}

}  // namespace headrace
