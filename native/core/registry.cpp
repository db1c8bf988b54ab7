// The kernel table: see core/registry.h.
#include "core/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

#include "core/steered.h"
#include "headrace/contract.h"
#include "kernels/kernels.h"

namespace headrace {

static_assert(HEADRACE_OUT_OF_RANGE == Status::outOfRange, "kernel.h repeats contract.ts");
static_assert(HEADRACE_DEVICE_LOST == Status::deviceLost, "kernel.h repeats contract.ts");
static_assert(HEADRACE_DRIVER_ERROR == Status::driver, "kernel.h repeats contract.ts");
static_assert(HEADRACE_BAD_ARGUMENTS == Status::badArguments, "kernel.h repeats contract.ts");

/// The kernels of one library (or the built-in ones); they become visible together or not at all.
struct RegistryBatch {
  Registry* registry;
  std::int32_t abi;
  std::vector<KernelEntry> entries;

  static std::int32_t add(headrace_registry* interface, const char* name, std::int32_t kind,
                          headrace_kernel kernel) {
    auto* batch = static_cast<RegistryBatch*>(interface->state);
    if (kernel == nullptr) return -1;
    return batch->registry->add(batch->entries, name, kind, kernel, nullptr) ? 0 : -1;
  }

  static std::int32_t addDevice(headrace_registry* interface, const char* name, std::int32_t kind,
                                const void* image, std::uint64_t imageBytes, const char* symbol,
                                headrace_plan plan) {
    auto* batch = static_cast<RegistryBatch*>(interface->state);
    if (image == nullptr || symbol == nullptr || plan == nullptr) return -1;
    if (kind == HEADRACE_KERNEL_HOST) return -1;
    const DeviceCode code{image, imageBytes, symbol, plan, nullptr};
    return batch->registry->add(batch->entries, name, kind, nullptr, &code) ? 0 : -1;
  }

  headrace_registry interface() { return {abi, 0, this, add, addDevice}; }
};

namespace {

std::int32_t variantOf(std::int32_t spaceKind) {
  if (spaceKind == SpaceKind::cuda) return HEADRACE_KERNEL_CUDA;
  if (spaceKind == SpaceKind::hip) return HEADRACE_KERNEL_HIP;
  return HEADRACE_KERNEL_HOST;
}

bool hasVariant(const KernelEntry& entry, std::int32_t kind) {
  return entry.kernel[kind] != nullptr || entry.code[kind].image != nullptr;
}

}  // namespace

Registry& Registry::instance() {
  // Never destroyed: threads of a worker that is torn down late may still look up kernels.
  static Registry* registry = new Registry;
  return *registry;
}

Registry::Registry() {
  RegistryBatch batch{this, HEADRACE_KERNEL_ABI, {}};
  headrace_registry interface = batch.interface();
  registerBasicKernels(&interface);
  registerBlockKernels(&interface);
  registerCombineKernels(&interface);
  registerTaskBenchKernels(&interface);
  registerTileKernels(&interface);
  registerTileFactorKernels(&interface);
  registerTileReductionKernels(&interface);
  registerGradientKernels(&interface);
  registerCudaBasicKernels(&interface);
  registerCudaTileKernels(&interface);
  commit(batch.entries, builtIn_);
}

bool Registry::add(std::vector<KernelEntry>& batch, const char* name, std::int32_t kind,
                   headrace_kernel kernel, const DeviceCode* code) {
  if (name == nullptr || *name == '\0' || kind < HEADRACE_KERNEL_HOST || kind > HEADRACE_KERNEL_HIP)
    return false;
  auto found = std::find_if(batch.begin(), batch.end(),
                            [&](const KernelEntry& entry) { return entry.name == name; });
  if (found == batch.end()) {
    batch.emplace_back();
    found = batch.end() - 1;
    found->name = name;
  }
  if (hasVariant(*found, kind)) return false;
  found->kernel[kind] = kernel;
  if (code != nullptr) found->code[kind] = *code;
  return true;
}

void Registry::commit(std::vector<KernelEntry>& batch, std::vector<std::string>& names) {
  std::lock_guard<std::mutex> guard(lock_);
  const std::int32_t first = size_.load(std::memory_order_relaxed);
  if (batch.size() > static_cast<std::size_t>(kCapacity - first)) {
    throw std::runtime_error("more than " + std::to_string(kCapacity) +
                             " kernels are registered in this process");
  }
  std::int32_t id = first;
  for (KernelEntry& entry : batch) {
    names.push_back(entry.name);
    host_[id].store(entry.kernel[HEADRACE_KERNEL_HOST], std::memory_order_relaxed);
    takesLengths_[id].store(entry.takesLengths, std::memory_order_relaxed);
    entries_[id++] = new KernelEntry(std::move(entry));  // lives as long as the process
  }
  size_.store(id, std::memory_order_release);
}

std::int32_t Registry::find(const std::string& name, std::int32_t spaceKind) {
  std::int32_t id = size();
  while (--id >= 0) {
    const KernelEntry& entry = *entries_[id];
    if (entry.name == name && (spaceKind < 0 || hasVariant(entry, variantOf(spaceKind)))) break;
  }
  return id;
}

void Registry::addDeviceCode(std::int32_t kind, std::unique_ptr<const std::string>& image,
                             const std::vector<DeviceKernel>& kernels,
                             std::vector<std::string>& names) {
  std::vector<KernelEntry> batch;
  for (const DeviceKernel& kernel : kernels) {
    const DeviceCode code{image->data(), image->size(), kernel.symbol, nullptr, kernel.rules};
    if (!add(batch, kernel.name.c_str(), kind, nullptr, &code)) {
      throw std::runtime_error("the kernel name '" + kernel.name + "' is empty or given twice");
    }
  }
  commit(batch, names);
  std::lock_guard<std::mutex> guard(lock_);
  images_.push_back(std::move(image));
}

std::int32_t Registry::steered(std::int32_t id, std::vector<Steer> steers) {
  const KernelEntry* base = entry(id);
  if (base == nullptr || base->kernel[HEADRACE_KERNEL_HOST] == nullptr) {
    throw std::runtime_error("only kernels of the host take parameters from memory");
  }
  const std::int32_t known = findSteered(base->kernel[HEADRACE_KERNEL_HOST], steers);
  if (known >= 0) return known;
  std::vector<KernelEntry> batch(1);
  KernelEntry& made = batch.front();
  made.takesLengths = base->takesLengths;
  made.steers = std::move(steers);
  made.base = base->kernel[HEADRACE_KERNEL_HOST];
  made.kernel[HEADRACE_KERNEL_HOST] = runSteered;
  std::vector<std::string> names;
  commit(batch, names);
  return size() - 1;
}

std::int32_t Registry::findSteered(headrace_kernel base, const std::vector<Steer>& steers) const {
  const auto same = [](const Steer& a, const Steer& b) {
    return a.position == b.position && a.isInteger == b.isInteger;
  };
  for (std::int32_t id = size() - 1; id >= 0; --id) {
    const KernelEntry& each = *entries_[id];
    if (each.base == base &&
        std::equal(each.steers.begin(), each.steers.end(), steers.begin(), steers.end(), same)) {
      return id;
    }
  }
  return -1;
}

void Registry::load(const std::string& path, std::vector<std::string>& names) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    throw std::runtime_error(text != nullptr ? text : "dlopen failed");
  }
  // kernel.h gives the function of ABI 2 its own name.
  std::int32_t abi = HEADRACE_KERNEL_ABI;
  void* symbol = dlsym(library, "headrace_register_2");
  if (symbol == nullptr) {
    abi = 1;
    symbol = dlsym(library, "headrace_register");
  }
  if (symbol == nullptr) {
    throw std::runtime_error(path + " does not define headrace_register (headrace/kernel.h)");
  }
  auto function = reinterpret_cast<headrace_register_function>(symbol);
  RegistryBatch batch{this, abi, {}};
  headrace_registry interface = batch.interface();
  const std::int32_t code = function(&interface);
  if (code != 0) {
    throw std::runtime_error(path + ": headrace_register returned " + std::to_string(code));
  }
  for (KernelEntry& entry : batch.entries) entry.takesLengths = abi >= 2;
  commit(batch.entries, names);
}

}  // namespace headrace
