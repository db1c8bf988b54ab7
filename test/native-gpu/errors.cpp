// Failures: refused calls, lost devices, forbidden calls, without a hang or a leak.
#include "gpu/device.h"
#include "gpu/driver.h"
#include "gpu_machine.h"

namespace headrace::test {
namespace {

AddGpu refused(
    "a launch that the driver refuses fails with its name and number, and only that one", 1,
    [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      Stub::fault("cuLaunchKernel", 2, 701);
      const Event first = machine.exec(layout.compute(1), "empty", 0, {});
      const Event second = machine.exec(layout.compute(1), "empty", 0, {});
      const Event third = machine.exec(layout.compute(1), "empty", 0, {});
      machine.finish(third);
      CHECK(machine.status(first) == Status::ok && machine.status(third) == Status::ok);
      CHECK(machine.status(second) == Status::driver);
      CHECK(machine.core->lastError(layout.compute(1)).find("(701)") != std::string::npos);
    },
    On::stubOnly);

AddGpu lost(
    "a device that is lost fails everything on it and nothing hangs", 2,
    [] {
      Machine machine(gpuOptions(2));
      const Layout layout{2};
      expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {0, 8, 1}));
      const Event bad = machine.exec(layout.compute(1), "illegal_address", 0, {}, {}, 3);
      Event event = bad;
      for (int i = 0; i < 50; ++i) {
        event = machine.exec(layout.compute(1), "empty", 0, {}, {}, 3);
        machine.copy(layout.out(1), 0, 0, 1, 0, 8, event);
        machine.copy(layout.from(2, 1), 2, 0, 1, 0, 8, event);
      }
      machine.finish(event);
      CHECK(machine.status(event) == Status::deviceLost);
      CHECK(machine.shared(Shared::cancel + 3).load() != 0);
      expect(machine, machine.copy(layout.in(1), 1, 0, 0, 0, 8), Status::deviceLost);
      CHECK(machine.core->lastError(layout.compute(1)).find("ILLEGAL_ADDRESS") !=
            std::string::npos);
    },
    On::stubOnly);

// A real lost context stays lost for the process: to be run alone, in a process of its own.
AddGpu reallyLost(
    "alone: an illegal address loses a real device", 1,
    [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      machine.exec(layout.compute(1), "illegal_address", 0, {});
      const Event event = machine.copy(layout.in(1), 1, 0, 0, 0, 8);
      machine.finish();
      CHECK(machine.status(event) == Status::ok || machine.status(event) == Status::deviceLost);
      expect(machine, machine.exec(layout.compute(1), "empty", 0, {}), Status::deviceLost);
      CHECK(machine.core->lastError(layout.compute(1)).find("ILLEGAL_ADDRESS") !=
            std::string::npos);
    },
    On::realOnly);

AddGpu everyCall(
    "an error or a loss at any call ends in a status or an error, never in a hang or a leak", 2,
    [] {
      const char* const calls[] = {"cuDevicePrimaryCtxRetain",
                                   "cuMemGetInfo",
                                   "cuMemAlloc",
                                   "cuMemHostRegister",
                                   "cuStreamCreateWithPriority",
                                   "cuEventCreate",
                                   "cuModuleLoadDataEx",
                                   "cuModuleGetFunction",
                                   "cuCtxEnablePeerAccess",
                                   "cuEventRecord",
                                   "cuEventQuery",
                                   "cuStreamWaitEvent",
                                   "cuMemcpyHtoDAsync",
                                   "cuMemcpyDtoHAsync",
                                   "cuMemcpyPeerAsync",
                                   "cuMemsetD8Async",
                                   "cuLaunchKernel",
                                   "cuCtxSetCurrent",
                                   "cuIpcGetMemHandle",
                                   "cuPointerSetAttribute"};
      for (const char* call : calls) {
        for (const int code : {1, 2, 700}) {
          if (std::getenv("HEADRACE_TEST_VERBOSE") != nullptr) std::printf("  %s %d\n", call, code);
          Stub::reset(2);
          Stub::fault(call, 2, code);
          bool opened = false;
          try {
            Machine machine(gpuOptions(2));
            opened = true;
            const Layout layout{2};
            Event event = machine.copy(layout.in(1), 1, 0, 0, 0, 64);
            for (int i = 0; i < 20; ++i) {
              event = machine.exec(layout.compute(1), "fill_f64", 1, {0, 8, 1}, event, 1);
              event = machine.copy(layout.from(2, 1), 2, 0, 1, 0, 64, event);
              event = machine.fill(layout.compute(2), 64, 64, 1, event);
              event = machine.copy(layout.out(2), 0, 128, 2, 0, 64, event);
            }
            machine.finish();
          } catch (const CoreError& error) {
            CHECK(!opened && error.what()[0] != '\0');
          }
          Stub::violations();  // a call that failed may break rules of the calls after it
          if (Stub::live() == 0 || Stub::stuck()) continue;
          std::fprintf(stderr, "%s failing with %d leaves %llu objects\n", call, code,
                       static_cast<unsigned long long>(Stub::live()));
          std::exit(1);
        }
      }
    },
    On::stubOnly);

AddGpu tooLarge("more memory than a GPU has is OUT_OF_MEMORY with the sizes", 1, [] {
  CoreOptions options = gpuOptions(1);
  options.gpuBytes = std::uint64_t{1} << 50;
  try {
    Machine machine(options);
    CHECK(!"opened");
  } catch (const CoreError& error) {
    CHECK(std::string(error.code()) == "OUT_OF_MEMORY");
    CHECK(std::string(error.what()).find("cuMemAlloc") != std::string::npos);
  }
});

AddGpu forbidden(
    "with checks on, a call that could wait for a running kernel is refused by name", 1, [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      Event event = machine.fill(layout.compute(1), 0, 64, 0);
      const Event kernel = machine.exec(layout.compute(1), "await_word", 2, {0, 8, 5}, event);
      machine.publish();
      while (machine.control(layout.compute(1), Control::submitted).load() != kernel.sequence) {
        sched_yield();
      }
      DeviceHandle device = machine.core->runtime().spaces[1].device;
      DeviceAddress address = 0;
      CHECK(cudaDriver()->memoryAlloc(device, 64, &address) == DriverStatus::refused);
      CHECK(std::string(cudaDriver()->errorText(device)).find("cuMemAlloc while kernels run") == 0);
      void* stream = nullptr;
      CHECK(cudaDriver()->streamCreate(device, StreamPurpose::compute, &stream) ==
            DriverStatus::refused);
      *machine.at<std::int64_t>(0, 0) = 5;
      expect(machine, machine.copy(layout.in(1), 1, 0, 0, 0, 8));
      expect(machine, kernel);
    });

AddGpu cancelled("a kernel's own failure cancels its run and nothing else", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  const Event bad = machine.exec(layout.compute(1), "fail", 0, {17}, {}, 2);
  machine.finish(bad);
  const Event after = machine.exec(layout.compute(1), "empty", 0, {}, {}, 2);
  const Event other = machine.exec(layout.compute(1), "empty", 0, {}, {}, 4);
  machine.finish(other);
  CHECK(machine.status(bad) == 17 && machine.status(after) == Status::cancelled);
  CHECK(machine.status(other) == Status::ok);
});

AddGpu mismatch(
    "a kernel that finds its inputs wrong reports it, writes nothing and cancels its run", 1, [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      const std::int32_t queue = layout.compute(1);
      machine.fill(queue, 0, 4096, 0);
      // (t, p) = (1, 4) of epoch 2, 64 bytes at 0, from nothing; then (2, 4) at 1024 from it, twice.
      machine.exec(queue, "taskbench", 1, {0, 1, 4, 2, 64, 10});
      const Event good =
          machine.exec(queue, "taskbench", 3, {1024, 0, 0, 2, 4, 2, 64, 0, 4, 4}, {}, 3);
      const Event bad =
          machine.exec(queue, "taskbench", 3, {2048, 0, 0, 2, 4, 2, 64, 0, 4, 5}, {}, 3);
      const Event stale = machine.exec(queue, "taskbench", 2, {2048, 0, 2, 4, 1, 64, 0, 4}, {}, 4);
      const Event out = machine.copy(layout.out(1), 0, 0, 1, 0, 4096, stale);
      expect(machine, out);
      CHECK(machine.status(good) == 0 && machine.status(bad) == 2 && machine.status(stale) == 1);
      CHECK(machine.shared(Shared::cancel + 3).load() != 0);
      const auto* pairs = machine.at<std::int64_t>(0, 1024);
      for (int k = 0; k < 4; ++k) CHECK(pairs[2 * k] == (2ll << 32) + 2 && pairs[2 * k + 1] == 4);
      CHECK(pairs[8] == 0 && machine.at<std::int64_t>(0, 2048)[0] == 0);
    });

AddGpu unknown(
    "a kernel that does not exist is unknown, one that leaves the memory is out of range", 1, [] {
      Machine machine(gpuOptions(1));
      const Layout layout{1};
      expect(machine, machine.put(layout.compute(1), Opcode::exec, 99999, 0, {}),
             Status::unknownKernel);
      expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {0, 1e9, 0}),
             Status::outOfRange);
    });

}  // namespace
}  // namespace headrace::test
