// The page-locked parts of host space. Copies to and from page-locked memory run by themselves at full speed
// (55 GB/s measured against 4.3). For all other memory the driver copies in the calling thread.
//
// Page-locking 256 MB takes 100 ms and waits for running kernels, so it happens at two moments only:
// - when the core opens, for the first `bytes` of host space. All cores touch the pages first (most of the cost is
//   in that), with huge pages if the system has them;
// - when a copy first touches a chunk beyond that and no kernel is running on any GPU of this process. In this way a program
//   that fills its data before its first kernel gets all of it locked without asking for it. In the middle of a run the
//   copy holds up launches until the kernels that run are over, for a limited time, and then locks a quarter more than
//   is locked already: a few such pauses lock all that a program out of core uses.
// A copy that still meets unlocked memory takes the driver's slow path and is counted.
//
// Invariant: a registration never overlaps another, and a copy given to the driver never spans two (CUDA looks up only
// the start of a copy).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/api.h"

namespace headrace {

class HostPins {
 public:
  static constexpr std::uint64_t kChunk = std::uint64_t{64} << 20;

  /// Registers a host space of `reserve` bytes and locks its first `bytes`. Returns the driver's code.
  int add(const GpuApi& api, void* space, std::uint64_t bytes, std::uint64_t reserve);
  /// Forgets a host space and unlocks its locked parts (without an API they stay locked).
  void remove(const GpuApi* api, void* space);
  /// The number of the `bytes` from `pointer` on in one page-locked piece; 0 when the first is not locked.
  std::uint64_t locked(const void* pointer, std::uint64_t bytes);
  /// Locks the chunks that hold `bytes` from `pointer` on, if they belong to a known host space; with `ahead` also further
  /// chunks behind them, a quarter of what is locked. Call it only while no kernel runs.
  void lockChunks(const GpuApi& api, const void* pointer, std::uint64_t bytes, bool ahead = false);
  /// Whether the system would lock the memory at `pointer`, as far as it has said.
  bool mayLock(const void* pointer);

  /// Bytes copied from or to memory that was not locked.
  std::atomic<std::uint64_t> slowBytes{0};

 private:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t end;
  };
  struct Arena {
    std::uint64_t begin;
    std::uint64_t end;
    std::vector<Piece> pieces;  // in order of address
    bool refused;               // the system said no once: do not ask again
  };
  static void touch(std::uint64_t begin, std::uint64_t end);
  Arena* find(std::uint64_t address);

  std::mutex lock_;
  std::vector<Arena> arenas_;
};

/// The one of each driver library.
HostPins& hostPins(std::int32_t spaceKind);

}  // namespace headrace
