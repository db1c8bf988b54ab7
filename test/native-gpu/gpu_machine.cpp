// Finding the stub, and running a test with several adversaries: see gpu_machine.h.
#include "gpu_machine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "gpu/driver.h"

namespace headrace::test {

namespace {

void* stub() {
  static void* handle = [] {
    const char* path = std::getenv("HEADRACE_CUDA_LIBRARY");
    return path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  }();
  return handle;
}

template <typename Function>
Function* control(const char* name) {
  return reinterpret_cast<Function*>(dlsym(stub(), name));
}

int realGpus() {
  std::int32_t devices = 0;
  char reason[256] = "";
  if (findDriver("cuda")->probe(&devices, reason, sizeof reason) != DriverStatus::ok) {
    std::fprintf(stderr, "no CUDA GPU (%s) and no stub (HEADRACE_CUDA_LIBRARY)\n", reason);
    std::exit(1);
  }
  return devices;
}

}  // namespace

bool Stub::present() { return stub() != nullptr && dlsym(stub(), "stubReset") != nullptr; }
std::string Stub::violations() { return control<const char*()>("stubViolations")(); }
std::uint64_t Stub::calls(const char* call) {
  return control<std::uint64_t(const char*)>("stubCalls")(call);
}
void Stub::fault(const char* call, std::uint64_t nth, int code) {
  control<void(const char*, std::uint64_t, int)>("stubFault")(call, nth, code);
}
void Stub::reset(int devices, bool peers, unsigned seed) {
  control<void(int, int, unsigned)>("stubReset")(devices, peers ? 1 : 0, seed);
}
std::uint64_t Stub::live() { return control<std::uint64_t()>("stubLive")(); }
bool Stub::stuck() { return control<int()>("stubStuck")() != 0; }
std::uint64_t Stub::pageable() { return control<std::uint64_t()>("stubPageable")(); }

AddGpu::AddGpu(const char* name, int gpus, std::function<void()> body, On on) {
  Add(name, [=] {
    if (!Stub::present()) {
      // A test that ruins the process is run by name only (scripts/gpu-test.sh).
      const bool alone = std::strncmp(name, "alone:", 6) == 0;
      if (alone && std::getenv("HEADRACE_GPU_ALONE") == nullptr) return leaveOut("its own process");
      if (on != On::stubOnly && realGpus() >= gpus) return body();
      return leaveOut(on == On::stubOnly ? "the stub" : "more GPUs");
    }
    if (on == On::realOnly) return leaveOut("a real GPU");
    for (unsigned seed = 1; seed <= (on == On::any ? 5u : 1u); ++seed) {
      Stub::reset(gpus, true, seed);
      body();
      const std::string broken = Stub::violations();
      if (!broken.empty() || (Stub::live() != 0 && !Stub::stuck())) {
        std::fprintf(stderr, "seed %u: %llu objects left; rules broken:\n%s", seed,
                     static_cast<unsigned long long>(Stub::live()), broken.c_str());
        std::exit(1);
      }
    }
  });
}

CoreOptions gpuOptions(std::int32_t gpus, std::uint64_t bytes) {
  CoreOptions options = small(1, gpus);
  options.driver = "cuda";
  options.gpuBytes = bytes;
  options.hostBytes = bytes;
  options.pinnedBytes = bytes;
  options.ringRecords = 1024;
  options.checked = true;
  return options;
}

}  // namespace headrace::test
