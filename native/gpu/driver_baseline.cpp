// Loops by hand over the CUDA driver: see gpu/driver_baseline.h.
#include "gpu/driver_baseline.h"

#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/core_error.h"
#include "gpu/api.h"
#include "gpu/cuda/kernels_ptx.h"

namespace headrace {

namespace {

const GpuApi& api() {
  std::string reason;
  const GpuApi* found = cudaApi(reason);
  if (found == nullptr) throw CoreError("DRIVER_UNAVAILABLE", "cuda: " + reason);
  return *found;
}

void check(int code, const char* call) {
  if (code != 0) throw CoreError("DRIVER", std::string(call) + ": " + gpuErrorText(api(), code));
}

/// One GPU with the objects of a loop; its context is current on the thread that made it.
class Gpu {
 public:
  Gpu(std::int32_t ordinal, std::size_t streams, std::size_t events, std::uint64_t bytes) {
    check(api().deviceGet(&device_, ordinal), "cuDeviceGet");
    check(api().contextRetain(&context, device_), "cuDevicePrimaryCtxRetain");
    use();
    check(api().moduleLoad(&module_, kBasicPtx, 0, nullptr, nullptr), "cuModuleLoadDataEx");
    check(api().moduleFunction(&function_, module_, "headrace_empty"), "cuModuleGetFunction");
    this->streams.resize(streams);
    for (void*& stream : this->streams) {
      check(api().streamCreate(&stream, gpu::kStreamNonBlocking, 0), "cuStreamCreate");
    }
    this->events.resize(events);
    for (void*& event : this->events) {
      check(api().eventCreate(&event, gpu::kEventNoTiming), "cuEventCreate");
    }
    if (bytes > 0) {
      check(api().memoryAlloc(&memory, bytes), "cuMemAlloc");
      check(api().hostAlloc(&host, bytes, gpu::kHostPortable), "cuMemHostAlloc");
    }
  }
  ~Gpu() {
    use();
    for (void* event : events) api().eventDestroy(event);
    for (void* stream : streams) api().streamDestroy(stream);
    if (memory != 0) api().memoryFree(memory);
    if (host != nullptr) api().hostFree(host);
    if (module_ != nullptr) api().moduleUnload(module_);
    api().contextSetCurrent(nullptr);
    api().contextRelease(device_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void use() { check(api().contextSetCurrent(context), "cuCtxSetCurrent"); }
  void launch(std::size_t stream) {
    check(api().launch(function_, 1, 1, 1, 1, 1, 1, 0, streams[stream], nullptr, nullptr),
          "cuLaunchKernel");
  }
  void record(std::size_t event, std::size_t stream) {
    check(api().eventRecord(events[event], streams[stream]), "cuEventRecord");
  }
  void drain() {
    for (std::size_t s = 0; s < streams.size(); ++s) {
      record(0, s);
      int code;
      while ((code = api().eventQuery(events[0])) == gpu::kNotReady) sched_yield();
      check(code, "cuEventQuery");
    }
  }

  void* context = nullptr;
  std::vector<void*> streams;
  std::vector<void*> events;
  std::uint64_t memory = 0;
  void* host = nullptr;

 private:
  int device_ = 0;
  void* module_ = nullptr;
  void* function_ = nullptr;
};

void wait(Gpu& of, std::size_t stream, void* event) {
  check(api().streamWaitEvent(of.streams[stream], event, 0), "cuStreamWaitEvent");
}

/// Runs once for warming up and once for the clock.
template <typename Once>
double timed(std::int32_t count, Once once) {
  once(count / 10 + 1);
  const std::int64_t start = now();
  once(count);
  return static_cast<double>(now() - start) / count;
}

double launches(std::int32_t count) {
  Gpu gpu(0, 1, 1, 0);
  return timed(count, [&](std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) gpu.launch(0);
    gpu.drain();
  });
}

double streamChain(std::int32_t count) {
  Gpu gpu(0, 2, 3, 0);
  return timed(count, [&](std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) {
      const std::size_t s = static_cast<std::size_t>(i) % 2;
      gpu.launch(s);
      gpu.record(1 + s, s);
      wait(gpu, 1 - s, gpu.events[1 + s]);
    }
    gpu.drain();
  });
}

double deviceChain(std::int32_t count) {
  Gpu a(0, 1, 2, 0);
  Gpu b(1, 1, 2, 0);
  Gpu* gpus[] = {&a, &b};
  return timed(count, [&](std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) {
      Gpu& here = *gpus[i % 2];
      here.use();
      here.launch(0);
      here.record(1, 0);
      wait(*gpus[1 - i % 2], 0, here.events[1]);
    }
    a.use();
    a.drain();
    b.use();
    b.drain();
  });
}

double stencil(std::int32_t count) {
  constexpr std::size_t kWidth = 4;
  Gpu gpu(0, kWidth, 1 + 2 * kWidth, 0);
  return timed(count, [&](std::int32_t n) {
    for (std::int32_t step = 0; step * static_cast<std::int32_t>(kWidth) < n; ++step) {
      const std::size_t mine = 1 + (static_cast<std::size_t>(step) % 2) * kWidth;
      const std::size_t before = 1 + (1 - static_cast<std::size_t>(step) % 2) * kWidth;
      for (std::size_t x = 0; x < kWidth; ++x) {
        if (step > 0 && x > 0) wait(gpu, x, gpu.events[before + x - 1]);
        if (step > 0 && x + 1 < kWidth) wait(gpu, x, gpu.events[before + x + 1]);
        gpu.launch(x);
        gpu.record(mine + x, x);
      }
    }
    gpu.drain();
  });
}

double parallel(std::int32_t gpus, std::int32_t count) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<std::size_t>(gpus));
  std::atomic<std::int64_t> start{0};
  std::atomic<std::int64_t> end{0};
  for (std::int32_t g = 0; g < gpus; ++g) {
    threads.emplace_back([&, g] {
      bool counted = false;
      try {
        Gpu gpu(g, 1, 1, 0);
        gpu.launch(0);
        gpu.drain();
        counted = true;
        if (ready.fetch_add(1) + 1 == gpus) start = now();
        while (ready.load() < gpus) sched_yield();
        for (std::int32_t i = 0; i < count; ++i) gpu.launch(0);
        gpu.drain();
        const std::int64_t done = now();
        for (std::int64_t seen = end; seen < done && !end.compare_exchange_weak(seen, done);) {
        }
      } catch (const CoreError& error) {
        errors[static_cast<std::size_t>(g)] = error.what();
        if (!counted) ready.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& error : errors) {
    if (!error.empty()) throw CoreError("DRIVER", error);
  }
  return static_cast<double>(end - start) / count;
}

double copies(const BaselineLoop& loop) {
  Gpu here(loop.to, 1, 1, loop.bytes);
  if (loop.name == "d2d") {
    Gpu there(loop.from, 1, 1, loop.bytes);
    here.use();
    const int code = api().contextEnablePeer(there.context, 0);
    if (code != gpu::kPeerAlreadyEnabled) check(code, "cuCtxEnablePeerAccess");
    return timed(loop.count, [&](std::int32_t n) {
      for (std::int32_t i = 0; i < n; ++i) {
        check(api().copyPeer(here.memory, here.context, there.memory, there.context, loop.bytes,
                             here.streams[0]),
              "cuMemcpyPeerAsync");
      }
      here.drain();
    });
  }
  return timed(loop.count, [&](std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) {
      check(loop.name == "h2d"
                ? api().copyToDevice(here.memory, here.host, loop.bytes, here.streams[0])
                : api().copyToHost(here.host, here.memory, loop.bytes, here.streams[0]),
            "cuMemcpyAsync");
    }
    here.drain();
  });
}

}  // namespace

double runBaselineLoop(const BaselineLoop& loop) {
  if (loop.count < 1) throw CoreError("INVALID_OPTION", "a raw loop needs a count of at least 1");
  if (loop.name == "launch") return launches(loop.count);
  if (loop.name == "streams") return streamChain(loop.count);
  if (loop.name == "devices") return deviceChain(loop.count);
  if (loop.name == "stencil") return stencil(loop.count);
  if (loop.name == "parallel") return parallel(loop.gpus, loop.count);
  if (loop.name == "h2d" || loop.name == "d2h" || loop.name == "d2d") {
    if (loop.bytes == 0) throw CoreError("INVALID_OPTION", "a raw copy needs bytes");
    return copies(loop);
  }
  throw CoreError("INVALID_OPTION", "there is no raw loop '" + loop.name + "'");
}

}  // namespace headrace
