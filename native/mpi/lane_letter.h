// The format of letters (lane_server.h has their meaning).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "letter_transport.h"

namespace headrace::mpi {

/// Values of a letter before its pairs.
constexpr std::size_t kHeader = 4;
/// First values of letters that are no versions.
constexpr double kAnnouncement = -1;
constexpr double kAsked = -2;
constexpr double kDeclined = -3;
constexpr double kRefused = -4;
constexpr double kTaken = -5;
/// Values of a decline before its pairs.
constexpr std::size_t kDeclineHeader = 3;
/// Tags of bytes: one per lane, between those of control messages and of letters (session.cpp, session_letters.cpp).
constexpr std::int32_t kFirstTag = 32001;
constexpr std::int32_t kLastTag = 32766;

/// A number that is whole and not negative. Signed: other conversions take more than one instruction.
inline std::size_t wholeOf(double value) {
  return static_cast<std::size_t>(static_cast<std::int64_t>(value));
}

/// `most` is below 2^63, so whatever passes the first comparisons can be converted. NaN does not pass them.
inline bool isWhole(double value, double most) {
  return value >= 0 && value <= most &&
         value == static_cast<double>(static_cast<std::int64_t>(value));
}

/// Values that `bytes` bytes take.
inline std::size_t valuesOf(double bytes) {
  return (wholeOf(bytes) + sizeof(double) - 1) / sizeof(double);
}

/// Writes the bytes of a version, which end its letter.
inline void fill(Letter& letter, const void* data, double bytes) {
  if (bytes == 0) return;
  std::memcpy(letter.data() + letter.size() - valuesOf(bytes), data, wholeOf(bytes));
}

inline bool isAnnouncement(const Letter& letter) { return letter[0] == kAnnouncement; }

/// The values of a letter from its era on.
inline const double* contentsOf(const Letter& letter) {
  return letter.data() + (isAnnouncement(letter) ? 1 : 0);
}

/// Values of an announcement behind its pairs: its offer; of a rank with GPUs also the space and the place of the bytes, and the
/// priority of their transfers.
constexpr std::size_t kShortTail = 1;
constexpr std::size_t kLongTail = 4;

/// The pairs of a letter that are sound: whole ones, as many as it says.
inline std::size_t pairsOf(const double* contents) { return wholeOf(contents[3]); }

/// What stands behind the pairs of an announcement that was kept: the rank from which it came is its last value.
struct AnnouncementTail {
  double offer = 0;
  std::int32_t rank = 0;
  std::int32_t space = 0;
  double offset = 0;
  double priority = 0;
};

inline AnnouncementTail tailOf(const Letter& letter) {
  const double* contents = contentsOf(letter);
  const double* tail = contents + kHeader + pairsOf(contents);
  const auto count = static_cast<std::size_t>(letter.data() + letter.size() - tail) - 1;
  AnnouncementTail found;
  found.offer = tail[0];
  found.rank = static_cast<std::int32_t>(letter.back());
  if (count < kLongTail) return found;
  found.space = static_cast<std::int32_t>(tail[1]);
  found.offset = tail[2];
  found.priority = tail[3];
  return found;
}

}  // namespace headrace::mpi
