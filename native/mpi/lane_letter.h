// The format of letters (lane_server.h has their meaning).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "letter_transport.h"

namespace headrace::mpi {

/// Values of a letter before its pairs.
constexpr std::size_t kHeader = 4;
/// First values of letters that are no versions.
constexpr double kAnnouncement = -1;
constexpr double kAsked = -2;
constexpr double kDeclined = -3;
constexpr double kRefused = -4;
/// Values of a decline before its pairs.
constexpr std::size_t kDeclineHeader = 3;
/// Tags of bytes: one per lane, above those of the engine's own transfers (devices/network/fetches.ts).
constexpr std::int32_t kFirstTag = 32001;
constexpr std::int32_t kLastTag = 32766;

inline bool isWhole(double value, double most) {
  return value >= 0 && value <= most && value == std::floor(value);
}

/// Values that `bytes` bytes take.
inline std::size_t valuesOf(double bytes) {
  return (static_cast<std::size_t>(bytes) + sizeof(double) - 1) / sizeof(double);
}

inline bool isAnnouncement(const Letter& letter) { return letter[0] == kAnnouncement; }

/// The values of a letter from its era on.
inline const double* contentsOf(const Letter& letter) {
  return letter.data() + (isAnnouncement(letter) ? 1 : 0);
}

/// The pairs of a letter that are sound: whole ones, as many as it says.
inline std::size_t pairsOf(const double* contents) { return static_cast<std::size_t>(contents[3]); }

}  // namespace headrace::mpi
