// Kernels by number: the built-in ones and those of loaded libraries, one table per process.
//
// Invariants: entries are only ever added (a thread may use an id at any time without a lock); an id reaches a
// thread through a ring, which orders the registration before its use; libraries are never unloaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/kernel.h"

namespace headrace {

struct LaunchRules;

/// Device code of one kernel for one kind of GPU.
struct DeviceCode {
  const void* image = nullptr;
  std::uint64_t imageBytes = 0;
  std::string symbol;
  headrace_plan plan = nullptr;
  /// Instead of `plan`, for sources and device code that the user registered.
  std::shared_ptr<const LaunchRules> rules;
};

/// A parameter that a kernel takes from memory: its position, and whether the element is an i32 (else an f64).
struct Steer {
  std::int32_t position;
  bool isInteger;
};

struct KernelEntry {
  std::string name;
  /// Its last flows become parameters of `base` (core/steered.h).
  std::vector<Steer> steers;
  headrace_kernel base = nullptr;
  /// Its records have the lengths of the data after the parameters (contract.ts, Opcode.exec).
  bool takesLengths = false;
  headrace_kernel kernel[3] = {nullptr, nullptr, nullptr};  // by HEADRACE_KERNEL_*
  DeviceCode code[3];
};

class Registry {
 public:
  static constexpr std::int32_t kCapacity = 4096;

  /// The one table, with the built-in kernels in it.
  static Registry& instance();

  /// Newest id of a name with a variant for the space kind (any kind: -1), or -1.
  std::int32_t find(const std::string& name, std::int32_t spaceKind);
  /// Names of the built-in kernels.
  std::vector<std::string> builtIn() const { return builtIn_; }
  /// Loads a library; appends the names that it registers to `names`. Throws std::runtime_error with the reason.
  void load(const std::string& path, std::vector<std::string>& names);
  /// Adds device code for one kind of GPU and keeps it as long as the process. After an exception the caller still owns it.
  struct DeviceKernel {
    std::string name;
    std::string symbol;
    std::shared_ptr<const LaunchRules> rules;
  };
  void addDeviceCode(std::int32_t kind, std::unique_ptr<const std::string>& image,
                     const std::vector<DeviceKernel>& kernels, std::vector<std::string>& names);

  /// A kernel whose last flows are parameters of the kernel `id`, in ascending order of their positions. Throws
  /// std::runtime_error when the table is full or the kernel has no host variant.
  std::int32_t steered(std::int32_t id, std::vector<Steer> steers);

  /// Number of ids given out.
  std::int32_t size() const { return size_.load(std::memory_order_acquire); }
  const KernelEntry* entry(std::int32_t id) const {
    return id >= 0 && id < size() ? entries_[id] : nullptr;
  }
  bool takesLengths(std::int32_t id) const {
    return static_cast<std::uint32_t>(id) < kCapacity &&
           takesLengths_[id].load(std::memory_order_relaxed);
  }
  /// The function that host workers and emulated GPUs call, or null.
  headrace_kernel host(std::int32_t id) const {
    return static_cast<std::uint32_t>(id) < kCapacity ? host_[id].load(std::memory_order_relaxed)
                                                      : nullptr;
  }

 private:
  Registry();
  bool add(std::vector<KernelEntry>& batch, const char* name, std::int32_t kind,
           headrace_kernel kernel, const DeviceCode* code);
  std::int32_t findSteered(headrace_kernel base, const std::vector<Steer>& steers) const;
  void commit(std::vector<KernelEntry>& batch, std::vector<std::string>& names);
  friend struct RegistryBatch;

  std::mutex lock_;
  std::atomic<std::int32_t> size_{0};
  const KernelEntry* entries_[kCapacity] = {};
  std::atomic<headrace_kernel> host_[kCapacity] = {};
  std::atomic<bool> takesLengths_[kCapacity] = {};
  std::vector<std::string> builtIn_;
  std::vector<std::unique_ptr<const std::string>> images_;
};

}  // namespace headrace
