// Sequence numbers of records, positions and requests: they count in int32 and wrap.
#pragma once

#include <cstdint>

namespace headrace {

/// Difference of two sequence numbers that wrap as int32.
inline std::int32_t ahead(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// The sequence number `count` after `sequence`.
inline std::int32_t after(std::int32_t sequence, std::int32_t count) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) +
                                   static_cast<std::uint32_t>(count));
}

}  // namespace headrace
