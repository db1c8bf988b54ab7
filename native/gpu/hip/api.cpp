// Finds libamdhip64 and fills the table: see gpu/api.h. Built and tested against a stub only: no AMD GPU was
// available, so this code has never run on hardware.
//
// HIP has no driver contexts that a program could hold: a "context" here is the device's ordinal plus one, made current
// with hipSetDevice. ROCm before 4.5 is refused: peer copies next to RDMA gave stale data there (UPC++ issue 524).
#include <cstdlib>
#include <cstring>

#include "core/shared_library.h"
#include "gpu/api.h"

namespace headrace {

namespace {

/// HIP's version number of ROCm 4.5 (it counts 4.4 there): major * 10^7 + minor * 10^5 + patch.
constexpr int kOldest = 40400000;

/// HIP's functions whose shape differs from the table's.
struct Hip {
  int (*setDevice)(int);
  int (*enablePeer)(int, unsigned);
  int (*malloc)(void**, std::size_t);
  int (*free)(void*);
  int (*ipcGet)(void*, void*);
  int (*toDevice)(void*, void*, std::size_t, void*);
  int (*toHost)(void*, void*, std::size_t, void*);
  int (*onDevice)(void*, void*, std::size_t, void*);
  int (*block)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);
  int (*peer)(void*, int, const void*, int, std::size_t, void*);
  int (*fill)(void*, unsigned char, std::size_t, void*);
  int (*fill32)(void*, int, std::size_t, void*);
  const char* (*errorName)(int);
  const char* (*errorString)(int);
  int (*uuid)(void*, int);
};

Hip hip;

/// hipMemcpyDeviceToDevice.
constexpr int kDeviceToDevice = 3;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
int ordinal(void* context) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
}

void adapt(GpuApi& api) {
  api.contextRetain = [](void** context, int device) {
    *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
    return 0;
  };
  api.contextRelease = [](int) { return 0; };
  api.contextSetCurrent = [](void* context) {
    return context == nullptr ? 0 : hip.setDevice(ordinal(context));
  };
  api.contextEnablePeer = [](void* peer, unsigned flags) {
    return hip.enablePeer(ordinal(peer), flags);
  };
  api.memoryAlloc = [](std::uint64_t* address, std::size_t bytes) {
    void* memory = nullptr;
    const int code = hip.malloc(&memory, bytes);
    *address = reinterpret_cast<std::uint64_t>(memory);
    return code;
  };
  api.memoryFree = [](std::uint64_t address) { return hip.free(pointer(address)); };
  // No call is needed: HIP's synchronous copies are synchronous.
  api.pointerSetAttribute = [](const void*, int, std::uint64_t) { return 0; };
  api.ipcGetHandle = [](void* handle, std::uint64_t address) {
    return hip.ipcGet(handle, pointer(address));
  };
  api.copyToDevice = [](std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
    return hip.toDevice(pointer(to), const_cast<void*>(from), bytes, stream);
  };
  api.copyToHost = [](void* to, std::uint64_t from, std::size_t bytes, void* stream) {
    return hip.toHost(to, pointer(from), bytes, stream);
  };
  api.copyOnDevice = [](std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
    return hip.onDevice(pointer(to), pointer(from), bytes, stream);
  };
  api.copyBlock = [](std::uint64_t to, std::size_t toPitch, std::uint64_t from,
                     std::size_t fromPitch, std::size_t width, std::size_t columns, void* stream) {
    return hip.block(pointer(to), toPitch, pointer(from), fromPitch, width, columns,
                     kDeviceToDevice, stream);
  };
  api.copyPeer = [](std::uint64_t to, void* toContext, std::uint64_t from, void* fromContext,
                    std::size_t bytes, void* stream) {
    return hip.peer(pointer(to), ordinal(toContext), pointer(from), ordinal(fromContext), bytes,
                    stream);
  };
  api.fill = [](std::uint64_t to, unsigned char value, std::size_t bytes, void* stream) {
    return hip.fill(pointer(to), value, bytes, stream);
  };
  api.fill32 = [](std::uint64_t to, unsigned value, std::size_t words, void* stream) {
    return hip.fill32(pointer(to), static_cast<int>(value), words, stream);
  };
  api.errorName = [](int code, const char** text) {
    *text = hip.errorName(code);
    return 0;
  };
  api.errorString = [](int code, const char** text) {
    *text = hip.errorString(code);
    return 0;
  };
  api.deviceUuid = [](void* bytes, int device) {
    std::memset(bytes, 0, 16);
    return hip.uuid != nullptr ? hip.uuid(bytes, device) : 0;
  };
}

bool resolve(SharedLibrary& from, GpuApi& api) {
  hip.uuid = nullptr;
  if (void* found = from.find("hipDeviceGetUuid")) {  // since ROCm 5.2
    hip.uuid = reinterpret_cast<decltype(hip.uuid)>(found);
  }
  return from.get("hipInit", api.init) && from.get("hipRuntimeGetVersion", api.driverVersion) &&
         from.get("hipGetErrorName", hip.errorName) &&
         from.get("hipGetErrorString", hip.errorString) &&
         from.get("hipGetDeviceCount", api.deviceCount) &&
         from.get("hipDeviceGet", api.deviceGet) && from.get("hipDeviceGetName", api.deviceName) &&
         from.get("hipDeviceTotalMem", api.deviceMemory) &&
         from.get("hipDeviceGetAttribute", api.deviceAttribute) &&
         from.get("hipDeviceCanAccessPeer", api.deviceCanAccessPeer) &&
         from.get("hipSetDevice", hip.setDevice) &&
         from.get("hipDeviceEnablePeerAccess", hip.enablePeer) &&
         from.get("hipMemGetInfo", api.memoryInfo) && from.get("hipMalloc", hip.malloc) &&
         from.get("hipFree", hip.free) && from.get("hipIpcGetMemHandle", hip.ipcGet) &&
         from.get("hipHostMalloc", api.hostAlloc) && from.get("hipHostFree", api.hostFree) &&
         from.get("hipHostRegister", api.hostRegister) &&
         from.get("hipHostUnregister", api.hostUnregister) &&
         from.get("hipStreamCreateWithPriority", api.streamCreate) &&
         from.get("hipStreamDestroy", api.streamDestroy) &&
         from.get("hipStreamQuery", api.streamQuery) &&
         from.get("hipEventCreateWithFlags", api.eventCreate) &&
         from.get("hipEventDestroy", api.eventDestroy) &&
         from.get("hipEventRecord", api.eventRecord) && from.get("hipEventQuery", api.eventQuery) &&
         from.get("hipStreamWaitEvent", api.streamWaitEvent) &&
         from.get("hipMemcpyHtoDAsync", hip.toDevice) &&
         from.get("hipMemcpyDtoHAsync", hip.toHost) &&
         from.get("hipMemcpyDtoDAsync", hip.onDevice) && from.get("hipMemcpyPeerAsync", hip.peer) &&
         from.get("hipMemcpy2DAsync", hip.block) && from.get("hipMemsetD8Async", hip.fill) &&
         from.get("hipMemsetD32Async", hip.fill32) &&
         from.get("hipModuleLaunchKernel", api.launch) &&
         from.get("hipModuleLoadDataEx", api.moduleLoad) &&
         from.get("hipModuleUnload", api.moduleUnload) &&
         from.get("hipModuleGetFunction", api.moduleFunction) &&
         from.get("hipFuncGetAttribute", api.functionAttribute);
}

struct Loaded {
  GpuApi api{};
  bool usable = false;
  std::string reason;
};

Loaded load() {
  Loaded loaded;
  SharedLibrary library(std::getenv("HEADRACE_HIP_LIBRARY"),
                        {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"});
  if (!library.found() || !resolve(library, loaded.api)) {
    loaded.reason = library.reason();
    return loaded;
  }
  adapt(loaded.api);
  int code = loaded.api.init(0);
  int version = 0;
  if (code == 0) code = loaded.api.driverVersion(&version);
  if (code != 0) {
    loaded.reason = library.name() + ": " + gpuErrorText(loaded.api, code);
  } else if (version < kOldest) {
    loaded.reason = library.name() + " is HIP " + std::to_string(version / 10000000) + "." +
                    std::to_string(version / 100000 % 100) +
                    ": ROCm before 4.5 is refused, its copies between GPUs may deliver stale data";
  } else {
    loaded.usable = true;
  }
  return loaded;
}

}  // namespace

const GpuApi* hipApi(std::string& reason) {
  static const Loaded* loaded = new Loaded(load());
  if (!loaded->usable) reason = loaded->reason;
  return loaded->usable ? &loaded->api : nullptr;
}

}  // namespace headrace
