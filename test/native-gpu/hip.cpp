// The HIP table against its stub: opening, copies, a value passed between GPUs, and refused calls. No AMD GPU was
// available, so these tests run on the stub only.
#include <cstdlib>
#include <cstring>

#include "gpu_machine.h"

namespace headrace::test {
namespace {

Add hip("HIP: a core opens on two GPUs and carries bytes there, across and back", [] {
  if (std::getenv("HEADRACE_HIP_LIBRARY") == nullptr) return leaveOut("the stub");
  CoreOptions options = gpuOptions(2);
  options.driver = "hip";
  Machine machine(options);
  const Layout layout{2};
  const auto& space = machine.core->runtime().spaces[1];
  CHECK(space.kind == SpaceKind::hip && space.name == "Stub AMD GPU 0");
  CHECK(machine.core->peerAccess(1, 2));
  auto* bytes = machine.at<std::uint8_t>(0, 0);
  for (int i = 0; i < 4096; ++i) bytes[i] = static_cast<std::uint8_t>(i * 13);
  Event event = machine.copy(layout.in(1), 1, 64, 0, 0, 4096);
  event = machine.exec(layout.compute(1), "copy_bytes", 2, {16384, 64, 4096}, event);
  // The first 8 bytes of every 16: there and back.
  event = machine.exec(layout.compute(1), "copy_block", 2, {65536, 16384, 8, 1, 256, 1, 0, 2, 0},
                       event);
  event = machine.exec(layout.compute(1), "copy_block", 2, {16384, 65536, 8, 1, 256, 2, 0, 1, 0},
                       event);
  event = machine.copy(layout.from(2, 1), 2, 0, 1, 16384, 4096, event);
  event = machine.copy(layout.out(2), 0, 65536, 2, 0, 4096, event);
  expect(machine, event);
  CHECK(std::memcmp(bytes, bytes + 65536, 4096) == 0);
  // Kernels of ours exist as PTX only: an AMD GPU runs what user libraries register for HIP.
  expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {0, 1, 1}), Status::unknownKernel);
  expect(machine, machine.exec(layout.compute(1), "fail", 0, {9}), 9);
});

}  // namespace
}  // namespace headrace::test
