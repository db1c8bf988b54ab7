// The driver table over a vendor's library: devices, memory, copies and launches (events: gpu/events.cpp).
//
// Invariants: a device's functions are called under its submission lock with its context current (gpu/driver.h); once a
// call has reported that the context is dead, no further call is made and all functions answer `lost`; peers copy only if
// both directions were found possible, so that the vendor never stages a copy through the host in secret (hazard H3).
#include <execinfo.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/clock.h"
#include "gpu/events.h"
#include "gpu/graphs.h"
#include "gpu/host_pins.h"
#include "gpu/launch_rules.h"
#include "gpu/quiescent_section.h"

namespace headrace {

namespace {

constexpr std::size_t kOutcomesPerStream = 288;

std::atomic<bool> checks{false};
thread_local GpuStream* current = nullptr;

GpuDevice& device(DeviceHandle handle) { return *static_cast<GpuDevice*>(handle); }
GpuStream& stream(StreamHandle handle) { return *static_cast<GpuStream*>(handle); }

void say(char* reason, std::size_t bytes, const std::string& text) {
  std::snprintf(reason, bytes, "%s", text.c_str());
}

// -- opening --------------------------------------------------------------------------------------------------------

DriverStatus bind(DeviceHandle handle) {
  GpuDevice& on = device(handle);
  if (on.api->contextSetCurrent(on.context) == 0) return DriverStatus::ok;
  // It may be the error of the GPU that was current until now. That error is not this GPU's.
  on.api->contextSetCurrent(nullptr);
  return on.check(on.api->contextSetCurrent(on.context), "cuCtxSetCurrent");
}

void close(DeviceHandle handle) {
  GpuDevice* closing = &device(handle);
  removeOpenDevice(closing);
  if (gpuStuck(*closing)) {
    closing->api->contextSetCurrent(nullptr);
    delete closing;
    return;
  }
  // A dead context answers all of this with its error. There is no remedy.
  for (const auto& module : closing->modules) closing->api->moduleUnload(module.second);
  closing->api->contextSetCurrent(nullptr);
  closing->api->contextRelease(closing->device);
  delete closing;
}

const char* errorText(DeviceHandle handle) { return device(handle).error(); }

DriverStatus enablePeer(DeviceHandle handle, DeviceHandle other) {
  GpuDevice& on = device(handle);
  GpuDevice& peer = device(other);
  int there = 0;
  int back = 0;
  int code = on.api->deviceCanAccessPeer(&there, on.device, peer.device);
  if (code == 0) code = on.api->deviceCanAccessPeer(&back, peer.device, on.device);
  if (code != 0) return on.fail(code, "cuDeviceCanAccessPeer");
  if (there == 0 || back == 0) {
    return on.refuse(DriverStatus::unsupported, "the GPUs cannot reach each other's memory");
  }
  code = on.api->contextEnablePeer(peer.context, 0);
  if (code != 0 && code != gpu::kPeerAlreadyEnabled) return on.fail(code, "cuCtxEnablePeerAccess");
  on.peers.push_back(&peer);
  return DriverStatus::ok;
}

// -- memory ---------------------------------------------------------------------------------------------------------

DriverStatus memoryAlloc(DeviceHandle handle, std::uint64_t bytes, DeviceAddress* address) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemAlloc");
  if (allowed != DriverStatus::ok) return allowed;
  const int code = on.api->memoryAlloc(address, bytes);
  if (code != 0) return on.fail(code, "cuMemAlloc");
  // Synchronous copies of others (an MPI library's) on this memory must really be done when they return (H4). Memory
  // for which the driver cannot promise that still serves this runtime: events order everything here.
  const int on1 = 1;
  on.api->pointerSetAttribute(&on1, cuda::kPointerSyncMemops, *address);
  return DriverStatus::ok;
}

void memoryFree(DeviceHandle handle, DeviceAddress address) {
  GpuDevice& on = device(handle);
  if (gpuStuck(on)) return;
  if (on.permit("cuMemFree") == DriverStatus::ok) on.api->memoryFree(address);
}

/// Memory of another kind than the driver's plain allocations must not reach other processes or an MPI library (H13).
DriverStatus classify(GpuDevice& on, DeviceAddress address) {
  unsigned type = 0;
  unsigned managed = 0;
  unsigned capable = 0;
  int code = on.api->pointerAttribute(&type, cuda::kPointerMemoryType, address);
  if (code == 0) code = on.api->pointerAttribute(&managed, cuda::kPointerManaged, address);
  if (code == 0) code = on.api->pointerAttribute(&capable, cuda::kPointerIpcCapable, address);
  if (code != 0) return on.fail(code, "cuPointerGetAttribute");
  if (type != cuda::kMemoryTypeDevice || managed != 0 || capable == 0) {
    return on.refuse(DriverStatus::unsupported,
                     managed != 0 ? "managed memory cannot be shared with other processes"
                                  : "memory that the driver cannot share with other processes");
  }
  return DriverStatus::ok;
}

DriverStatus memoryShare(DeviceHandle handle, DeviceAddress address, DeviceShare* share) {
  GpuDevice& on = device(handle);
  *share = {};
  share->fd = -1;
  share->base = address;
  int code = 0;
  if (on.api->pointerAttribute != nullptr) {
    const DriverStatus plain = classify(on, address);
    if (plain != DriverStatus::ok) return plain;
    code = on.api->pointerAttribute(&share->generation, cuda::kPointerBufferId, address);
    if (code != 0) return on.fail(code, "cuPointerGetAttribute");
  }
  if (on.api->addressRange != nullptr) {
    std::size_t bytes = 0;
    code = on.api->addressRange(&share->base, &bytes, address);
    if (code != 0) return on.fail(code, "cuMemGetAddressRange");
    share->offset = address - share->base;
  }
  code = on.api->ipcGetHandle(share->ipc, share->base);
  if (code != 0) return on.fail(code, "cuIpcGetMemHandle");
  share->ipcBytes = sizeof share->ipc;
  return DriverStatus::ok;
}

DriverStatus hostAlloc(DeviceHandle handle, std::uint64_t bytes, void** pointer) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemHostAlloc");
  if (allowed != DriverStatus::ok) return allowed;
  return on.check(on.api->hostAlloc(pointer, bytes, gpu::kHostPortable), "cuMemHostAlloc");
}

void hostFree(DeviceHandle handle, void* pointer) {
  if (device(handle).permit("cuMemFreeHost") == DriverStatus::ok) {
    device(handle).api->hostFree(pointer);
  }
}

DriverStatus hostRegister(DeviceHandle handle, void* pointer, std::uint64_t bytes,
                          std::uint64_t reserve) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemHostRegister");
  if (allowed != DriverStatus::ok) return allowed;
  return on.check(hostPins(on.spaceKind).add(*on.api, pointer, bytes, reserve),
                  "cuMemHostRegister");
}

void hostUnregister(DeviceHandle handle, void* pointer) {
  hostPins(device(handle).spaceKind)
      .remove(anyStuckDevice() ? nullptr : device(handle).api, pointer);
}

// -- streams and events ---------------------------------------------------------------------------------------------

DriverStatus streamCreate(DeviceHandle handle, StreamPurpose purpose, StreamHandle* result) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuStreamCreate");
  if (allowed != DriverStatus::ok) return allowed;
  auto created = std::make_unique<GpuStream>();
  created->device = &on;
  created->purpose = purpose;
  int code = on.api->streamCreate(&created->stream, gpuStreamFlags(), 0);
  if (code != 0) return on.fail(code, "cuStreamCreateWithPriority");
  DriverStatus status = gpuCreateMarks(*created);
  if (status == DriverStatus::ok && purpose == StreamPurpose::compute) {
    status = prepareOutcomes(*created);
  }
  if (status != DriverStatus::ok) {
    gpuDestroyMarks(*created);
    on.api->streamDestroy(created->stream);
    return status;
  }
  addOpenStream(created.get());
  *result = created.release();
  return DriverStatus::ok;
}

void streamDestroy(StreamHandle handle) {
  GpuStream* closing = &stream(handle);
  GpuDevice& on = *closing->device;
  if (!gpuStuck(on)) {
    if (closing->tiles != nullptr) releaseTiles(*closing);
    gpuDestroyMarks(*closing);
    on.api->streamDestroy(closing->stream);
    if (closing->outcomeWords != nullptr) on.api->hostFree(closing->outcomeWords);
  }
  removeOpenStream(closing);
  delete closing;
}

DriverStatus eventCreate(DeviceHandle handle, bool timed, EventHandle* result) {
  auto* created = new GpuEvent;
  created->device = &device(handle);
  created->timed = timed;
  *result = created;
  return DriverStatus::ok;
}

void eventDestroy(EventHandle handle) { delete static_cast<GpuEvent*>(handle); }

// -- work -----------------------------------------------------------------------------------------------------------

/// Gives a copy of host memory to the driver in pieces that lie in one registration each.
template <typename Copy>
DriverStatus copyHost(GpuStream& on, const void* host, std::uint64_t bytes, const char* call,
                      Copy copy) {
  GpuDevice& at = *on.device;
  if (at.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  HostPins& pins = hostPins(at.spaceKind);
  ++at.work;
  std::uint64_t done = 0;
  bool tried = false;
  while (done < bytes) {
    const auto* from = static_cast<const std::uint8_t*>(host) + done;
    std::uint64_t piece = pins.locked(from, bytes - done);
    if (piece == 0 && !tried) {
      tried = true;
      if (on.capture != nullptr) {
        pins.lockChunks(*at.api, from, bytes - done);
        continue;
      }
      const QuiescentSection pause;
      if (pause.holds()) {
        pins.lockChunks(*at.api, from, bytes - done);
        continue;
      }
    }
    if (piece == 0) {
      if (on.capture != nullptr) {
        return at.refuse(DriverStatus::refused, "a graph copies page-locked host memory only");
      }
      piece = bytes - done;
      pins.slowBytes.fetch_add(piece, std::memory_order_relaxed);
    }
    const int code = copy(done, piece);
    if (code != 0) return at.fail(code, call);
    done += piece;
  }
  return DriverStatus::ok;
}

DriverStatus copyToDevice(StreamHandle handle, DeviceAddress to, const void* from,
                          std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  return copyHost(on, from, bytes, "cuMemcpyHtoDAsync", [&](std::uint64_t at, std::uint64_t piece) {
    return on.device->api->copyToDevice(to + at, static_cast<const std::uint8_t*>(from) + at, piece,
                                        on.stream);
  });
}

DriverStatus copyToHost(StreamHandle handle, void* to, DeviceAddress from, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  return copyHost(on, to, bytes, "cuMemcpyDtoHAsync", [&](std::uint64_t at, std::uint64_t piece) {
    return on.device->api->copyToHost(static_cast<std::uint8_t*>(to) + at, from + at, piece,
                                      on.stream);
  });
}

DriverStatus copyOnDevice(StreamHandle handle, DeviceAddress to, DeviceAddress from,
                          std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (bytes == 0) return DriverStatus::ok;
  ++on.device->work;
  return on.device->check(on.device->api->copyOnDevice(to, from, bytes, on.stream),
                          "cuMemcpyDtoDAsync");
}

DriverStatus copyFromPeer(StreamHandle handle, DeviceHandle toDevice, DeviceAddress to,
                          DeviceHandle fromDevice, DeviceAddress from, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  GpuDevice& at = device(toDevice);
  GpuDevice* source = &device(fromDevice);
  if (at.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (std::find(at.peers.begin(), at.peers.end(), source) == at.peers.end()) {
    return at.refuse(DriverStatus::refused,
                     "there is no peer access from GPU " + std::to_string(at.ordinal) + " to GPU " +
                         std::to_string(source->ordinal) + ": copy through the host");
  }
  if (bytes == 0) return DriverStatus::ok;
  ++at.work;
  // No capture allows the call for copies between contexts. Peer access makes the addresses enough.
  if (on.capture != nullptr) {
    return at.check(at.api->copyOnDevice(to, from, bytes, on.stream), "cuMemcpyDtoDAsync");
  }
  return at.check(at.api->copyPeer(to, at.context, from, source->context, bytes, on.stream),
                  "cuMemcpyPeerAsync");
}

DriverStatus fill(StreamHandle handle, DeviceAddress to, std::uint8_t value, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (bytes == 0) return DriverStatus::ok;
  ++on.device->work;
  return on.device->check(on.device->api->fill(to, value, bytes, on.stream), "cuMemsetD8Async");
}

/// The kernel refused before anything was put into the stream.
DriverStatus rejected(GpuStream& on, const Launch& launch, std::int32_t code) {
  if (code == HEADRACE_DEVICE_LOST) on.device->abandon("a kernel said that the device is lost");
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (code == HEADRACE_DRIVER_ERROR) return DriverStatus::refused;
  *launch.status = code;
  if (launch.cancel != nullptr) launch.cancel->store(1, std::memory_order_release);
  return DriverStatus::ok;
}

DriverStatus launchFunction(GpuStream& on, const Launch& launch) {
  GpuDevice& at = *on.device;
  headrace_launch plan;
  std::memset(&plan, 0, offsetof(headrace_launch, arguments));
  std::int32_t code = 0;
  if (launch.rules != nullptr) {
    const char* why = "";
    code = launch.rules->plan(launch.task, plan, &why);
    if (code != 0) at.refuse(DriverStatus::refused, why);
  } else {
    headrace_task task = launch.task;
    task.stream = on.stream;
    on.launch = &launch;
    current = &on;
    code = launch.plan(&task, &plan);
    current = nullptr;
    on.launch = nullptr;
  }
  if (code != 0) return rejected(on, launch, code);
  if (plan.grid[0] == 0 || plan.grid[1] == 0 || plan.grid[2] == 0) return DriverStatus::ok;
  return at.check(at.api->launch(launch.function, plan.grid[0], plan.grid[1], plan.grid[2],
                                 plan.block[0], plan.block[1], plan.block[2], plan.shared_bytes,
                                 on.stream, plan.arguments, nullptr),
                  "cuLaunchKernel");
}

DriverStatus launch(StreamHandle handle, const Launch* launch) {
  GpuStream& on = stream(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  ++on.device->work;
  // Work that becomes part of a graph runs later, and the thread that captures holds the pause itself.
  if (on.capture == nullptr) announceLaunch(on);
  if (launch->enqueue == nullptr) return launchFunction(on, *launch);
  headrace_task task = launch->task;
  task.stream = on.stream;
  on.device->refuse(DriverStatus::refused, "the kernel reported an error of the driver");
  on.launch = launch;
  current = &on;
  const std::int32_t code = launch->enqueue(&task);
  current = nullptr;
  on.launch = nullptr;
  return code == 0 ? DriverStatus::ok : rejected(on, *launch, code);
}

std::int32_t progress(DeviceHandle) { return 0; }

}  // namespace

DriverStatus gpuFunctionLoad(DeviceHandle handle, const void* image, std::uint64_t imageBytes,
                             const char* symbol, FunctionHandle* function) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuModuleLoadDataEx");
  if (allowed != DriverStatus::ok) return allowed;
  void*& module = on.modules[image];
  if (module == nullptr) {
    // PTX must end with a zero byte. A file need not have one.
    std::string copy(static_cast<const char*>(image), imageBytes);
    char log[4096] = "";
    int options[] = {cuda::kJitErrorLog, cuda::kJitErrorLogBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const int code = on.api->moduleLoad(&module, copy.c_str(), 2, options, values);
    if (code != 0) {
      on.modules.erase(image);
      const DriverStatus status = on.fail(code, "cuModuleLoadDataEx");
      return log[0] == '\0' ? status : on.refuse(status, std::string(on.error()) + "\n" + log);
    }
  }
  const int code = on.api->moduleFunction(function, module, symbol);
  if (code != 0) return on.fail(code, symbol);
  // Reading an attribute loads the code now. The first launch would load it otherwise, and might wait for a kernel (H8).
  int threads = 0;
  return on.check(on.api->functionAttribute(&threads, 0, *function), "cuFuncGetAttribute");
}

// -- the common parts of a real driver --------------------------------------------------------------------------------

DriverStatus GpuDevice::fail(int code, const char* call) {
  const std::string text = std::string(call) + ": " + gpuErrorText(*api, code);
  if (gpuLost(code)) return abandon(text);
  return refuse(code == gpu::kOutOfMemory ? DriverStatus::outOfMemory : DriverStatus::refused,
                text);
}

DriverStatus GpuDevice::abandon(const std::string& text) {
  std::lock_guard<std::mutex> guard(errorLock_);
  // The first error stays the device's error for good: all later ones are a consequence.
  if (!lost.load(std::memory_order_relaxed)) {
    error_ = text;
    lostAt.store(now(), std::memory_order_relaxed);
    lost.store(true, std::memory_order_release);
  }
  return DriverStatus::lost;
}

DriverStatus GpuDevice::refuse(DriverStatus status, const std::string& text) {
  std::lock_guard<std::mutex> guard(errorLock_);
  if (lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  error_ = text;
  return status;
}

const char* GpuDevice::error() {
  thread_local std::string copy;
  std::lock_guard<std::mutex> guard(errorLock_);
  copy = error_;
  return copy.c_str();
}

bool GpuDevice::quiet() const {
  // No work of a lost GPU runs any more, and no completion of it will be seen.
  return lost.load(std::memory_order_acquire) ||
         std::all_of(streams.begin(), streams.end(), [](const GpuStream* each) {
           return each->launched.load(std::memory_order_relaxed) <=
                  each->completed.load(std::memory_order_acquire);
         });
}

DriverStatus GpuDevice::permit(const char* call) {
  if (!driverChecks() || lost.load(std::memory_order_relaxed) || quiet()) return DriverStatus::ok;
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  std::string text = std::string(call) + " while kernels run on GPU " + std::to_string(ordinal) +
                     " (thread " + thread + "), called from";
  void* frames[6];
  const int count = backtrace(frames, 6);
  if (char** names = backtrace_symbols(frames, count)) {
    for (int i = 1; i < count; ++i) text += std::string(i > 1 ? " < " : " ") + names[i];
    std::free(names);
  }
  return refuse(DriverStatus::refused, text);
}

DriverStatus gpuCheckSignature(DeviceHandle handle, FunctionHandle function,
                               const LaunchRules& rules) {
  GpuDevice& on = device(handle);
  if (on.api->functionParameter == nullptr) return DriverStatus::ok;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  const std::size_t declared = rules.signature.size();
  for (std::size_t i = 0; i < declared; ++i) {
    if (on.api->functionParameter(function, i, &offset, &bytes) != 0) {
      return on.refuse(DriverStatus::refused, "has " + std::to_string(i) + " parameters, " +
                                                  std::to_string(declared) + " are declared");
    }
    if (bytes != argumentBytes(rules.signature[i].type)) {
      return on.refuse(DriverStatus::refused,
                       "parameter " + std::to_string(i + 1) + " has " + std::to_string(bytes) +
                           " bytes, its declared type has " +
                           std::to_string(argumentBytes(rules.signature[i].type)));
    }
  }
  if (on.api->functionParameter(function, declared, &offset, &bytes) == 0) {
    return on.refuse(DriverStatus::refused, "has more parameters than the " +
                                                std::to_string(declared) + " that are declared");
  }
  return DriverStatus::ok;
}

void gpuForgetImage(DeviceHandle handle, const void* image) {
  GpuDevice& on = device(handle);
  const auto found = on.modules.find(image);
  if (found == on.modules.end()) return;
  on.api->moduleUnload(found->second);
  on.modules.erase(found);
}

void enableDriverChecks() { checks.store(true, std::memory_order_relaxed); }
bool driverChecks() { return checks.load(std::memory_order_relaxed); }

GpuStream* currentStream() { return current; }

DriverStatus prepareOutcomes(GpuStream& on) {
  void* words = nullptr;
  const int code = on.device->api->hostAlloc(&words, kOutcomesPerStream * sizeof(std::int32_t),
                                             gpu::kHostPortable);
  if (code != 0) return on.device->fail(code, "cuMemHostAlloc");
  on.outcomeWords = static_cast<std::int32_t*>(words);
  for (std::size_t i = 0; i < kOutcomesPerStream; ++i)
    on.sparePinned.push_back(on.outcomeWords + i);
  return DriverStatus::ok;
}

std::int32_t* takeOutcome(GpuStream& on) {
  if (on.capture != nullptr) {
    GpuGraph& graph = *on.capture;
    return graph.labels.size() < graph.room ? graph.words + graph.labels.size() : nullptr;
  }
  if (on.sparePinned.empty()) return nullptr;
  std::int32_t* word = on.sparePinned.back();
  on.sparePinned.pop_back();
  *word = 0;
  return word;
}

void reportLater(GpuStream& on, std::int32_t* pinned) {
  if (on.capture != nullptr) {
    on.capture->labels.push_back(on.capture->label);
    return;
  }
  on.outcomes.push_back({on.position + 1, pinned, on.launch->status, on.launch->cancel});
}

DriverStatus gpuProbe(const GpuApi* api, const std::string& why, std::int32_t* devices,
                      char* reason, std::size_t reasonBytes) {
  *devices = 0;
  if (api == nullptr) {
    say(reason, reasonBytes, why);
    return DriverStatus::unsupported;
  }
  int count = 0;
  int version = 0;
  const int code = api->deviceCount(&count);
  if (code != 0 || count == 0) {
    say(reason, reasonBytes, code != 0 ? gpuErrorText(*api, code) : "the driver finds no GPU");
    return DriverStatus::unsupported;
  }
  api->driverVersion(&version);
  *devices = count;
  say(reason, reasonBytes, "driver version " + std::to_string(version));
  return DriverStatus::ok;
}

DriverStatus gpuOpen(const GpuApi* api, const std::string& why, const char* driver,
                     std::int32_t spaceKind, std::int32_t ordinal, DeviceHandle* result,
                     DeviceDescription* description, char* reason, std::size_t reasonBytes) {
  if (api == nullptr) {
    say(reason, reasonBytes, why);
    return DriverStatus::unsupported;
  }
  auto opened = std::make_unique<GpuDevice>();
  opened->api = api;
  opened->driver = driver;
  opened->spaceKind = spaceKind;
  opened->ordinal = ordinal;
  unsigned char uuid[16] = {};
  std::size_t free = 0;
  std::size_t total = 0;
  int code = api->deviceGet(&opened->device, ordinal);
  if (code == 0) {
    code = api->deviceName(description->name, sizeof description->name, opened->device);
  }
  if (code == 0) code = api->deviceUuid(uuid, opened->device);
  if (code == 0 && spaceKind == SpaceKind::cuda) {
    api->deviceAttribute(&opened->major, cuda::kAttributeMajor, opened->device);
    api->deviceAttribute(&opened->minor, cuda::kAttributeMinor, opened->device);
    api->deviceAttribute(&description->flushOptions, cuda::kAttributeRdmaFlush, opened->device);
    api->deviceAttribute(&description->writeOrdering, cuda::kAttributeRdmaOrdering, opened->device);
    if (api->flushRemoteWrites == nullptr) description->flushOptions = 0;
  }
  const bool retained = code == 0;
  if (code == 0) code = api->contextRetain(&opened->context, opened->device);
  if (code == 0) code = api->contextSetCurrent(opened->context);
  if (code == 0) code = api->memoryInfo(&free, &total);
  if (code != 0) {
    say(reason, reasonBytes, gpuErrorText(*api, code));
    if (retained && opened->context != nullptr) api->contextRelease(opened->device);
    return code == gpu::kOutOfMemory ? DriverStatus::outOfMemory : DriverStatus::refused;
  }
  say(description->uuid, sizeof description->uuid, gpuUuidText(uuid));
  description->totalBytes = total;
  description->freeBytes = free;
  addOpenDevice(opened.get());
  *result = opened.release();
  return DriverStatus::ok;
}

DriverTable gpuDriverTable(const char* name, std::int32_t spaceKind,
                           decltype(DriverTable::probe) probe, decltype(DriverTable::open) open) {
  return {name,
          spaceKind,
          true,
          probe,
          open,
          bind,
          close,
          errorText,
          enablePeer,
          memoryAlloc,
          memoryFree,
          memoryShare,
          hostAlloc,
          hostFree,
          hostRegister,
          hostUnregister,
          streamCreate,
          streamDestroy,
          eventCreate,
          eventDestroy,
          gpuEventRecord,
          gpuEventQuery,
          gpuEventTime,
          gpuStreamWait,
          copyToDevice,
          copyToHost,
          copyOnDevice,
          copyFromPeer,
          fill,
          launch,
          gpuFunctionLoad,
          progress,
          gpuGraphs()};
}

}  // namespace headrace
