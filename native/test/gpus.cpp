// Copies in all directions between the host and two emulated GPUs, in chains that only events keep in order.
#include <atomic>
#include <cstring>

#include "gpu/device_thread.h"
#include "gpu/driver.h"
#include "machine.h"

namespace headrace::test {
namespace {

// Queues of small(1, 2) with one compute stream: 0 worker; GPU 1: 1 compute, 2 h2d, 3 d2h, 4 peer; GPU 2: 5 .. 8.
constexpr int kCompute[] = {0, 1, 5};
constexpr int kIn[] = {0, 2, 6};
constexpr int kOut[] = {0, 3, 7};
constexpr int kPeer[] = {0, 4, 8};

int queueFor(int to, int from) {
  if (to == from) return kCompute[to];
  if (from == 0) return kIn[to];
  if (to == 0) return kOut[from];
  return kPeer[to];
}

Add directions("copies in all nine directions carry exactly their bytes", [] {
  Machine machine(small(1, 2));
  int seed = 1;
  for (int to = 0; to < 3; ++to) {
    for (int from = 0; from < 3; ++from) {
      for (const int bytes : {0, 1, 8, 4097, 65536}) {
        auto* source = machine.at<std::uint8_t>(from, 131072);
        auto* target = machine.at<std::uint8_t>(to, 300001);
        std::memset(machine.at<std::uint8_t>(to, 300000), 0xee, 65538);
        for (int i = 0; i < bytes; ++i) source[i] = static_cast<std::uint8_t>(seed += 7);
        const Event event = machine.copy(queueFor(to, from), to, 300001, from, 131072, bytes);
        machine.finish(event);
        CHECK(machine.status(event) == Status::ok);
        CHECK(std::memcmp(source, target, static_cast<std::size_t>(bytes)) == 0);
        CHECK(target[-1] == 0xee && target[bytes] == 0xee);
      }
    }
  }
});

Add wrongQueue("a GPU's queue refuses a copy between other spaces, with a text", [] {
  Machine machine(small(1, 2));
  const Event event = machine.copy(kCompute[1], 2, 0, 1, 0, 8);
  const Event host = machine.copy(kCompute[1], 0, 0, 0, 64, 8);
  machine.finish();
  CHECK(machine.status(event) == Status::driver && machine.status(host) == Status::driver);
  CHECK(!machine.core->lastError(kCompute[1]).empty());
});

Add token("a token visits host and GPUs; each adds its part; only events order it", [] {
  for (const std::int32_t streams : {1, 2}) {
    CoreOptions options = small(1, 2);
    options.computeStreams = streams;
    Machine machine(options);
    const int perGpu = streams + 3;
    const auto compute = [&](int gpu, int i) { return 1 + (gpu - 1) * perGpu + i % streams; };
    const auto other = [&](int gpu, int k) { return 1 + (gpu - 1) * perGpu + streams + k; };
    for (int space = 0; space < 3; ++space) machine.at<double>(space, 4096)[0] = 1;
    machine.at<double>(0, 0)[0] = 0;
    Event event;
    constexpr int kSteps = 3000;
    for (int i = 0; i < kSteps; ++i) {
      event = machine.exec(0, "add_f64", 2, {0, 4096, 1, 1}, event);
      event = machine.copy(other(1, 0), 1, 0, 0, 0, 8, event);
      event = machine.exec(compute(1, i), "add_f64", 2, {0, 4096, 1, 1}, event);
      event = machine.copy(other(2, 2), 2, 0, 1, 0, 8, event);
      event = machine.exec(compute(2, i), "add_f64", 2, {0, 4096, 1, 1}, event);
      if (i % 2 == 0) {
        event = machine.copy(other(1, 2), 1, 0, 2, 0, 8, event);
        event = machine.copy(other(1, 1), 0, 0, 1, 0, 8, event);
      } else {
        event = machine.copy(other(2, 1), 0, 0, 2, 0, 8, event);
      }
      if (i % 7 == 0) machine.publish();
    }
    machine.finish(event);
    CHECK(machine.at<double>(0, 0)[0] == 3 * kSteps);
  }
});

Add independent("a wait in one ring holds no other ring of the same GPU", [] {
  Machine machine(small(1, 1));
  // The wait lasts until the host's command is published.
  const Event late{0, machine.issued(0) + 1};
  const Event held = machine.exec(kCompute[1], "empty", 0, {}, late);
  const Event free = machine.copy(kIn[1], 1, 0, 0, 0, 64);
  machine.publish();
  machine.finish(free);
  CHECK(!machine.done(held));
  machine.exec(0, "empty", 0, {});
  machine.publish(0);
  machine.finish(held);
  CHECK(machine.done(late));
});

Add forward("a GPU may wait for a command that the other GPU has not received yet", [] {
  Machine machine(small(1, 2));
  for (int round = 0; round < 100; ++round) {
    // Published in the wrong order: the consumer first.
    const Event event{kCompute[2], machine.issued(kCompute[2]) + 1};
    const Event first = machine.exec(kCompute[1], "empty", 0, {}, event);
    machine.publish(kCompute[1]);
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    machine.exec(kCompute[2], "spin", 0, {20});
    machine.publish(kCompute[2]);
    machine.finish(first);
    // The wait is over, too. The other GPU's thread may not have published that yet.
    machine.finish(event);
  }
});

Add foreign(
    "a stream that waits for the other GPU goes on when that GPU gets there, though all sleep", [] {
      Machine machine(small(1, 2));
      for (int round = 0; round < 20; ++round) {
        const Event slow = machine.exec(kCompute[2], "spin", 0, {1000});
        const Event last = machine.exec(kCompute[1], "empty", 0, {}, slow);
        machine.publish(kCompute[2]);
        while (machine.control(kCompute[2], Control::submitted).load() != slow.sequence)
          sched_yield();
        machine.publish(kCompute[1]);
        machine.finish(last);
        CHECK(machine.done(slow));
      }
    });

/// Which call of the driver below will fail, counted from now on: to make an event with time, and to record one. 0: none.
std::atomic<int> badCreation{0}, badRecording{0};

bool fails(std::atomic<int>& call) { return call > 0 && --call == 0; }

/// The emulated driver, whose events can fail.
DriverTable withBadEvents() {
  DriverTable table = *emulatedDriver();
  table.eventCreate = [](DeviceHandle device, bool timed, EventHandle* event) {
    if (timed && fails(badCreation)) return DriverStatus::refused;
    return emulatedDriver()->eventCreate(device, timed, event);
  };
  table.eventRecord = [](EventHandle event, StreamHandle stream) {
    if (fails(badRecording)) return DriverStatus::refused;
    return emulatedDriver()->eventRecord(event, stream);
  };
  return table;
}

Add untimed("a command that cannot be timed has no times, not those of an earlier one in its slot",
            [] {
              Machine machine(small(1));
              Runtime& runtime = machine.core->runtime();
              const DriverTable driver = withBadEvents();
              alignas(64) std::int32_t ring[Record::words] = {};
              double times[Times::doubles] = {};
              alignas(64) Word control[Control::words] = {};
              Queue queue(1, QueueKind::compute, 1, -1, ring, times, 1, control, runtime.shared,
                          &runtime.doorbell);
              Space space;
              {
                DeviceThread device(runtime, driver, 0, 0);
                device.call([&] {
                  device.openDevice(1 << 16, 1, space);
                  device.openQueue(queue);
                });
                const auto fill = [&](std::int32_t sequence) {
                  ring[Record::head] = Opcode::fill | Record::timed | (3 << 20);
                  ring[Record::run] = -1;
                  const double arguments[] = {0, 64, 1};
                  std::memcpy(reinterpret_cast<double*>(ring) + Record::argument, arguments,
                              sizeof arguments);
                  queue.setPublished(sequence);
                  queue.wake();
                  while (queue.completed() != sequence) sched_yield();
                  CHECK(ring[Record::status] == Status::ok);
                  return times[Times::end] - times[Times::start];
                };
                // The second of the two events of a slot cannot be made, and is made later.
                badCreation = 2;
                CHECK(fill(1) < 0);
                CHECK(fill(2) >= 0);
                badRecording = 1;
                CHECK(fill(3) < 0);
                CHECK(fill(4) >= 0);
                machine.core->close();
              }
            });

Add sharing("another mapping of a GPU's memory file sees its bytes", [] {
  Machine machine(small(1, 2));
  CHECK(machine.core->share(0) == nullptr);
  const DeviceShare* share = machine.core->share(1);
  CHECK(share != nullptr && share->fd >= 0 && share->bytes >= (1u << 20));
  machine.finish(machine.fill(kCompute[1], 4096, 16, 0x5a));
  std::uint8_t byte = 0;
  CHECK(pread(share->fd, &byte, 1, 4100) == 1 && byte == 0x5a);
});

}  // namespace
}  // namespace headrace::test
