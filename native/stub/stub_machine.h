// Imaginary GPUs for tests: the part that the stub driver libraries (libcuda, libamdhip64) share.
//
// Device memory is host memory. A seeded adversary carries out the work in streams late and in an order of its choice,
// a little at every call that asks for completion, so a missing event edge shows as wrong data. The stub counts every
// call, can make it fail, and checks it against the rules that real drivers enforce by hanging, by undefined
// behaviour or not at all. It keeps each *violation* for the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace headrace::stub {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kPeerAlreadyEnabled = 704;
constexpr int kPeerNotEnabled = 705;
constexpr int kCaptureUnsupported = 900;

struct Context;

struct Graph;

struct Event {
  Context* context;
  std::uint64_t recorded = 0;
  std::uint64_t completed = 0;
  /// The capture in which it was recorded last, and the place of the recording in its stream's branch.
  Graph* graph = nullptr;
  std::size_t branch = 0;
  std::size_t place = 0;
};

struct Operation {
  enum class Kind { work, kernel, record, wait } kind;
  /// Carries out a step; true when finished.
  std::function<bool()> run;
  Event* event = nullptr;
  std::uint64_t count = 0;
  std::uint64_t from = 0;  // host bytes in use, if any
  std::uint64_t bytes = 0;
  /// Of a graph: all contexts in which it works.
  std::vector<Context*> contexts = {};
};

struct Stream {
  Context* context;
  bool nonBlocking;
  std::deque<Operation> operations;
  /// While it is captured: the graph, and which of its branches the stream is.
  Graph* graph = nullptr;
  std::size_t branch = 0;
};

/// A captured operation: work, or the order after a place in another branch.
struct Node {
  std::function<bool()> run;  // empty: an order
  std::size_t branch = 0;
  std::size_t place = 0;
};

/// What was put into streams while they were captured: a branch per stream, whose work is done in that stream's context.
struct Graph {
  Context* context;
  Stream* origin;
  std::vector<Stream*> streams;
  std::vector<Context*> contexts;
  std::vector<std::vector<Node>> branches;
  /// Branches that the first one follows to their ends.
  std::vector<std::size_t> joined;
};

struct Module {
  Context* context;
  std::vector<std::string> entries;
};

struct Function {
  Context* context;
  std::string name;
};

struct Context {
  int device;
  int retained = 0;
  int dead = 0;  // the code that all calls return once it is lost
  std::vector<Context*> peers;
};

struct Range {
  std::uint64_t bytes;
  int device;                    // -1: host
  int file = -1;                 // memfd behind device memory, so that other processes can open it
  std::uint64_t generation = 0;  // of device memory
};

/// Memory of another process, opened by its handle in one context.
struct Import {
  std::uint64_t bytes;
  Context* context;
  int opened;  // number of opens; the mapping goes with the last close
  int process;
  int file;
  int lock;  // open, and locked, while it is mapped: its owner must not free it
};

class Machine {
 public:
  static Machine& instance();

  std::recursive_mutex lock;
  int devices = 2;
  bool peerAccess = true;
  std::uint64_t memory = std::uint64_t{1} << 30;  // per device
  std::vector<Context> contexts;
  std::map<std::uint64_t, Range>
      allocations;  // device memory and pinned host memory of the driver's own
  std::map<std::uint64_t, Import> imports;
  std::map<std::uint64_t, std::uint64_t> registered;
  std::vector<Stream*> streams;
  std::vector<Event*> events;
  std::vector<Module*> modules;
  /// Captured, and those that were made of them and can be launched.
  std::vector<Graph*> graphs;
  std::vector<Graph*> executables;
  std::map<std::pair<Module*, std::string>, Function*> functions;
  std::uint64_t pageableCopies = 0;

  /// To be called first by every entry: counts, injects faults. 0, or the code that the call must return.
  int enter(const char* call);
  void violation(const std::string& text);
  /// Of the context current on this thread.
  Context* current();
  void setCurrent(Context* context);

  bool inDevice(std::uint64_t address, std::uint64_t bytes, int device) const;
  /// In memory of another process that `context` has opened.
  bool imported(std::uint64_t address, std::uint64_t bytes, const Context* context) const;
  std::uint64_t generations = 0;
  int rdmaOrdering = 100;
  /// Checks host memory of a copy: counts it if pageable, complains if it spans registrations.
  void useHost(const char* call, std::uint64_t address, std::uint64_t bytes);
  Stream* stream(const char* call, void* handle);
  bool known(const Event* event) const;
  void push(Stream& stream, Operation operation);
  /// Lets streams carry out some of their work, as the adversary chooses.
  void advance();
  bool busy(int device, bool kernelsOnly) const;  // device -1: any
  void forbiddenWhileBusy(const char* call, int device);
  void die(Context& context, int code);
  /// Forgets all objects that were left behind (their memory is not returned).
  void purge();

  int create(Stream** stream, unsigned flags, const char* call);
  int launch(const char* call, Function* function, Stream* stream, const unsigned* grid,
             const unsigned* block, void** arguments);

  std::map<std::string, std::uint64_t> calls;
  std::vector<std::string> violations;
  std::mt19937 adversary{1};
  struct Fault {
    std::string call;
    std::uint64_t nth;
    int code;
  };
  std::vector<Fault> faults;

 private:
  Machine();
  bool step(Stream& stream);
};

/// Sizes of a kernel's arguments and its function; null for a name that is not in the table.
struct KernelModel {
  const char* name;
  std::vector<std::size_t> sizes;
  /// One step; true when finished. Arguments one after the other, each from a new 8-byte value on.
  bool (*run)(Machine& machine, Context& context, const std::uint64_t* arguments);
};
const KernelModel* kernelModel(const std::string& name);

}  // namespace headrace::stub
