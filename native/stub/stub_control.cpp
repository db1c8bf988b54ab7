// The test's interface to the stub driver: plain C functions, found with dlsym in the loaded library.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "stub_machine.h"

using headrace::stub::Machine;
using headrace::stub::Operation;
using headrace::stub::Stream;
using Guard = std::lock_guard<std::recursive_mutex>;

extern "C" {
const char* stubViolations();
std::uint64_t stubCalls(const char* call);
}

namespace {

/// If several processes run, each leaves a file of its own with its violations and its counts of calls.
struct Report {
  ~Report() {
    const char* folder = std::getenv("HEADRACE_STUB_REPORT");
    if (folder == nullptr) return;
    const std::string path = std::string(folder) + "/stub-" + std::to_string(getpid());
    FILE* file = std::fopen(path.c_str(), "we");
    if (file == nullptr) return;
    const std::string broken = stubViolations();
    for (std::size_t at = 0, end = 0; at < broken.size(); at = end + 1) {
      end = broken.find('\n', at);
      std::fprintf(file, "broken %s\n", broken.substr(at, end - at).c_str());
    }
    for (const auto& each : Machine::instance().calls) {
      std::fprintf(file, "%s %llu\n", each.first.c_str(),
                   static_cast<unsigned long long>(each.second));
    }
    std::fclose(file);
  }
} report;

}  // namespace

extern "C" {

/// Texts of broken rules since the last call, one per line.
__attribute__((visibility("default"))) const char* stubViolations() {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  static std::string text;
  text.clear();
  for (const auto& each : machine.violations) text += each + "\n";
  machine.violations.clear();
  return text.c_str();
}

__attribute__((visibility("default"))) std::uint64_t stubCalls(const char* call) {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  return machine.calls[call];
}

/// The `nth` call from now on of that name returns `code`. Codes of a lost context stay.
__attribute__((visibility("default"))) void stubFault(const char* call, std::uint64_t nth,
                                                      int code) {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  machine.faults.push_back({call, machine.calls[call] + nth, code});
}

/// Forgets faults and revives dead contexts; for between two tests.
__attribute__((visibility("default"))) void stubReset(int devices, int peers, unsigned seed) {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  machine.devices = devices;
  machine.peerAccess = peers != 0;
  machine.faults.clear();
  machine.violations.clear();
  machine.pageableCopies = 0;
  machine.adversary.seed(seed);
  machine.purge();
  for (auto& context : machine.contexts) {
    context.dead = 0;
    context.peers.clear();
  }
}

/// True when a stream waits for an event, or for work of a graph, of a context that is dead: it will wait for ever.
__attribute__((visibility("default"))) int stubStuck() {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  for (const Stream* stream : machine.streams) {
    for (const Operation& operation : stream->operations) {
      for (const auto* each : operation.contexts) {
        if (each->dead != 0) return 1;
      }
      if (operation.kind != Operation::Kind::wait) continue;
      if (operation.event == nullptr || operation.event->context->dead != 0) return 1;
    }
  }
  return 0;
}

/// Objects that exist: allocations, registrations, streams, events, modules, retained contexts.
__attribute__((visibility("default"))) std::uint64_t stubLive() {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  std::uint64_t retained = 0;
  for (const auto& context : machine.contexts)
    retained += static_cast<std::uint64_t>(context.retained);
  return machine.allocations.size() + machine.imports.size() + machine.registered.size() +
         machine.streams.size() + machine.events.size() + machine.modules.size() +
         machine.graphs.size() + machine.executables.size() + retained;
}

__attribute__((visibility("default"))) std::uint64_t stubPageable() {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  return machine.pageableCopies;
}

/// Puts work into a stream; for the stub of cuBLAS and cuSOLVER. It may run several times, or never, before `data` is given to
/// `release`. Returns 0 or a code.
__attribute__((visibility("default"))) int stubEnqueue(void* handle, void (*run)(void*), void* data,
                                                       void (*release)(void*)) {
  const std::shared_ptr<void> kept(data, release);
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  Stream* on = machine.stream("stubEnqueue", handle);
  if (on == nullptr) return headrace::stub::kInvalidHandle;
  machine.push(*on, {Operation::Kind::kernel,
                     [run, kept] {
                       run(kept.get());
                       return true;
                     },
                     nullptr, 0, 0, 0});
  return 0;
}

__attribute__((visibility("default"))) void stubViolation(const char* text) {
  Machine& machine = Machine::instance();
  Guard guard(machine.lock);
  machine.violation(text);
}
}
