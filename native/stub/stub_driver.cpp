// The stub drivers' calls and the rules they check: see stub_driver.h.
#include "stub_driver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace headrace::stub {

namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

Machine& machine() { return Machine::instance(); }

/// True when unfinished work of any stream touches the bytes (a host range) or the device.
bool hostInUse(std::uint64_t begin, std::uint64_t bytes) {
  for (const Stream* each : machine().streams) {
    if (each->context->dead != 0) continue;
    for (const Operation& operation : each->operations) {
      if (operation.bytes != 0 && operation.from < begin + bytes &&
          begin < operation.from + operation.bytes) {
        return true;
      }
    }
  }
  return false;
}

void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int work(const char* call, void* handle, std::function<bool()> run, std::uint64_t host = 0,
         std::uint64_t bytes = 0) {
  Stream* on = machine().stream(call, handle);
  if (on == nullptr) return kInvalidHandle;
  if (on->context->dead != 0) return on->context->dead;
  machine().push(*on, {Operation::Kind::work, std::move(run), nullptr, 0, host, bytes});
  return 0;
}

int outside(const char* call) {
  machine().violation(std::string(call) + ": bytes that are not in the device's memory");
  return kInvalidValue;
}

/// A stream follows a captured event: it joins the capture if it is not in it.
int follow(const char* call, Stream& stream, const Event& event) {
  Graph& graph = *event.graph;
  if (stream.graph == nullptr) {
    if (std::find(machine().graphs.begin(), machine().graphs.end(), &graph) !=
        machine().graphs.end()) {
      machine().violation(std::string(call) + ": the event's capture is over");
      return kInvalidValue;
    }
    stream.graph = &graph;
    stream.branch = graph.branches.size();
    graph.streams.push_back(&stream);
    graph.contexts.push_back(stream.context);
    graph.branches.emplace_back();
  }
  graph.branches[stream.branch].push_back({{}, event.branch, event.place});
  const bool isEnd = event.place == graph.branches[event.branch].size();
  if (stream.branch == 0 && isEnd) graph.joined.push_back(event.branch);
  return 0;
}

/// The state of one launch: how far every branch has got.
struct Progress {
  std::vector<std::vector<Node>> left;
  std::vector<Context*> contexts;
  std::vector<std::size_t> at;
};

/// A step of a branch of the adversary's choice; true when all are at their ends. In a dead context nothing moves.
bool stepGraph(Progress& progress) {
  const std::size_t count = progress.at.size();
  const std::size_t first = machine().adversary() % count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t b = (first + i) % count;
    if (progress.at[b] == progress.left[b].size()) continue;
    Node& node = progress.left[b][progress.at[b]];
    if (progress.contexts[b]->dead != 0) continue;
    if (!node.run && progress.at[node.branch] < node.place) continue;
    if (!node.run || (node.run() && progress.contexts[b]->dead == 0)) ++progress.at[b];
    break;
  }
  for (std::size_t b = 0; b < count; ++b) {
    if (progress.at[b] != progress.left[b].size()) return false;
  }
  return true;
}

bool move(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  return true;
}

}  // namespace

int needContext(const char* call) {
  if (machine().current() != nullptr) return 0;
  machine().violation(std::string(call) + ": no context is current");
  return kInvalidContext;
}

int deviceCount(const char* call, int* count) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  *count = machine().devices;
  return code;
}

int memoryAlloc(const char* call, std::uint64_t* address, std::size_t bytes) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  const int device = machine().current()->device;
  machine().forbiddenWhileBusy(call, device);
  std::uint64_t used = 0;
  for (const auto& each : machine().allocations) {
    if (each.second.device == device) used += each.second.bytes;
  }
  if (bytes == 0) return kInvalidValue;
  if (used + bytes > machine().memory) return kOutOfMemory;
  const int file = memfd_create("stub-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  std::memset(memory, 0xc3, std::min<std::size_t>(bytes, 1 << 20));
  *address = reinterpret_cast<std::uint64_t>(memory);
  machine().allocations[*address] = {bytes, device, file, ++machine().generations};
  return 0;
}

int memoryFree(const char* call, std::uint64_t address) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto found = machine().allocations.find(address);
  if (found == machine().allocations.end() || found->second.device < 0) {
    machine().violation(std::string(call) + ": not an allocation");
    return kInvalidValue;
  }
  machine().forbiddenWhileBusy(call, found->second.device);
  if (machine().busy(found->second.device, false)) {
    machine().violation(std::string(call) + ": memory in use");
  }
  // Importers hold a lock of their own; one whose process is gone holds none.
  if (flock(found->second.file, LOCK_EX | LOCK_NB) != 0) {
    machine().violation(std::string(call) + ": memory that another process has open");
  }
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  close(found->second.file);
  machine().allocations.erase(found);
  return code;
}

namespace {

/// The content of a handle: the place of the memory, in the words of its owner.
struct Handle {
  int process;
  int file;
  std::uint64_t bytes;
  std::uint64_t generation;
};

}  // namespace

int ipcGet(const char* call, void* bytes64, std::uint64_t address) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  auto found = machine().allocations.find(address);
  if (found == machine().allocations.end() || found->second.file < 0) {
    machine().violation(std::string(call) + ": not the base of an allocation");
    return kInvalidValue;
  }
  const Handle handle{getpid(), found->second.file, found->second.bytes, found->second.generation};
  std::memset(bytes64, 0, 64);
  std::memcpy(bytes64, &handle, sizeof handle);
  return 0;
}

int ipcOpen(const char* call, std::uint64_t* address, const void* bytes64) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  Handle handle;
  std::memcpy(&handle, bytes64, sizeof handle);
  if (handle.process == getpid()) {
    machine().violation(std::string(call) + ": memory of this process itself");
    return kInvalidContext;
  }
  machine().forbiddenWhileBusy(call, machine().current()->device);
  for (auto& each : machine().imports) {
    Import& known = each.second;
    if (known.process != handle.process || known.file != handle.file ||
        known.context != machine().current()) {
      continue;
    }
    ++known.opened;
    *address = each.first;
    return 0;
  }
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidHandle;
  void* memory = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    close(file);
    return kOutOfMemory;
  }
  flock(file, LOCK_SH | LOCK_NB);
  *address = reinterpret_cast<std::uint64_t>(memory);
  machine().imports[*address] = {handle.bytes,   machine().current(), 1,
                                 handle.process, handle.file,         file};
  return 0;
}

int ipcClose(const char* call, std::uint64_t address) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  auto found = machine().imports.find(address);
  if (found == machine().imports.end()) {
    machine().violation(std::string(call) + ": not an opened handle");
    return kInvalidValue;
  }
  if (found->second.context != machine().current()) {
    machine().violation(std::string(call) + ": another context than the one that opened it");
  }
  if (machine().busy(found->second.context->device, false)) {
    machine().violation(std::string(call) + ": memory in use");
  }
  if (--found->second.opened > 0) return code;
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  close(found->second.lock);
  machine().imports.erase(found);
  return code;
}

int hostAlloc(const char* call, void** pointer, std::size_t bytes) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  machine().forbiddenWhileBusy(call, -1);
  *pointer = map(bytes);
  if (*pointer == nullptr) return kOutOfMemory;
  machine().allocations[reinterpret_cast<std::uint64_t>(*pointer)] = {bytes, -1};
  return 0;
}

int hostFree(const char* call, void* pointer) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto found = machine().allocations.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == machine().allocations.end() || found->second.device >= 0) {
    machine().violation(std::string(call) + ": not page-locked memory of the driver");
    return kInvalidValue;
  }
  machine().forbiddenWhileBusy(call, -1);
  if (hostInUse(found->first, found->second.bytes)) {
    machine().violation(std::string(call) + ": memory in use");
  }
  munmap(pointer, found->second.bytes);
  machine().allocations.erase(found);
  return code;
}

int hostRegister(const char* call, void* pointer, std::size_t bytes) {
  {
    Guard guard(machine().lock);
    int code = machine().enter(call);
    if (code == 0) code = needContext(call);
    if (code != 0) return code;
    machine().forbiddenWhileBusy(call, -1);
  }
  // It takes a while, and also waits for a kernel that begins meanwhile.
  std::this_thread::sleep_for(std::chrono::microseconds(300));
  Guard guard(machine().lock);
  machine().forbiddenWhileBusy(call, -1);
  const auto begin = reinterpret_cast<std::uint64_t>(pointer);
  if (begin % 4096 != 0 || bytes == 0) return kInvalidValue;
  for (const auto& each : machine().registered) {
    if (each.first < begin + bytes && begin < each.first + each.second) return 712;
  }
  machine().registered[begin] = bytes;
  return 0;
}

int hostUnregister(const char* call, void* pointer) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto found = machine().registered.find(reinterpret_cast<std::uint64_t>(pointer));
  if (found == machine().registered.end()) {
    machine().violation(std::string(call) + ": not registered");
    return 713;
  }
  machine().forbiddenWhileBusy(call, -1);
  if (hostInUse(found->first, found->second))
    machine().violation(std::string(call) + ": memory in use");
  machine().registered.erase(found);
  return code;
}

int memoryInfo(const char* call, std::size_t* free, std::size_t* total) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  *total = machine().memory;
  *free = *total;
  for (const auto& each : machine().allocations) {
    if (each.second.device == machine().current()->device) *free -= each.second.bytes;
  }
  return 0;
}

int streamCreate(const char* call, void** stream, unsigned flags) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  return code != 0 ? code : machine().create(reinterpret_cast<Stream**>(stream), flags, call);
}

int streamDestroy(const char* call, void* handle) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  Stream* closing = machine().stream(call, handle);
  if (closing == nullptr) return kInvalidHandle;
  const bool works = std::any_of(
      closing->operations.begin(), closing->operations.end(), [](const Operation& each) {
        return each.kind == Operation::Kind::work || each.kind == Operation::Kind::kernel;
      });
  if (works && closing->context->dead == 0) {
    std::string left;
    for (const Operation& each : closing->operations)
      left += " " + std::to_string(static_cast<int>(each.kind));
    machine().violation(std::string(call) + ": work is left in a stream of device " +
                        std::to_string(closing->context->device) + ":" + left);
  }
  auto& all = machine().streams;
  all.erase(std::find(all.begin(), all.end(), closing));
  delete closing;
  return code;
}

int eventCreate(const char* call, void** event) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  auto* created = new Event{machine().current()};
  machine().events.push_back(created);
  *event = created;
  return 0;
}

int eventDestroy(const char* call, void* handle) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto* event = static_cast<Event*>(handle);
  if (!machine().known(event)) {
    machine().violation(std::string(call) + ": an event that does not exist");
    return kInvalidHandle;
  }
  for (Stream* each : machine().streams) {
    auto& operations = each->operations;
    for (Operation& one : operations) {
      // A wait for an event of a dead context lasts for ever, also after the event is gone.
      if (one.event == event && one.kind == Operation::Kind::wait && event->context->dead != 0) {
        one.event = nullptr;
      }
    }
    operations.erase(std::remove_if(operations.begin(), operations.end(),
                                    [&](const Operation& one) { return one.event == event; }),
                     operations.end());
  }
  auto& all = machine().events;
  all.erase(std::find(all.begin(), all.end(), event));
  delete event;
  return code;
}

int eventRecord(const char* call, void* handle, void* on) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  auto* event = static_cast<Event*>(handle);
  Stream* stream = machine().stream(call, on);
  if (stream == nullptr || !machine().known(event)) return kInvalidHandle;
  if (event->context != stream->context) {
    machine().violation(std::string(call) + ": event and stream of different contexts");
    return kInvalidHandle;
  }
  if (stream->graph != nullptr) {
    event->graph = stream->graph;
    event->branch = stream->branch;
    event->place = stream->graph->branches[stream->branch].size();
    return 0;
  }
  event->graph = nullptr;
  if (event->recorded != event->completed && stream->context->dead == 0) {
    machine().violation(std::string(call) + ": the event's last recording is still outstanding");
  }
  machine().push(*stream, {Operation::Kind::record, {}, event, ++event->recorded, 0, 0});
  return 0;
}

int streamQuery(const char* call, void* handle) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* stream = machine().stream(call, handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->graph != nullptr) {
    machine().violation(std::string(call) + ": a stream in a capture");
    return kInvalidValue;
  }
  machine().advance();
  if (stream->context->dead != 0) return stream->context->dead;
  return stream->operations.empty() ? 0 : kNotReady;
}

int eventQuery(const char* call, void* handle) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  auto* event = static_cast<Event*>(handle);
  if (!machine().known(event)) return kInvalidHandle;
  if (event->graph != nullptr) {
    machine().violation(std::string(call) + ": an event recorded in a capture");
    return kInvalidValue;
  }
  if (event->recorded == 0) machine().violation(std::string(call) + ": an event never recorded");
  machine().advance();
  if (event->context->dead != 0) return event->context->dead;
  return event->completed == event->recorded ? 0 : kNotReady;
}

int streamWait(const char* call, void* on, void* handle) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  auto* event = static_cast<Event*>(handle);
  Stream* stream = machine().stream(call, on);
  if (stream == nullptr || !machine().known(event)) return kInvalidHandle;
  if (event->graph != nullptr) return follow(call, *stream, *event);
  if (stream->graph != nullptr) {
    machine().violation(std::string(call) + ": a captured stream waits for an event outside");
    return kInvalidValue;
  }
  if (event->recorded == 0) {
    machine().violation(std::string(call) + ": waits for an event never recorded");
  }
  machine().push(*stream, {Operation::Kind::wait, {}, event, event->recorded, 0, 0});
  return 0;
}

int copyToDevice(const char* call, std::uint64_t to, const void* from, std::size_t bytes,
                 void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  if (!machine().inDevice(to, bytes, on->context->device)) return outside(call);
  const auto host = reinterpret_cast<std::uint64_t>(from);
  machine().useHost(call, host, bytes);
  return work(
      call, stream, [=] { return move(reinterpret_cast<void*>(to), from, bytes); }, host, bytes);
}

int copyToHost(const char* call, void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  if (!machine().inDevice(from, bytes, on->context->device) &&
      !machine().imported(from, bytes, on->context)) {
    return outside(call);
  }
  const auto host = reinterpret_cast<std::uint64_t>(to);
  machine().useHost(call, host, bytes);
  return work(
      call, stream, [=] { return move(to, reinterpret_cast<void*>(from), bytes); }, host, bytes);
}

int copyOnDevice(const char* call, std::uint64_t to, std::uint64_t from, std::size_t bytes,
                 void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  const int device = on->context->device;
  bool reached =
      machine().inDevice(from, bytes, device) || machine().imported(from, bytes, on->context);
  for (const Context* peer : on->context->peers) {
    reached = reached || (on->graph != nullptr && machine().inDevice(from, bytes, peer->device));
  }
  if (!machine().inDevice(to, bytes, device) || !reached) return outside(call);
  return work(call, stream, [=] {
    return move(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  });
}

int copyBlock(const char* call, std::uint64_t to, std::size_t toPitch, std::uint64_t from,
              std::size_t fromPitch, std::size_t width, std::size_t columns, void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  const int device = on->context->device;
  if (columns > 0 && (toPitch < width || fromPitch < width)) return kInvalidValue;
  if (!machine().inDevice(to, columns == 0 ? 0 : (columns - 1) * toPitch + width, device) ||
      !machine().inDevice(from, columns == 0 ? 0 : (columns - 1) * fromPitch + width, device)) {
    return outside(call);
  }
  return work(call, stream, [=] {
    for (std::size_t i = 0; i < columns; ++i) {
      if (!move(reinterpret_cast<void*>(to + i * toPitch),
                reinterpret_cast<void*>(from + i * fromPitch), width)) {
        return false;
      }
    }
    return true;
  });
}

int copyPeer(const char* call, std::uint64_t to, Context* toContext, std::uint64_t from,
             Context* fromContext, std::size_t bytes, void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  if (on->graph != nullptr) return kCaptureUnsupported;
  if (on->context != toContext) {
    machine().violation(std::string(call) + ": not driven by the destination");
  }
  const auto& peers = toContext->peers;
  if (std::find(peers.begin(), peers.end(), fromContext) == peers.end()) {
    machine().violation(std::string(call) + ": no peer access, the driver would stage in secret");
  }
  if (!machine().inDevice(to, bytes, toContext->device) ||
      !machine().inDevice(from, bytes, fromContext->device)) {
    return outside(call);
  }
  return work(call, stream, [=] {
    return move(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  });
}

int fillBytes(const char* call, std::uint64_t to, unsigned value, std::size_t width,
              std::size_t count, void* stream) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, stream);
  if (on == nullptr) return kInvalidHandle;
  if (!machine().inDevice(to, width * count, on->context->device)) return outside(call);
  return work(call, stream, [=] {
    if (width == 1) {
      std::memset(reinterpret_cast<void*>(to), static_cast<int>(value), count);
    } else {
      std::fill_n(reinterpret_cast<std::uint32_t*>(to), count, value);
    }
    return true;
  });
}

int moduleLoad(const char* call, void** module, const void* image) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  machine().forbiddenWhileBusy(call, machine().current()->device);
  auto* loaded = new Module{machine().current(), {}};
  const std::string text(static_cast<const char*>(image));
  const std::string mark = ".entry ";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    at += mark.size();
    loaded->entries.push_back(text.substr(at, text.find_first_of("(\n \t", at) - at));
  }
  if (loaded->entries.empty()) {
    delete loaded;
    return 218;
  }
  machine().modules.push_back(loaded);
  *module = loaded;
  return 0;
}

int moduleUnload(const char* call, void* module) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto& all = machine().modules;
  auto found = std::find(all.begin(), all.end(), module);
  if (found == all.end()) {
    machine().violation(std::string(call) + ": not a module");
    return kInvalidHandle;
  }
  machine().forbiddenWhileBusy(call, (*found)->context->device);
  auto& functions = machine().functions;
  for (auto each = functions.begin(); each != functions.end();) {
    if (each->first.first == module) {
      delete each->second;
      each = functions.erase(each);
    } else {
      ++each;
    }
  }
  delete *found;
  all.erase(found);
  return code;
}

int moduleFunction(const char* call, void** function, void* handle, const char* name) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  auto* module = static_cast<Module*>(handle);
  const auto& entries = module->entries;
  if (std::find(entries.begin(), entries.end(), name) == entries.end()) return kNotFound;
  Function*& made = machine().functions[{module, name}];
  if (made == nullptr) made = new Function{module->context, name};
  *function = made;
  return 0;
}

int enablePeer(const char* call, Context* peer) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  if (!machine().peerAccess) return 217;
  auto& peers = machine().current()->peers;
  if (std::find(peers.begin(), peers.end(), peer) != peers.end()) return kPeerAlreadyEnabled;
  peers.push_back(peer);
  return 0;
}

int launchKernel(const char* call, void* function, const unsigned* grid, const unsigned* block,
                 void* handle, void** arguments) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  Stream* on = machine().stream(call, handle);
  if (on == nullptr || function == nullptr) return kInvalidHandle;
  return machine().launch(call, static_cast<Function*>(function), on, grid, block, arguments);
}

int beginCapture(const char* call, void* handle, int mode) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* stream = machine().stream(call, handle);
  if (stream == nullptr || stream->graph != nullptr || mode != 2) return kInvalidValue;
  stream->graph = new Graph{stream->context, stream, {stream}, {stream->context}, {{}}, {}};
  stream->branch = 0;
  return 0;
}

int endCapture(const char* call, void* handle, void** result) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  Stream* stream = machine().stream(call, handle);
  if (stream == nullptr || stream->graph == nullptr || stream->graph->origin != stream) {
    return kInvalidValue;
  }
  Graph* graph = stream->graph;
  for (Stream* each : graph->streams) each->graph = nullptr;
  std::size_t joined = 1;
  for (std::size_t b = 1; b < graph->branches.size(); ++b) {
    joined += std::count(graph->joined.begin(), graph->joined.end(), b) > 0 ? 1 : 0;
  }
  // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
  const int status = code != 0 ? code : joined < graph->branches.size() ? 904 : 0;
  if (status != 0) {
    delete graph;
    return status;
  }
  machine().graphs.push_back(graph);
  *result = graph;
  return 0;
}

int graphInstantiate(const char* call, void** executable, void* graph) {
  Guard guard(machine().lock);
  int code = machine().enter(call);
  if (code == 0) code = needContext(call);
  if (code != 0) return code;
  auto* made = new Graph(*static_cast<Graph*>(graph));
  for (const Context* each : made->contexts) machine().forbiddenWhileBusy(call, each->device);
  machine().executables.push_back(made);
  *executable = made;
  return 0;
}

int graphLaunch(const char* call, void* handle, void* on) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  if (code != 0) return code;
  Stream* stream = machine().stream(call, on);
  auto* graph = static_cast<Graph*>(handle);
  if (stream == nullptr || graph->context != stream->context) return kInvalidHandle;
  for (const Context* each : graph->contexts) {
    if (each->dead != 0) return each->dead;
  }
  auto progress = std::make_shared<Progress>();
  progress->left = graph->branches;
  progress->contexts = graph->contexts;
  progress->at.resize(graph->branches.size());
  machine().push(*stream, {Operation::Kind::kernel, [progress] { return stepGraph(*progress); },
                           nullptr, 0, 0, 0, graph->contexts});
  return 0;
}

int graphDestroy(const char* call, void* graph, bool executable) {
  Guard guard(machine().lock);
  const int code = machine().enter(call);
  auto& all = executable ? machine().executables : machine().graphs;
  auto found = std::find(all.begin(), all.end(), graph);
  if (found == all.end()) {
    machine().violation(std::string(call) + ": not a graph");
    return kInvalidHandle;
  }
  for (const Context* each : (*found)->contexts) {
    if (executable) machine().forbiddenWhileBusy(call, each->device);
  }
  delete *found;
  all.erase(found);
  return code;
}

const char* errorName(int code) {
  switch (code) {
    case 0: return "SUCCESS";
    case kInvalidValue: return "ERROR_INVALID_VALUE";
    case kOutOfMemory: return "ERROR_OUT_OF_MEMORY";
    case kInvalidContext: return "ERROR_INVALID_CONTEXT";
    case 218: return "ERROR_INVALID_PTX";
    case kInvalidHandle: return "ERROR_INVALID_HANDLE";
    case kNotFound: return "ERROR_NOT_FOUND";
    case kIllegalAddress: return "ERROR_ILLEGAL_ADDRESS";
    default: return "ERROR_STUB";
  }
}

}  // namespace headrace::stub
