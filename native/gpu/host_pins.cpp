// Page-locking of host space: see gpu/host_pins.h.
#include "gpu/host_pins.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace headrace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

HostPins& hostPins(std::int32_t spaceKind) {
  static HostPins* pins = new HostPins[2];
  return pins[spaceKind & 1];  // cuda 2, hip 3
}

/// Makes the pages exist, with several threads: zeroing them is most of the cost of page-locking.
void HostPins::touch(std::uint64_t begin, std::uint64_t end) {
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  const std::uint64_t share = std::uint64_t{256} << 20;
  const auto wanted = static_cast<unsigned>(std::min<std::uint64_t>((end - begin) / share, 8));
  const unsigned count = std::min(wanted, std::max(1u, std::thread::hardware_concurrency()));
  if (count < 2) return;  // registration touches them itself
  const std::uint64_t page = 1 << 21;
  const std::uint64_t step = ((end - begin) / count + page - 1) / page * page;
  std::vector<std::thread> threads;
  for (std::uint64_t at = begin; at < end; at += step) {
    const std::uint64_t bytes = std::min(step, end - at);
    threads.emplace_back(
        [at, bytes] { madvise(reinterpret_cast<void*>(at), bytes, MADV_POPULATE_WRITE); });
  }
  for (auto& thread : threads) thread.join();
}

HostPins::Arena* HostPins::find(std::uint64_t address) {
  for (Arena& arena : arenas_) {
    if (address >= arena.begin && address < arena.end) return &arena;
  }
  return nullptr;
}

int HostPins::add(const GpuApi& api, void* space, std::uint64_t bytes, std::uint64_t reserve) {
  const auto begin = reinterpret_cast<std::uint64_t>(space);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t end = begin + (std::max(reserve, bytes) + page - 1) / page * page;
  Arena arena{begin, end, {}, false};
  if (bytes > 0) {
    const std::uint64_t length = std::min((bytes + page - 1) / page * page, end - begin);
    touch(begin, begin + length);
    const int code = api.hostRegister(space, length, gpu::kHostPortable);
    if (code != 0) return code;
    arena.pieces.push_back({begin, begin + length});
  }
  std::lock_guard<std::mutex> guard(lock_);
  arenas_.push_back(std::move(arena));
  return 0;
}

void HostPins::remove(const GpuApi* api, void* space) {
  std::lock_guard<std::mutex> guard(lock_);
  for (auto arena = arenas_.begin(); arena != arenas_.end(); ++arena) {
    if (arena->begin != reinterpret_cast<std::uint64_t>(space)) continue;
    for (const Piece& piece : arena->pieces) {
      if (api != nullptr) api->hostUnregister(reinterpret_cast<void*>(piece.begin));
    }
    arenas_.erase(arena);
    return;
  }
}

std::uint64_t HostPins::locked(const void* pointer, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  std::lock_guard<std::mutex> guard(lock_);
  const Arena* arena = find(address);
  if (arena == nullptr) return 0;
  for (const Piece& piece : arena->pieces) {
    if (address >= piece.begin && address < piece.end) {
      return std::min(bytes, piece.end - address);
    }
  }
  return 0;
}

bool HostPins::mayLock(const void* pointer) {
  std::lock_guard<std::mutex> guard(lock_);
  const Arena* arena = find(reinterpret_cast<std::uint64_t>(pointer));
  return arena != nullptr && !arena->refused;
}

void HostPins::lockChunks(const GpuApi& api, const void* pointer, std::uint64_t bytes, bool ahead) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  std::lock_guard<std::mutex> guard(lock_);
  Arena* arena = find(address);
  if (arena == nullptr || arena->refused) return;
  std::uint64_t more = 0;
  if (ahead) {
    for (const Piece& piece : arena->pieces) more += piece.end - piece.begin;
    more = more / 4 / kChunk * kChunk;
  }
  std::uint64_t at = arena->begin + (address - arena->begin) / kChunk * kChunk;
  const std::uint64_t limit = std::min(address + bytes, arena->end);
  while (at < limit) {
    // The rest of the chunk around `at` beside the pieces that exist already.
    std::uint64_t end =
        std::min(arena->begin + ((at - arena->begin) / kChunk + 1) * kChunk + more, arena->end);
    std::uint64_t next = end;
    for (const Piece& piece : arena->pieces) {
      if (piece.begin <= at && at < piece.end) {
        next = at = std::max(at, piece.end);
        end = at;
      } else if (piece.begin > at && piece.begin < end) {
        end = next = piece.begin;
      }
    }
    if (end > at) {
      touch(at, end);
      if (api.hostRegister(reinterpret_cast<void*>(at), end - at, gpu::kHostPortable) != 0) {
        arena->refused = true;
        return;
      }
      const Piece piece{at, end};
      arena->pieces.insert(
          std::upper_bound(arena->pieces.begin(), arena->pieces.end(), piece,
                           [](const Piece& a, const Piece& b) { return a.begin < b.begin; }),
          piece);
    }
    at = next;
  }
}

}  // namespace headrace
