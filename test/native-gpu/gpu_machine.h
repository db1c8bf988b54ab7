// The equipment of the native GPU tests: a core on CUDA, on real GPUs or on the stub, and access to the stub's state.
//
// The same tests run on both: memory of a GPU is read and written by copies only. On the stub each test must also
// leave no broken rule and no live object behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine.h"

namespace headrace::test {

/// The stub driver that is loaded, or nothing on a machine with real GPUs.
class Stub {
 public:
  static bool present();
  static std::string violations();
  static std::uint64_t calls(const char* call);
  static void fault(const char* call, std::uint64_t nth, int code);
  static void reset(int devices, bool peers = true, unsigned seed = 1);
  static std::uint64_t live();
  /// Streams wait for a dead context for ever: then objects are left behind on purpose.
  static bool stuck();
  static std::uint64_t pageable();
};

enum class On { any, stubOnly, realOnly };

/// A test that needs so many GPUs; on the stub it runs with several seeds of the adversary.
struct AddGpu {
  AddGpu(const char* name, int gpus, std::function<void()> body, On on = On::any);
};

CoreOptions gpuOptions(std::int32_t gpus, std::uint64_t bytes = 1 << 20);

/// Queues of a core with one worker and `streams` compute streams per GPU.
struct Layout {
  std::int32_t gpus;
  std::int32_t streams = 1;
  std::int32_t perGpu() const { return streams + 2 + gpus - 1; }
  std::int32_t compute(int gpu, int stream = 0) const { return 1 + (gpu - 1) * perGpu() + stream; }
  std::int32_t in(int gpu) const { return compute(gpu) + streams; }
  std::int32_t out(int gpu) const { return compute(gpu) + streams + 1; }
  /// The queue of `gpu` that copies from `peer`.
  std::int32_t from(int gpu, int peer) const {
    return compute(gpu) + streams + 2 + (peer < gpu ? peer - 1 : peer - 2);
  }
};

/// Waits for an event and expects its status.
inline void expect(Machine& machine, Event event, std::int32_t status = Status::ok) {
  machine.finish(event);
  if (machine.status(event) == status) return;
  std::fprintf(stderr, "status %d, not %d: %s\n", machine.status(event), status,
               machine.core->lastError(event.queue).c_str());
  std::exit(1);
}

}  // namespace headrace::test
