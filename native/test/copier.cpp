// The copy engine of emulated devices in the message layer (mpi/copier.h).
#include "mpi/copier.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "machine.h"

namespace headrace::test {
namespace {

using mpi::Copier;

constexpr std::size_t kBytes = 4096;
constexpr std::int64_t kSpin = 20'000;

/// Waits as the comm thread does: the copier unparks it after each job.
void awaitCopies(const Copier& copier, FutexToken& comm, std::uint64_t number) {
  while (copier.done() < number) comm.park(-1);
}

Add copierWakes("a copy engine that waits awake, or has fallen asleep, takes the next job", [] {
  FutexToken comm;
  Copier copier(comm, kSpin);
  std::vector<std::uint8_t> from(kBytes);
  std::vector<std::uint8_t> to(kBytes);
  // Shorter than the wait before its sleep, about as long as that, and longer.
  for (const int pause : {0, 10, 20, 60, 70, 75, 80, 200, 2000}) {
    for (int round = 0; round < 20; ++round) {
      std::memset(from.data(), pause + round, kBytes);
      awaitCopies(copier, comm, copier.copy(to.data(), from.data(), kBytes));
      CHECK(to == from);
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
    }
  }
});

Add copierOrder("copies are made in order, and those that are submitted are made before the end",
                [] {
                  FutexToken comm;
                  std::vector<std::uint8_t> chain(101 * kBytes);
                  std::memset(chain.data(), 7, kBytes);
                  {
                    Copier copier(comm, kSpin);
                    // Each copies what the one before has written.
                    for (std::size_t i = 0; i < 100; ++i) {
                      copier.copy(&chain[(i + 1) * kBytes], &chain[i * kBytes], kBytes);
                    }
                    CHECK(copier.busy() || copier.done() == 100);
                  }
                  for (const std::uint8_t byte : chain) CHECK(byte == 7);
                });

}  // namespace
}  // namespace headrace::test
