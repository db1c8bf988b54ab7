// Memory spaces: the host reservation and the data of each space that every thread needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/driver.h"

namespace headrace {

/// Host space: one reservation of address space whose pages exist once they are touched. The core and every view in
/// JavaScript share it; it is unmapped when the last of them is gone.
class HostMemory {
 public:
  /// Throws std::runtime_error when the system has no such address space.
  explicit HostMemory(std::uint64_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::uint8_t* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Returns the memory to the system; the addresses stay valid and show zeros. Only while no thread uses it.
  void discard();

 private:
  std::uint8_t* data_;
  std::uint64_t bytes_;
  std::uint64_t mapped_;
};

/// One memory space. `base` is its first byte: a host address if the host can reach it, else a device address.
struct Space {
  std::int32_t kind = 0;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  DeviceHandle device = nullptr;
  std::string name;
  std::string uuid;
  std::int32_t flushOptions = 0;
  std::int32_t writeOrdering = 0;

  /// True when [offset, offset + length) lies inside. Also false for NaN.
  bool contains(double offset, double length) const {
    const double limit = static_cast<double>(bytes);
    return offset >= 0 && length >= 0 && offset <= limit && length <= limit - offset;
  }
  bool contains(double offset) const { return offset >= 0 && offset <= static_cast<double>(bytes); }
  std::uint64_t address(double offset) const { return base + static_cast<std::uint64_t>(offset); }
  std::uint8_t* pointer(double offset) const {
    return reinterpret_cast<std::uint8_t*>(address(offset));
  }
};

}  // namespace headrace
