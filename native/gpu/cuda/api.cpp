// Finds libcuda and fills the table: see gpu/api.h.
//
// Every symbol is requested in the version that this code was written against: through cuGetProcAddress_v2 by its plain
// name and that version, or, in drivers without it, by dlsym with the suffix of the ABI (plain dlsym of
// "cuMemAlloc" gives the 32-bit ABI of 2007).
#include <cstdlib>

#include "core/shared_library.h"
#include "gpu/api.h"

namespace headrace {

namespace {

/// The CUDA version whose ABI is requested. All names below have had their present ABI since then.
constexpr int kAbiVersion = 12000;

class Resolver {
 public:
  explicit Resolver(SharedLibrary& library) : library_(library) {
    getProcAddress_ = reinterpret_cast<GetProcAddress>(library.find("cuGetProcAddress_v2"));
  }

  /// `plain`: the name in cuda.h; `exported`: with the suffix of its ABI.
  template <typename Function>
  void get(Function& function, const char* plain, const char* exported, int version = kAbiVersion) {
    optional(function, plain, exported, version);
    if (function == nullptr && missing_.empty()) missing_ = exported;
  }

  template <typename Function>
  void optional(Function& function, const char* plain, const char* exported,
                int version = kAbiVersion) {
    void* found = nullptr;
    int status = 0;
    if (getProcAddress_ == nullptr || getProcAddress_(plain, &found, version, 0, &status) != 0 ||
        found == nullptr) {
      found = library_.find(exported);
    }
    function = reinterpret_cast<Function>(found);
  }

  const std::string& missing() const { return missing_; }

 private:
  using GetProcAddress = int (*)(const char*, void**, int, std::uint64_t, int*);
  SharedLibrary& library_;
  GetProcAddress getProcAddress_;
  std::string missing_;
};

/// CUDA_MEMCPY2D of cuda.h.
struct BlockOfCuda {
  std::size_t fromX, fromY;
  int fromType;
  const void* fromHost;
  std::uint64_t fromDevice;
  void* fromArray;
  std::size_t fromPitch;
  std::size_t toX, toY;
  int toType;
  void* toHost;
  std::uint64_t toDevice;
  void* toArray;
  std::size_t toPitch;
  std::size_t width, height;
};
constexpr int kDeviceMemory = 2;

int (*copyBlock)(const BlockOfCuda*, void* stream);

struct Loaded {
  GpuApi api{};
  bool usable = false;
  std::string reason;
};

void resolve(Resolver& from, GpuApi& api) {
  from.get(api.init, "cuInit", "cuInit");
  from.get(api.driverVersion, "cuDriverGetVersion", "cuDriverGetVersion");
  from.get(api.deviceCount, "cuDeviceGetCount", "cuDeviceGetCount");
  from.get(api.deviceGet, "cuDeviceGet", "cuDeviceGet");
  from.get(api.deviceName, "cuDeviceGetName", "cuDeviceGetName");
  from.get(api.deviceUuid, "cuDeviceGetUuid", "cuDeviceGetUuid_v2");
  from.get(api.deviceMemory, "cuDeviceTotalMem", "cuDeviceTotalMem_v2");
  from.get(api.deviceAttribute, "cuDeviceGetAttribute", "cuDeviceGetAttribute");
  from.get(api.deviceCanAccessPeer, "cuDeviceCanAccessPeer", "cuDeviceCanAccessPeer");
  from.get(api.contextRetain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain");
  from.get(api.contextRelease, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2");
  from.get(api.contextSetCurrent, "cuCtxSetCurrent", "cuCtxSetCurrent");
  from.get(api.contextEnablePeer, "cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess");
  from.get(api.memoryInfo, "cuMemGetInfo", "cuMemGetInfo_v2");
  from.get(api.memoryAlloc, "cuMemAlloc", "cuMemAlloc_v2");
  from.get(api.memoryFree, "cuMemFree", "cuMemFree_v2");
  from.get(api.pointerSetAttribute, "cuPointerSetAttribute", "cuPointerSetAttribute");
  from.get(api.ipcGetHandle, "cuIpcGetMemHandle", "cuIpcGetMemHandle");
  from.get(api.hostAlloc, "cuMemHostAlloc", "cuMemHostAlloc");
  from.get(api.hostFree, "cuMemFreeHost", "cuMemFreeHost");
  from.get(api.hostRegister, "cuMemHostRegister", "cuMemHostRegister_v2");
  from.get(api.hostUnregister, "cuMemHostUnregister", "cuMemHostUnregister");
  from.get(api.streamCreate, "cuStreamCreateWithPriority", "cuStreamCreateWithPriority");
  from.get(api.streamDestroy, "cuStreamDestroy", "cuStreamDestroy_v2");
  from.get(api.streamQuery, "cuStreamQuery", "cuStreamQuery");
  from.get(api.eventCreate, "cuEventCreate", "cuEventCreate");
  from.get(api.eventDestroy, "cuEventDestroy", "cuEventDestroy_v2");
  from.get(api.eventRecord, "cuEventRecord", "cuEventRecord");
  from.get(api.eventQuery, "cuEventQuery", "cuEventQuery");
  from.get(api.streamWaitEvent, "cuStreamWaitEvent", "cuStreamWaitEvent");
  from.get(api.copyToDevice, "cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2");
  from.get(api.copyToHost, "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2");
  from.get(api.copyOnDevice, "cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2");
  from.get(copyBlock, "cuMemcpy2DAsync", "cuMemcpy2DAsync_v2");
  api.copyBlock = [](std::uint64_t to, std::size_t toPitch, std::uint64_t source,
                     std::size_t fromPitch, std::size_t width, std::size_t columns, void* stream) {
    BlockOfCuda block{};
    block.fromType = block.toType = kDeviceMemory;
    block.fromDevice = source;
    block.fromPitch = fromPitch;
    block.toDevice = to;
    block.toPitch = toPitch;
    block.width = width;
    block.height = columns;
    return copyBlock(&block, stream);
  };
  from.get(api.copyPeer, "cuMemcpyPeerAsync", "cuMemcpyPeerAsync");
  from.get(api.fill, "cuMemsetD8Async", "cuMemsetD8Async");
  from.get(api.fill32, "cuMemsetD32Async", "cuMemsetD32Async");
  from.get(api.launch, "cuLaunchKernel", "cuLaunchKernel");
  from.get(api.moduleLoad, "cuModuleLoadDataEx", "cuModuleLoadDataEx");
  from.get(api.moduleUnload, "cuModuleUnload", "cuModuleUnload");
  from.get(api.moduleFunction, "cuModuleGetFunction", "cuModuleGetFunction");
  from.get(api.functionAttribute, "cuFuncGetAttribute", "cuFuncGetAttribute");
  from.get(api.errorName, "cuGetErrorName", "cuGetErrorName");
  from.get(api.errorString, "cuGetErrorString", "cuGetErrorString");
  from.optional(api.functionParameter, "cuFuncGetParamInfo", "cuFuncGetParamInfo", 12040);
  from.optional(api.pointerAttribute, "cuPointerGetAttribute", "cuPointerGetAttribute");
  from.optional(api.addressRange, "cuMemGetAddressRange", "cuMemGetAddressRange_v2");
  from.optional(api.ipcOpen, "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2");
  from.optional(api.ipcClose, "cuIpcCloseMemHandle", "cuIpcCloseMemHandle");
  from.optional(api.flushRemoteWrites, "cuFlushGPUDirectRDMAWrites", "cuFlushGPUDirectRDMAWrites");
  from.optional(api.streamEndCapture, "cuStreamEndCapture", "cuStreamEndCapture");
  from.optional(api.graphInstantiate, "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags");
  from.optional(api.graphLaunch, "cuGraphLaunch", "cuGraphLaunch");
  from.optional(api.graphDestroy, "cuGraphDestroy", "cuGraphDestroy");
  from.optional(api.graphExecDestroy, "cuGraphExecDestroy", "cuGraphExecDestroy");
  const bool complete = api.streamEndCapture != nullptr && api.graphInstantiate != nullptr &&
                        api.graphLaunch != nullptr && api.graphDestroy != nullptr &&
                        api.graphExecDestroy != nullptr;
  if (complete)
    from.optional(api.streamBeginCapture, "cuStreamBeginCapture", "cuStreamBeginCapture_v2");
}

Loaded load() {
  Loaded loaded;
  SharedLibrary library(std::getenv("HEADRACE_CUDA_LIBRARY"), {"libcuda.so.1"});
  if (!library.found()) {
    loaded.reason = library.reason();
    return loaded;
  }
  Resolver resolver(library);
  resolve(resolver, loaded.api);
  if (!resolver.missing().empty()) {
    loaded.reason = library.name() + " is too old: it has no " + resolver.missing();
    return loaded;
  }
  const int code = loaded.api.init(0);
  if (code != 0) {
    loaded.reason = library.name() + ": " + gpuErrorText(loaded.api, code);
    return loaded;
  }
  loaded.usable = true;
  return loaded;
}

}  // namespace

const GpuApi* cudaApi(std::string& reason) {
  static const Loaded* loaded =
      new Loaded(load());  // never destroyed: threads may outlive static destruction
  if (!loaded->usable) reason = loaded->reason;
  return loaded->usable ? &loaded->api : nullptr;
}

}  // namespace headrace
