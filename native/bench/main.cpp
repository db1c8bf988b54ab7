// Overhead and bandwidth of the native layer against loops by hand, in one process: one JSON line per measurement with
// both times and their ratio. The loops by hand are those of gpu/driver_baseline.h. The other side writes the same work
// as command records into the rings, as the engine does, from one thread.
//
// usage: headrace_gpu_bench [gpus] [tasks]      (on the stub the numbers mean nothing)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/driver_baseline.h"
#include "machine.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

CoreOptions options(std::int32_t gpus, std::int32_t streams) {
  CoreOptions result;
  result.driver = "cuda";
  result.gpus = gpus;
  result.gpuBytes = 256 * kMiB;
  result.hostBytes = 256 * kMiB;
  result.pinnedBytes = 256 * kMiB;
  result.workers = 0;
  result.computeStreams = streams;
  result.ringRecords = 4096;
  return result;
}

std::int32_t kernelId(const char* name) { return Registry::instance().find(name, SpaceKind::cuda); }

struct Measured {
  double raw;
  double headrace;
};

/// Best of three of both sides, taken in turns so that clocks and neighbours disturb them alike.
template <typename Side>
Measured compare(const BaselineLoop& loop, Side side) {
  Measured best{1e300, 1e300};
  for (int i = 0; i < 3; ++i) {
    best.raw = std::min(best.raw, runBaselineLoop(loop));
    best.headrace = std::min(best.headrace, side());
  }
  return best;
}

void report(const char* name, const char* unit, Measured best, std::uint64_t bytes = 0) {
  std::printf("{\"bench\":\"%s\",\"unit\":\"%s\",\"raw\":%.1f,\"headrace\":%.1f,\"ratio\":%.3f",
              name, unit, best.raw, best.headrace, best.headrace / best.raw);
  if (bytes > 0) {
    std::printf(",\"rawGBs\":%.2f,\"headraceGBs\":%.2f", static_cast<double>(bytes) / best.raw,
                static_cast<double>(bytes) / best.headrace);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

/// Nanoseconds per task that `insert(i)` writes, until all are done.
template <typename Insert>
double timed(Machine& machine, std::int32_t count, Insert insert) {
  for (std::int32_t i = 0; i < count / 10 + 1; ++i) insert(i);
  machine.finish();
  const std::int64_t start = now();
  for (std::int32_t i = 0; i < count; ++i) {
    insert(i);
    if (i % 64 == 63) machine.publish();
  }
  machine.finish();
  return static_cast<double>(now() - start) / count;
}

void chain(std::int32_t count) {
  Machine machine(options(1, 1));
  const std::int32_t empty = kernelId("empty");
  report("chain of empty kernels", "ns/task", compare({"launch", 1, count, 0}, [&] {
           return timed(machine, count,
                        [&](std::int32_t) { machine.put(0, Opcode::exec, empty, 0, {}); });
         }));
}

void streams(std::int32_t count) {
  Machine machine(options(1, 2));
  const std::int32_t empty = kernelId("empty");
  Event last;
  report("chain over two streams", "ns/task", compare({"streams", 1, count, 0}, [&] {
           return timed(machine, count, [&](std::int32_t i) {
             last = machine.put(i % 2, Opcode::exec, empty, 0, {}, last);
           });
         }));
}

void stencil(std::int32_t count) {
  constexpr std::int32_t kWidth = 4;
  Machine machine(options(1, kWidth));
  const std::int32_t empty = kernelId("empty");
  Event before[kWidth];
  Event now[kWidth];
  report("stencil of width 4, 3 dependencies", "ns/task", compare({"stencil", 1, count, 0}, [&] {
           return timed(machine, count, [&](std::int32_t i) {
             const std::int32_t x = i % kWidth;
             if (x > 0 && x + 1 < kWidth) machine.hold(x, before[x - 1]);
             now[x] =
                 machine.put(x, Opcode::exec, empty, 0, {}, before[x + 1 < kWidth ? x + 1 : x - 1]);
             if (x + 1 == kWidth) std::copy(now, now + kWidth, before);
           });
         }));
}

void devices(std::int32_t count) {
  Machine machine(options(2, 1));
  const std::int32_t empty = kernelId("empty");
  Event last;
  report("chain over two GPUs", "ns/task", compare({"devices", 2, count, 0}, [&] {
           return timed(machine, count, [&](std::int32_t i) {
             last = machine.put(i % 2 == 0 ? 0 : 4, Opcode::exec, empty, 0, {}, last);
           });
         }));
}

void parallel(std::int32_t gpus, std::int32_t count) {
  Machine machine(options(gpus, 1));
  const std::int32_t empty = kernelId("empty");
  const std::int32_t perGpu = 3 + gpus - 1;
  const std::string name = "independent kernels on " + std::to_string(gpus) + " GPUs at once";
  report(name.c_str(), "ns/task and GPU", compare({"parallel", gpus, count, 0}, [&] {
           return timed(machine, count, [&](std::int32_t) {
             for (std::int32_t g = 0; g < gpus; ++g) {
               machine.put(g * perGpu, Opcode::exec, empty, 0, {});
             }
           });
         }));
}

void copies(std::int32_t gpus) {
  Machine machine(options(gpus, 1));
  const std::uint64_t bytes = 64 * kMiB;
  const auto size = static_cast<double>(bytes);
  const auto run = [&](const char* label, const char* raw, std::int32_t queue, std::int32_t to,
                       std::int32_t from) {
    const std::int32_t count = 40;
    report(label, "ns/copy",
           compare({raw, gpus, count, bytes},
                   [&] {
                     return timed(machine, count, [&](std::int32_t) {
                       machine.copy(queue, to, 0, from, size, size);
                     });
                   }),
           bytes);
  };
  run("h2d 64 MiB pinned", "h2d", 1, 1, 0);
  run("d2h 64 MiB pinned", "d2h", 2, 0, 1);
  if (gpus > 1) run("d2d 64 MiB", "d2d", 3, 1, 2);
}

}  // namespace
}  // namespace headrace::test

int main(int count, char** arguments) {
  using namespace headrace;
  using namespace headrace::test;
  std::int32_t gpus = 0;
  char reason[256] = "";
  if (findDriver("cuda")->probe(&gpus, reason, sizeof reason) != DriverStatus::ok) {
    std::fprintf(stderr, "no CUDA GPU: %s\n", reason);
    return 1;
  }
  if (count > 1) gpus = std::min(gpus, static_cast<std::int32_t>(std::atoi(arguments[1])));
  const std::int32_t tasks = count > 2 ? std::atoi(arguments[2]) : 50000;
  try {
    chain(tasks);
    streams(tasks);
    stencil(tasks);
    if (gpus > 1) devices(tasks);
    for (std::int32_t some = 2; some <= gpus; some *= 2) parallel(some, tasks);
    copies(std::min(gpus, 2));
  } catch (const CoreError& error) {
    std::fprintf(stderr, "%s: %s\n", error.code(), error.what());
    return 1;
  }
  return 0;
}
