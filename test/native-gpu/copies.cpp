// Copies between the host and GPUs, and the events that keep them in order.
#include <cstring>

#include "gpu/host_pins.h"
#include "gpu/quiescent_section.h"
#include "gpu_machine.h"

namespace headrace::test {
namespace {

AddGpu opening("a core opens, tells its GPUs apart, and closes", 2, [] {
  Machine machine(gpuOptions(2));
  const auto& spaces = machine.core->runtime().spaces;
  CHECK(spaces[1].kind == SpaceKind::cuda && spaces[1].bytes == 1 << 20);
  CHECK(!spaces[1].name.empty() && spaces[1].uuid.rfind("GPU-", 0) == 0);
  CHECK(spaces[1].uuid != spaces[2].uuid);
  CHECK(machine.core->peerAccess(1, 2) && machine.core->peerAccess(2, 1));
  const DeviceShare* share = machine.core->share(1);
  CHECK(share != nullptr && share->fd == -1 && share->ipcBytes == 64);
  CHECK(share->base + share->offset == spaces[1].base);
  CHECK(share->generation != machine.core->share(2)->generation);
});

AddGpu share("without a size a GPU gives most of what is free", 1, [] {
  CoreOptions options = gpuOptions(1);
  options.gpuBytes = 0;
  Machine machine(options);
  CHECK(machine.core->runtime().spaces[1].bytes >= (std::uint64_t{500} << 20));
});

AddGpu there("bytes go to a GPU and come back", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  for (const int bytes : {0, 1, 8, 4097, 65536}) {
    auto* source = machine.at<std::uint8_t>(0, 1000);
    auto* target = machine.at<std::uint8_t>(0, 200000);
    std::memset(target - 1, 0xee, 65538);
    for (int i = 0; i < bytes; ++i) source[i] = static_cast<std::uint8_t>(i * 7 + bytes);
    Event event = machine.copy(layout.in(1), 1, 300001, 0, 1000, bytes);
    event = machine.copy(layout.out(1), 0, 200000, 1, 300001, bytes, event);
    expect(machine, event);
    CHECK(std::memcmp(source, target, static_cast<std::size_t>(bytes)) == 0);
    CHECK(target[-1] == 0xee && target[bytes] == 0xee);
  }
});

AddGpu block("a block of a matrix is copied into a block of another one", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  constexpr int kRows = 9;
  constexpr int kColumns = 7;
  constexpr int kBytes = kRows * kColumns * 8;
  auto* from = machine.at<double>(0, 0);
  auto* to = machine.at<double>(0, 4096);
  for (int i = 0; i < kRows * kColumns; ++i) from[i] = i;
  for (int i = 0; i < kRows * kColumns; ++i) to[i] = -1;
  Event event = machine.copy(layout.in(1), 1, 0, 0, 0, kBytes);
  event = machine.copy(layout.in(1), 1, 4096, 0, 4096, kBytes, event);
  // Rows 2 to 4 of columns 1 to 5 go to row 0 of column 2 of a matrix of 5 rows.
  event = machine.exec(layout.compute(1), "copy_block", 2,
                       {4096, 0, 8, 3, 5, 5, 10, kRows, kRows + 2}, event);
  // The last column goes to the begin: without gaps.
  event = machine.exec(layout.compute(1), "copy_block", 2,
                       {4096, 0, 8, kRows, 1, kRows, 0, kRows, kRows * (kColumns - 1)}, event);
  event = machine.copy(layout.out(1), 0, 4096, 1, 4096, kBytes, event);
  expect(machine, event);
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int row = i % 5;
    const int column = i / 5 - 2;
    const bool isBlock = column >= 0 && column < 5 && row < 3;
    const double value = isBlock ? (column + 1) * kRows + row + 2 : -1;
    CHECK(to[i] == (i < kRows ? kRows * (kColumns - 1) + i : value));
  }
  // Outside of the memory of the GPU, and rows that overlap.
  expect(machine,
         machine.exec(layout.compute(1), "copy_block", 2, {0, 0, 8, 1, 2, 1 << 20, 0, 1, 0}),
         HEADRACE_OUT_OF_RANGE);
  expect(machine, machine.exec(layout.compute(1), "copy_block", 2, {0, 0, 8, 4, 2, 3, 0, 4, 0}),
         HEADRACE_BAD_ARGUMENTS);
});

AddGpu ring("bytes go from GPU to GPU; every reader sees what its event promised", 2, [] {
  Machine machine(gpuOptions(2));
  const Layout layout{2};
  auto* value = machine.at<double>(0, 0);
  auto* result = machine.at<double>(0, 4096);
  *value = 0;
  Event event;
  constexpr int kSteps = 200;
  for (int space = 1; space <= 2; ++space) {
    event = machine.exec(layout.compute(space), "fill_f64", 1, {4096, 1, 1}, event);
  }
  event = machine.copy(layout.in(1), 1, 0, 0, 0, 8, event);
  for (int i = 0; i < kSteps; ++i) {
    event = machine.exec(layout.compute(1), "add_f64", 2, {0, 4096, 1, 1}, event);
    event = machine.copy(layout.from(2, 1), 2, 0, 1, 0, 8, event);
    event = machine.exec(layout.compute(2), "add_f64", 2, {0, 4096, 1, 1}, event);
    event = machine.copy(layout.from(1, 2), 1, 0, 2, 0, 8, event);
    if (i % 5 == 0) machine.publish();
  }
  event = machine.copy(layout.out(1), 0, 4096, 1, 0, 8, event);
  expect(machine, event);
  CHECK(*result == 2 * kSteps);
});

AddGpu noPeers(
    "GPUs without peer access refuse a direct copy and say so", 2,
    [] {
      Stub::reset(2, false);
      Machine machine(gpuOptions(2));
      const Layout layout{2};
      CHECK(!machine.core->peerAccess(1, 2) && machine.core->peerAccess(1, 1));
      expect(machine, machine.copy(layout.from(1, 2), 1, 0, 2, 0, 8), Status::driver);
      CHECK(machine.core->lastError(layout.from(1, 2)).find("peer access") != std::string::npos);
      CHECK(Stub::calls("cuMemcpyPeerAsync") == 0 || Stub::violations().empty());
    },
    On::stubOnly);

AddGpu pages(
    "host memory is page-locked only while no GPU runs a kernel, whatever other GPUs are about to "
    "launch",
    2, [] {
      constexpr int kChunks = 24;
      CoreOptions options = gpuOptions(2);
      options.hostBytes = kChunks * HostPins::kChunk;
      options.pinnedBytes = 4096;
      Machine machine(options);
      const Layout layout{2};
      for (int i = 0; i < kChunks; ++i) {
        const double offset = static_cast<double>(i * HostPins::kChunk);
        machine.exec(layout.compute(2), "empty", 0, {});
        const Event copied = machine.copy(layout.in(1), 1, 0, 0, offset, 8);
        expect(machine, machine.exec(layout.compute(2), "empty", 0, {}));
        expect(machine, copied);
      }
    });

AddGpu besideKernel(
    "host memory is page-locked only while no GPU runs a kernel: beside one, a copy goes without",
    2, [] {
      constexpr double kSeen = 8;
      constexpr double kGo = 0x600d;
      CoreOptions options = gpuOptions(2);
      options.hostBytes = 2 * HostPins::kChunk;
      options.pinnedBytes = 4096;
      Machine machine(options);
      const Layout layout{2};
      expect(machine, machine.fill(layout.compute(2), 0, 4096, 0));
      // It runs until its word comes.
      const Event kernel = machine.exec(layout.compute(2), "await_word", 2, {0, kSeen, kGo, 1, 1});
      machine.publish();
      auto& submitted = machine.control(layout.compute(2), Control::submitted);
      while (ahead(submitted.load(), kernel.sequence) < 0) sched_yield();
      *machine.at<std::int64_t>(0, HostPins::kChunk) = 77;
      expect(machine, machine.copy(layout.in(1), 1, 0, 0, HostPins::kChunk, 8));
      *machine.at<std::int64_t>(0, 0) = 0x600d;
      expect(machine, machine.copy(layout.in(2), 2, 0, 0, 0, 8));
      expect(machine, kernel);
      expect(machine, machine.copy(layout.out(1), 0, 8, 1, 0, 8));
      CHECK(*machine.at<std::int64_t>(0, 8) == 77);
    });

/// A copy from memory that is not locked, beside a kernel that runs. True if the kernel was over before the copy could have lost its
/// patience: on a busy machine threads get no core for longer.
bool copiesBesideKernel() {
  constexpr double kSeen = 8;
  constexpr double kGo = 0x600d;
  constexpr std::int64_t kLong = 20000000;
  constexpr std::int64_t kPatience = 50000000;
  CoreOptions options = gpuOptions(2);
  options.hostBytes = 2 * HostPins::kChunk;
  options.pinnedBytes = 4096;
  Machine machine(options);
  const Layout layout{2};
  HostPins& pins = hostPins(SpaceKind::cuda);
  while (!QuiescentSection::mayWait()) sched_yield();
  const std::uint64_t slow = pins.slowBytes.load();
  const std::uint64_t pageable = Stub::present() ? Stub::pageable() : 0;
  expect(machine, machine.fill(layout.compute(2), 0, 4096, 0));
  const Event kernel = machine.exec(layout.compute(2), "await_word", 2, {0, kSeen, kGo, 1, 1});
  machine.publish();
  auto& submitted = machine.control(layout.compute(2), Control::submitted);
  while (ahead(submitted.load(), kernel.sequence) < 0) sched_yield();
  const std::int64_t start = now();
  const Event copied = machine.copy(layout.in(1), 1, 0, 0, HostPins::kChunk, 8);
  machine.publish();
  // The copy is under way, and waits or has gone the slow way.
  while (pins.slowBytes.load() == slow && now() - start < kLong) sched_yield();
  // Another thread lets the kernel end.
  *machine.at<std::int64_t>(0, 0) = 0x600d;
  expect(machine, machine.copy(layout.in(2), 2, 0, 0, 0, 8));
  expect(machine, kernel);
  const bool isInTime = now() - start < kPatience;
  expect(machine, copied);
  if (!isInTime) return false;
  CHECK(pins.slowBytes.load() == slow);
  if (Stub::present()) CHECK(Stub::pageable() == pageable);
  return true;
}

AddGpu amidKernels(
    "in the middle of a run a copy waits until the kernels that run are over, and locks its memory",
    2, [] {
      while (!copiesBesideKernel()) continue;
    });

AddGpu fills("a fill writes its bytes and no other", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  Event event = machine.fill(layout.compute(1), 0, 4096, 0x11);
  event = machine.fill(layout.compute(1), 100, 200, 0x5a);
  event = machine.copy(layout.out(1), 0, 0, 1, 0, 4096, event);
  expect(machine, event);
  const auto* bytes = machine.at<std::uint8_t>(0, 0);
  CHECK(bytes[99] == 0x11 && bytes[100] == 0x5a && bytes[299] == 0x5a && bytes[300] == 0x11);
});

AddGpu outside("copies that leave a space are refused before the driver sees them", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  expect(machine, machine.copy(layout.in(1), 1, (1 << 20) - 4, 0, 0, 8), Status::outOfRange);
  expect(machine, machine.copy(layout.out(1), 0, (1 << 20) - 4, 1, 0, 8), Status::outOfRange);
});

AddGpu pinning("host memory beyond the pinned part is locked when first used, chunk by chunk", 1,
               [] {
                 CoreOptions options = gpuOptions(1);
                 options.hostBytes = 3 * HostPins::kChunk;
                 options.pinnedBytes = 1 << 20;
                 Machine machine(options);
                 const Layout layout{1};
                 HostPins& pins = hostPins(SpaceKind::cuda);
                 const std::uint64_t slow = pins.slowBytes.load();
                 const double edges[] = {(1 << 20) - 8, HostPins::kChunk - 8.0,
                                         2.0 * HostPins::kChunk - 8, 3.0 * HostPins::kChunk - 16};
                 for (const double at : edges) {
                   auto* source = machine.at<std::uint64_t>(0, at);
                   source[0] = static_cast<std::uint64_t>(at);
                   source[1] = 77;
                   Event event = machine.copy(layout.in(1), 1, 0, 0, at, 16);
                   event = machine.copy(layout.out(1), 0, 64, 1, 0, 16, event);
                   expect(machine, event);
                   CHECK(machine.at<std::uint64_t>(0, 64)[0] == static_cast<std::uint64_t>(at));
                   CHECK(machine.at<std::uint64_t>(0, 64)[1] == 77);
                 }
                 CHECK(pins.slowBytes.load() == slow);
                 if (Stub::present()) CHECK(Stub::pageable() == 0);
               });

AddGpu busyPinning("while a kernel runs nothing is locked: the copy goes the slow way", 1, [] {
  CoreOptions options = gpuOptions(1);
  options.hostBytes = 2 * HostPins::kChunk;
  Machine machine(options);
  const Layout layout{1};
  HostPins& pins = hostPins(SpaceKind::cuda);
  const std::uint64_t slow = pins.slowBytes.load();
  auto* words = machine.at<std::int64_t>(0, 0);
  words[0] = 0;
  Event zero = machine.fill(layout.compute(1), 0, 64, 0);
  const Event kernel = machine.exec(layout.compute(1), "await_word", 2, {0, 8, 5}, zero);
  machine.publish();
  while (machine.control(layout.compute(1), Control::submitted).load() != kernel.sequence) {
    sched_yield();
  }
  // The word that lets the kernel go lies in memory that is not locked.
  *machine.at<std::int64_t>(0, HostPins::kChunk + 64) = 5;
  expect(machine, machine.copy(layout.in(1), 1, 0, 0, HostPins::kChunk + 64, 8));
  expect(machine, kernel);
  CHECK(pins.slowBytes.load() == slow + 8);
});

}  // namespace
}  // namespace headrace::test
