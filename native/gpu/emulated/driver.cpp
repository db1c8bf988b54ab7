// A driver without a GPU: device memory is a memory file of this process, streams are lists of operations, and the
// GPU's own thread carries out the operations inside `progress`.
//
// Invariants: submitting never carries out anything; `progress` carries out at most one piece of work per stream and
// call, so streams interleave; an event's count of completed recordings only grows. Threads share only `Event`
// (streams of one GPU wait for events of another).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "core/clock.h"
#include "gpu/driver.h"
#include "headrace/contract.h"

namespace headrace {
namespace {

struct Event {
  bool timed = false;
  std::atomic<std::uint32_t> recorded{0};
  std::atomic<std::uint32_t> completed{0};
  double time = 0;
};

struct Operation {
  enum class Kind { record, wait, copy, fill, launch } kind = Kind::record;
  Event* event = nullptr;
  std::uint32_t count = 0;  // recording of the event
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  std::uint8_t value = 0;
  Launch launch{};
};

/// Operations in order: a circular buffer that grows, so that no call allocates once it is large enough.
class OperationList {
 public:
  OperationList() : operations_(64) {}
  bool empty() const { return head_ == tail_; }
  Operation& front() { return operations_[head_ & (operations_.size() - 1)]; }
  void pop() { ++head_; }
  Operation& push() {
    if (tail_ - head_ == operations_.size()) grow();
    return operations_[tail_++ & (operations_.size() - 1)];
  }

 private:
  void grow() {
    std::vector<Operation> larger(operations_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) {
      larger[i & (larger.size() - 1)] = operations_[i & (operations_.size() - 1)];
    }
    operations_.swap(larger);
  }
  std::vector<Operation> operations_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

struct Device;

struct Stream {
  Device* device;
  OperationList operations;
};

struct Device {
  std::int32_t ordinal = 0;
  int fd = -1;
  void* memory = nullptr;
  std::uint64_t bytes = 0;
  std::vector<Stream*> streams;
  char error[160] = "";
};

Device* device(DeviceHandle handle) { return static_cast<Device*>(handle); }
Stream* stream(StreamHandle handle) { return static_cast<Stream*>(handle); }
Event* event(EventHandle handle) { return static_cast<Event*>(handle); }
void* pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }

// -- finding and opening --------------------------------------------------------------------------------------------

DriverStatus probe(std::int32_t* devices, char* reason, std::size_t reasonBytes) {
  *devices = 64;  // more than any program requests
  std::snprintf(reason, reasonBytes, "emulated in host memory");
  return DriverStatus::ok;
}

DriverStatus open(std::int32_t ordinal, DeviceHandle* handle, DeviceDescription* description, char*,
                  std::size_t) {
  auto* opened = new Device;
  opened->ordinal = ordinal;
  std::snprintf(description->name, sizeof description->name, "emulated GPU %d", ordinal);
  std::snprintf(description->uuid, sizeof description->uuid, "EMULATED-%d-%p", getpid(),
                static_cast<void*>(opened));
  description->totalBytes = 0;
  description->freeBytes = 0;
  *handle = opened;
  return DriverStatus::ok;
}

DriverStatus bind(DeviceHandle) { return DriverStatus::ok; }

void close(DeviceHandle handle) { delete device(handle); }

const char* errorText(DeviceHandle handle) { return device(handle)->error; }

DriverStatus enablePeer(DeviceHandle, DeviceHandle) { return DriverStatus::ok; }

// -- memory ---------------------------------------------------------------------------------------------------------

DriverStatus memoryAlloc(DeviceHandle handle, std::uint64_t bytes, DeviceAddress* address) {
  Device* owner = device(handle);
  const std::uint64_t mapped = std::max<std::uint64_t>(bytes, 4096);
  const int fd = memfd_create("headrace-gpu", MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(mapped)) == 0) {
    memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  if (memory == MAP_FAILED) {
    std::snprintf(owner->error, sizeof owner->error, "%s", std::strerror(errno));
    if (fd >= 0) ::close(fd);
    return DriverStatus::outOfMemory;
  }
  owner->fd = fd;
  owner->memory = memory;
  owner->bytes = mapped;
  *address = reinterpret_cast<DeviceAddress>(memory);
  return DriverStatus::ok;
}

void memoryFree(DeviceHandle handle, DeviceAddress) {
  Device* owner = device(handle);
  munmap(owner->memory, owner->bytes);
  ::close(owner->fd);
  owner->memory = nullptr;
  owner->fd = -1;
}

DriverStatus memoryShare(DeviceHandle handle, DeviceAddress, DeviceShare* share) {
  share->fd = device(handle)->fd;
  share->bytes = device(handle)->bytes;
  share->ipcBytes = 0;
  return DriverStatus::ok;
}

DriverStatus hostAlloc(DeviceHandle, std::uint64_t, void**) { return DriverStatus::unsupported; }
void hostFree(DeviceHandle, void*) {}
DriverStatus hostRegister(DeviceHandle, void*, std::uint64_t, std::uint64_t) {
  return DriverStatus::ok;
}
void hostUnregister(DeviceHandle, void*) {}

// -- streams and events ---------------------------------------------------------------------------------------------

DriverStatus streamCreate(DeviceHandle handle, StreamPurpose, StreamHandle* result) {
  auto* created = new Stream{device(handle), {}};
  created->device->streams.push_back(created);
  *result = created;
  return DriverStatus::ok;
}

void streamDestroy(StreamHandle handle) {
  auto& streams = stream(handle)->device->streams;
  streams.erase(std::find(streams.begin(), streams.end(), stream(handle)));
  delete stream(handle);
}

DriverStatus eventCreate(DeviceHandle, bool timed, EventHandle* result) {
  auto* created = new Event;
  created->timed = timed;
  *result = created;
  return DriverStatus::ok;
}

void eventDestroy(EventHandle handle) { delete event(handle); }

DriverStatus eventRecord(EventHandle handle, StreamHandle on) {
  Event* recorded = event(handle);
  // Only the thread of the event's device records it; waiters of other devices read the count.
  const std::uint32_t count = recorded->recorded.load(std::memory_order_relaxed) + 1;
  recorded->recorded.store(count, std::memory_order_release);
  Operation& operation = stream(on)->operations.push();
  operation.kind = Operation::Kind::record;
  operation.event = recorded;
  operation.count = count;
  return DriverStatus::ok;
}

DriverStatus eventQuery(EventHandle handle) {
  Event* asked = event(handle);
  return asked->completed.load(std::memory_order_acquire) ==
                 asked->recorded.load(std::memory_order_acquire)
             ? DriverStatus::ok
             : DriverStatus::notReady;
}

DriverStatus eventTime(EventHandle handle, double* nanoseconds) {
  *nanoseconds = event(handle)->time;
  return event(handle)->timed ? DriverStatus::ok : DriverStatus::unsupported;
}

DriverStatus streamWait(StreamHandle on, EventHandle handle) {
  Operation& operation = stream(on)->operations.push();
  operation.kind = Operation::Kind::wait;
  operation.event = event(handle);
  operation.count = event(handle)->recorded.load(std::memory_order_acquire);
  return DriverStatus::ok;
}

// -- work -----------------------------------------------------------------------------------------------------------

DriverStatus pushCopy(StreamHandle on, void* to, const void* from, std::uint64_t bytes) {
  Operation& operation = stream(on)->operations.push();
  operation.kind = Operation::Kind::copy;
  operation.to = to;
  operation.from = from;
  operation.bytes = bytes;
  return DriverStatus::ok;
}

DriverStatus copyToDevice(StreamHandle on, DeviceAddress to, const void* from,
                          std::uint64_t bytes) {
  return pushCopy(on, pointer(to), from, bytes);
}

DriverStatus copyToHost(StreamHandle on, void* to, DeviceAddress from, std::uint64_t bytes) {
  return pushCopy(on, to, pointer(from), bytes);
}

DriverStatus copyOnDevice(StreamHandle on, DeviceAddress to, DeviceAddress from,
                          std::uint64_t bytes) {
  return pushCopy(on, pointer(to), pointer(from), bytes);
}

DriverStatus copyFromPeer(StreamHandle on, DeviceHandle, DeviceAddress to, DeviceHandle,
                          DeviceAddress from, std::uint64_t bytes) {
  return pushCopy(on, pointer(to), pointer(from), bytes);
}

DriverStatus fill(StreamHandle on, DeviceAddress to, std::uint8_t value, std::uint64_t bytes) {
  Operation& operation = stream(on)->operations.push();
  operation.kind = Operation::Kind::fill;
  operation.to = pointer(to);
  operation.value = value;
  operation.bytes = bytes;
  return DriverStatus::ok;
}

DriverStatus launch(StreamHandle on, const Launch* launch) {
  if (launch->host == nullptr) {
    std::snprintf(stream(on)->device->error, sizeof stream(on)->device->error,
                  "the emulated GPU runs host kernels only");
    return DriverStatus::refused;
  }
  Operation& operation = stream(on)->operations.push();
  operation.kind = Operation::Kind::launch;
  operation.launch = *launch;
  operation.launch.task.stream = nullptr;
  return DriverStatus::ok;
}

DriverStatus functionLoad(DeviceHandle handle, const void*, std::uint64_t, const char*,
                          FunctionHandle*) {
  std::snprintf(device(handle)->error, sizeof device(handle)->error,
                "the emulated GPU runs host kernels only");
  return DriverStatus::unsupported;
}

void runKernel(const Launch& launch) {
  std::int32_t status = Status::cancelled;
  if (launch.cancel == nullptr || launch.cancel->load(std::memory_order_acquire) == 0) {
    status = launch.host(&launch.task);
  }
  if (status == Status::ok) return;
  *launch.status = status;
  if (launch.cancel != nullptr) launch.cancel->store(1, std::memory_order_release);
}

/// Carries out the stream's operations up to and including one piece of work.
std::int32_t advance(Stream& on) {
  std::int32_t count = 0;
  bool worked = false;
  while (!on.operations.empty()) {
    Operation& operation = on.operations.front();
    switch (operation.kind) {
      case Operation::Kind::record:
        if (operation.event->timed) operation.event->time = static_cast<double>(now());
        operation.event->completed.store(operation.count, std::memory_order_release);
        break;
      case Operation::Kind::wait: {
        const std::uint32_t completed = operation.event->completed.load(std::memory_order_acquire);
        if (static_cast<std::int32_t>(completed - operation.count) < 0) return count;
        break;
      }
      default:
        if (worked) return count;
        worked = true;
        if (operation.kind == Operation::Kind::launch) {
          runKernel(operation.launch);
        } else if (operation.kind == Operation::Kind::copy) {
          std::memmove(operation.to, operation.from, operation.bytes);
        } else {
          std::memset(operation.to, operation.value, operation.bytes);
        }
    }
    on.operations.pop();
    ++count;
  }
  return count;
}

std::int32_t progress(DeviceHandle handle) {
  std::int32_t count = 0;
  for (Stream* on : device(handle)->streams) count += advance(*on);
  return count;
}

constexpr DriverTable table = {"emulated",   SpaceKind::emulated,
                               false,        probe,
                               open,         bind,
                               close,        errorText,
                               enablePeer,   memoryAlloc,
                               memoryFree,   memoryShare,
                               hostAlloc,    hostFree,
                               hostRegister, hostUnregister,
                               streamCreate, streamDestroy,
                               eventCreate,  eventDestroy,
                               eventRecord,  eventQuery,
                               eventTime,    streamWait,
                               copyToDevice, copyToHost,
                               copyOnDevice, copyFromPeer,
                               fill,         launch,
                               functionLoad, progress,
                               nullptr};

}  // namespace

const DriverTable* emulatedDriver() { return &table; }

}  // namespace headrace
