// The imaginary GPUs: see stub_machine.h.
#include "stub_machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace headrace::stub {

namespace {

thread_local Context* currentContext = nullptr;

/// "call:nth:code", separated by commas.
void parseFaults(const char* text, std::vector<Machine::Fault>& faults) {
  std::string rest(text);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string one = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const auto a = one.find(':');
    const auto b = one.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    faults.push_back({one.substr(0, a), std::strtoull(one.c_str() + a + 1, nullptr, 10),
                      std::atoi(one.c_str() + b + 1)});
  }
}

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

}  // namespace

Machine& Machine::instance() {
  static Machine* machine = new Machine;
  return *machine;
}

Machine::Machine() {
  devices = environment("HEADRACE_STUB_DEVICES", 2);
  peerAccess = environment("HEADRACE_STUB_PEERS", 1) != 0;
  rdmaOrdering = environment("HEADRACE_STUB_ORDERING", 100);
  adversary.seed(static_cast<unsigned>(environment("HEADRACE_STUB_SEED", 1)));
  if (const char* text = std::getenv("HEADRACE_STUB_FAULTS")) parseFaults(text, faults);
  contexts.resize(8);
  for (int i = 0; i < 8; ++i) contexts[static_cast<std::size_t>(i)].device = i;
}

int Machine::enter(const char* call) {
  const std::uint64_t count = ++calls[call];
  for (const Fault& fault : faults) {
    if (fault.call != call || fault.nth != count) continue;
    if ((fault.code == kIllegalAddress || fault.code == 719) && currentContext != nullptr) {
      die(*currentContext, fault.code);
    }
    return fault.code;
  }
  return currentContext != nullptr ? currentContext->dead : 0;
}

void Machine::violation(const std::string& text) { violations.push_back(text); }

Context* Machine::current() { return currentContext; }
void Machine::setCurrent(Context* context) { currentContext = context; }

bool Machine::inDevice(std::uint64_t address, std::uint64_t bytes, int device) const {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return false;
  --next;
  return next->second.device == device && address - next->first <= next->second.bytes &&
         bytes <= next->second.bytes - (address - next->first);
}

bool Machine::imported(std::uint64_t address, std::uint64_t bytes, const Context* context) const {
  auto next = imports.upper_bound(address);
  if (next == imports.begin()) return false;
  --next;
  return next->second.context == context && address - next->first <= next->second.bytes &&
         bytes <= next->second.bytes - (address - next->first);
}

void Machine::useHost(const char* call, std::uint64_t address, std::uint64_t bytes) {
  if (inDevice(address, bytes, -1)) return;
  for (int device = 0; device < devices; ++device) {
    if (inDevice(address, 1, device)) {
      violation(std::string(call) + ": device memory where host memory belongs");
    }
  }
  auto next = registered.upper_bound(address);
  const bool inside =
      next != registered.begin() && address < std::prev(next)->first + std::prev(next)->second;
  if (!inside) {
    ++pageableCopies;
    if (next != registered.end() && next->first < address + bytes) {
      violation(std::string(call) + ": begins in pageable and ends in page-locked memory");
    }
  } else if (address + bytes > std::prev(next)->first + std::prev(next)->second) {
    violation(std::string(call) + ": spans two registrations of host memory");
  }
}

Stream* Machine::stream(const char* call, void* handle) {
  auto* asked = static_cast<Stream*>(handle);
  if (asked == nullptr) {
    violation(std::string(call) + ": NULL stream");
    return nullptr;
  }
  if (std::find(streams.begin(), streams.end(), asked) == streams.end()) {
    violation(std::string(call) + ": a stream that does not exist");
    return nullptr;
  }
  return asked;
}

bool Machine::known(const Event* event) const {
  return std::find(events.begin(), events.end(), event) != events.end();
}

void Machine::push(Stream& on, Operation operation) {
  if (on.graph != nullptr) {
    on.graph->branches[on.branch].push_back({std::move(operation.run)});
    return;
  }
  on.operations.push_back(std::move(operation));
}

/// One step of a stream's first operation; true when something moved.
bool Machine::step(Stream& on) {
  if (on.operations.empty() || on.context->dead != 0) return false;
  Operation& first = on.operations.front();
  switch (first.kind) {
    case Operation::Kind::record:
      first.event->completed = std::max(first.event->completed, first.count);
      break;
    case Operation::Kind::wait:
      if (first.event == nullptr || first.event->completed < first.count) return false;
      break;
    default:
      if (!first.run()) return true;
  }
  // A kernel that died ended its stream too.
  if (on.context->dead == 0) on.operations.pop_front();
  return true;
}

void Machine::advance() {
  if (streams.empty() || adversary() % 4 == 0) return;
  bool moved = false;
  const std::size_t tries = 1 + adversary() % 4;
  for (std::size_t i = 0; i < tries; ++i) {
    moved |= step(*streams[adversary() % streams.size()]);
  }
  // The adversary is fair in the end: something that can move does.
  for (std::size_t i = 0; i < streams.size() && !moved; ++i) moved = step(*streams[i]);
}

bool Machine::busy(int device, bool kernelsOnly) const {
  for (const Stream* each : streams) {
    if (each->context->dead != 0) continue;
    for (const Operation& operation : each->operations) {
      // Work that a dead context holds up for ever is no running kernel.
      const auto& all = operation.contexts;
      if (std::any_of(all.begin(), all.end(), [](const Context* one) { return one->dead != 0; })) {
        continue;
      }
      if (device >= 0 && each->context->device != device &&
          std::none_of(all.begin(), all.end(),
                       [&](const Context* one) { return one->device == device; })) {
        continue;
      }
      if (operation.kind == Operation::Kind::kernel) return true;
      if (!kernelsOnly && operation.kind == Operation::Kind::work) return true;
    }
  }
  return false;
}

void Machine::forbiddenWhileBusy(const char* call, int device) {
  if (busy(device, true)) {
    violation(std::string(call) + ": while a kernel may be running (it would wait for it)");
  }
}

void Machine::die(Context& context, int code) { context.dead = code; }

void Machine::purge() {
  // Kept reachable, so that a leak checker does not report objects that were left behind on purpose.
  static auto* const left = new std::vector<std::vector<void*>>;
  left->emplace_back(streams.begin(), streams.end());
  left->emplace_back(events.begin(), events.end());
  left->emplace_back(modules.begin(), modules.end());
  left->emplace_back(graphs.begin(), graphs.end());
  left->emplace_back(executables.begin(), executables.end());
  for (const auto& each : functions) left->back().push_back(each.second);
  allocations.clear();
  imports.clear();
  registered.clear();
  streams.clear();
  events.clear();
  modules.clear();
  graphs.clear();
  executables.clear();
  functions.clear();
  for (Context& context : contexts) context.retained = 0;
}

int Machine::create(Stream** result, unsigned flags, const char* call) {
  if (current() == nullptr) {
    violation(std::string(call) + ": no context is current");
    return kInvalidContext;
  }
  if ((flags & 1) == 0) violation(std::string(call) + ": a stream that the NULL stream blocks");
  forbiddenWhileBusy(call, current()->device);
  *result = new Stream{current(), (flags & 1) != 0, {}};
  streams.push_back(*result);
  return 0;
}

int Machine::launch(const char* call, Function* function, Stream* on, const unsigned* grid,
                    const unsigned* block, void** arguments) {
  if (on->context != current() || function->context != current()) {
    violation(std::string(call) + ": stream or function of another context than the current one");
    return kInvalidHandle;
  }
  for (int d = 0; d < 3; ++d) {
    if (grid[d] == 0 || block[d] == 0) return kInvalidValue;
  }
  if (block[0] * block[1] * block[2] > 1024) return kInvalidValue;
  const KernelModel* model = kernelModel(function->name);
  std::vector<std::uint64_t> values;
  if (model != nullptr) {
    for (std::size_t i = 0; i < model->sizes.size(); ++i) {
      const std::size_t at = values.size();
      values.resize(at + (model->sizes[i] + 7) / 8);
      std::memcpy(&values[at], arguments[i], model->sizes[i]);
    }
  }
  Context* context = on->context;
  auto run = [this, model, values, context] {
    return model == nullptr || model->run(*this, *context, values.data());
  };
  push(*on, {Operation::Kind::kernel, run, nullptr, 0, 0, 0});
  return 0;
}

}  // namespace headrace::stub
