// A kernel spins on a word in device memory while the runtime delivers it: on no path may the runtime wait for the
// kernel (hazards S5 and H8). The network's paths have their own test.
#include <chrono>

#include "gpu/cuda/kernels_ptx.h"
#include "gpu/device.h"
#include "gpu_machine.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kGo = 0x600d;
constexpr std::uint64_t kLargest = std::uint64_t{4} << 20;
/// The word is the last one delivered, so all of the transfer has to happen while the kernel spins.
constexpr double kSeen = kLargest;
constexpr double kMemory = 2.0 * kLargest;

struct Shape {
  double blocks;
  double threads;
};

/// Starts the kernel on GPU 1, delivers, and expects the kernel to have seen the word within 10 s.
template <typename Deliver>
void spinWhile(Machine& machine, const Layout& layout, Deliver deliver) {
  for (const Shape shape : {Shape{1, 1}, Shape{208, 128}}) {
    for (const double bytes : {8.0, 4096.0, 65536.0, static_cast<double>(kLargest)}) {
      const double word = bytes - 8;
      // Finished before the kernel starts: on a GPU the end of a short command may be seen only together with what
      // follows it in its stream (events.cpp), and the delivery must come after it.
      expect(machine, machine.fill(layout.compute(1), 0, kMemory, 0));
      const Event kernel = machine.exec(layout.compute(1), "await_word", 2,
                                        {word, kSeen, kGo, shape.blocks, shape.threads});
      machine.publish();
      while (ahead(machine.control(layout.compute(1), Control::submitted).load(), kernel.sequence) <
             0) {
        sched_yield();
      }
      const std::int64_t start = now();
      expect(machine, deliver(word, bytes));
      expect(machine, kernel);
      CHECK(now() - start < std::int64_t{10} * 1000000000);
      expect(machine, machine.copy(layout.out(1), 0, kSeen, 1, kSeen, 8, kernel));
      CHECK(*machine.at<std::int64_t>(0, kSeen) == kGo);
    }
  }
}

AddGpu fromHost("a spinning kernel gets its word from the host, 8 B to 4 MiB, one thread and many",
                1, [] {
                  Machine machine(gpuOptions(1, 2 * kLargest));
                  const Layout layout{1};
                  spinWhile(machine, layout, [&](double word, double bytes) {
                    *machine.at<std::int64_t>(0, word) = kGo;
                    const Event sent = machine.copy(layout.in(1), 1, 0, 0, 0, bytes);
                    machine.finish(sent);
                    *machine.at<std::int64_t>(0, word) = 0;
                    return sent;
                  });
                });

AddGpu fromPeer(
    "a spinning kernel gets its word from another GPU, 8 B to 4 MiB, one thread and many", 2, [] {
      Machine machine(gpuOptions(2, 2 * kLargest));
      const Layout layout{2};
      spinWhile(machine, layout, [&](double word, double bytes) {
        *machine.at<std::int64_t>(0, 0) = kGo;
        Event event = machine.fill(layout.compute(2), 0, bytes, 0);
        event = machine.copy(layout.in(2), 2, word, 0, 0, 8, event);
        return machine.copy(layout.from(1, 2), 1, 0, 2, 0, bytes, event);
      });
    });

// What programs must not do, and why every stream here is non-blocking: a kernel on the legacy NULL stream holds up all
// streams made without that flag (Open MPI's own are), so its word never gets there. Expected to hang; ended by a
// stream of the runtime. In a process of its own, because nothing else may meet the NULL stream.
AddGpu nullStream(
    "alone: a kernel on the NULL stream hangs what a blocking stream delivers", 1,
    [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      expect(machine, machine.fill(layout.compute(1), 0, 64, 0));
      auto& device = *static_cast<GpuDevice*>(machine.core->runtime().spaces[1].device);
      const GpuApi& api = *device.api;
      CHECK(api.contextSetCurrent(device.context) == 0);
      void* module = nullptr;
      void* function = nullptr;
      void* blocking = nullptr;
      void* delivered = nullptr;
      CHECK(api.moduleLoad(&module, kBasicPtx, 0, nullptr, nullptr) == 0);
      CHECK(api.moduleFunction(&function, module, "headrace_await_word") == 0);
      CHECK(api.streamCreate(&blocking, 0, 0) == 0);
      CHECK(api.eventCreate(&delivered, gpu::kEventNoTiming) == 0);
      std::uint64_t word = machine.core->runtime().spaces[1].base;
      std::uint64_t seen = word + 8;
      std::int64_t value = kGo;
      void* arguments[] = {&word, &seen, &value};
      CHECK(api.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == 0);
      *machine.at<std::int64_t>(0, 0) = kGo;
      CHECK(api.copyToDevice(word, machine.at<void>(0, 0), 8, blocking) == 0);
      CHECK(api.eventRecord(delivered, blocking) == 0);
      const std::int64_t start = now();
      while (now() - start < std::int64_t{2} * 1000000000) {
        CHECK(api.eventQuery(delivered) == gpu::kNotReady);
        sched_yield();
      }
      expect(machine, machine.copy(layout.in(1), 1, 0, 0, 0, 8));
      int code;
      while ((code = api.eventQuery(delivered)) == gpu::kNotReady) {
        CHECK(now() - start < std::int64_t{10} * 1000000000);
        sched_yield();
      }
      CHECK(code == 0);
      expect(machine, machine.copy(layout.out(1), 0, 8, 1, 8, 8));
      CHECK(*machine.at<std::int64_t>(0, 8) == kGo);
      api.eventDestroy(delivered);
      api.streamDestroy(blocking);
      api.moduleUnload(module);
    },
    On::realOnly);

}  // namespace
}  // namespace headrace::test
