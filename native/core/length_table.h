// Lists of element counts by number: a record names the list that its kernel gets instead of carrying it.
//
// Invariants: only the engine's thread adds lists, and none is ever changed or removed; a number reaches a thread through a ring,
// which orders the list before its use.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

class LengthTable {
 public:
  static constexpr std::int32_t kCapacity = 4096;

  /// Adds a list. Returns its number, or 0 when there is no room.
  std::int32_t add(const double* lengths, std::size_t count) {
    if (used_ == kCapacity || count == 0) return 0;
    lists_[used_].assign(lengths, lengths + count);
    return used_++;
  }

  /// The list of a number; null if there is none with so many lengths.
  const double* at(std::int32_t number, std::int32_t count) const {
    if (number <= 0 || number >= kCapacity) return nullptr;
    const std::vector<double>& list = lists_[number];
    return list.size() == static_cast<std::size_t>(count) ? list.data() : nullptr;
  }

 private:
  std::int32_t used_ = 1;
  std::vector<double> lists_[kCapacity];
};

}  // namespace headrace
