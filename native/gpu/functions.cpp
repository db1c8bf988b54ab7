// Functions of loaded code: an image is loaded once per GPU, and its functions are compared with their declarations.
//
// Invariant: no code is loaded while a kernel runs, also not by a first launch (hazard H8).
#include <cstddef>
#include <string>

#include "gpu/device.h"
#include "gpu/launch_rules.h"

namespace headrace {

DriverStatus gpuFunctionLoad(DeviceHandle handle, const void* image, std::uint64_t imageBytes,
                             const char* symbol, FunctionHandle* function) {
  GpuDevice& on = *static_cast<GpuDevice*>(handle);
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

DriverStatus gpuCheckSignature(DeviceHandle handle, FunctionHandle function,
                               const LaunchRules& rules) {
  GpuDevice& on = *static_cast<GpuDevice*>(handle);
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
  GpuDevice& on = *static_cast<GpuDevice*>(handle);
  const auto found = on.modules.find(image);
  if (found == on.modules.end()) return;
  on.api->moduleUnload(found->second);
  on.modules.erase(found);
}

}  // namespace headrace
