// The comm thread: see world.h.
#include "world.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "raw.h"

#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

namespace headrace::mpi {
namespace {

constexpr std::int64_t kYield = 50'000;
/// The same while something is under way.
constexpr std::int64_t kBusyYield = 5'000'000;
/// The same while MPI moves long messages: it moves their pieces only inside its calls, and the movement of a piece is invisible. With
/// naps of 20 us in between 16 MiB take four times as long on two cores.
constexpr std::int64_t kMovingYield = 1'000'000'000;
constexpr std::int64_t kStep = 20'000;
/// Looks for messages between two sleeps: a call may take a message from the wire that only the next call shows.
constexpr std::int32_t kLooks = 4;
constexpr std::int64_t kQuietStep = 1'000'000;
/// A thread that spins at least that long looks at the clock in one round of `kClockRounds`: a reading costs a third of a round.
constexpr std::int64_t kLongSpin = 100'000;
constexpr std::uint32_t kClockRounds = 16;
/// How often the thread reads the lifeline.
constexpr std::int64_t kLook = 5'000'000;
/// A wait for the end of other ranks that is not mentioned.
constexpr std::chrono::milliseconds kSilentWait{2000};

std::uint64_t mix(std::uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::string firstLine(const char* path) {
  char text[128] = "";
  if (FILE* file = std::fopen(path, "re"); file != nullptr) {
    if (std::fgets(text, sizeof text, file) == nullptr) text[0] = 0;
    std::fclose(file);
  }
  return text;
}

/// Processes with the same value can open each other's /proc/<pid>/fd.
std::uint64_t hostIdentity() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  char space[256] = "";
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = 0;
  std::uint64_t hash = mix(14695981039346656037ull, name);
  hash = mix(hash, firstLine("/proc/sys/kernel/random/boot_id"));
  return mix(hash, space);
}

const char* levelName(int level) {
  switch (level) {
    case MPI_THREAD_MULTIPLE: return "multiple";
    case MPI_THREAD_SERIALIZED: return "serialized";
    case MPI_THREAD_FUNNELED: return "funneled";
    default: return "single";
  }
}

}  // namespace

Facts describeLibrary() {
  Facts facts;
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  facts.library = std::string(text, static_cast<std::size_t>(length));
  facts.library = facts.library.c_str();  // some libraries count the final zero
  facts.library = facts.library.substr(0, facts.library.find('\n'));
  int version = 0;
  int subversion = 0;
  MPI_Get_version(&version, &subversion);
  facts.standard = std::to_string(version) + "." + std::to_string(subversion);
#if defined(OPEN_MPI) && OPEN_MPI
  facts.flavour = "openmpi";
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  facts.gpuAware = MPIX_Query_cuda_support() == 1;
#endif
#elif defined(MPICH_VERSION)
  facts.flavour = "mpich";
#else
  facts.flavour = "other";
#endif
  return facts;
}

World& World::instance() {
  // Never destroyed: the comm thread may outlive static destruction when a peer was lost.
  static World* world = new World();
  return *world;
}

// --- The engine's side --------------------------------------------------------------------------------------------

Facts World::start(const GpuName& gpu) {
  std::unique_lock<std::mutex> guard(lock_);
  if (!started_) {
    started_ = true;
    startGpu_ = gpu;
    thread_ = std::thread([this] { run(); });
  }
  changed_.wait(guard, [this] { return up_ || !error_.empty(); });
  if (!up_) throw std::runtime_error(error_);
  return facts_;
}

void World::give(Order order) {
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return order_ == Order::none; });
  answered_ = false;
  error_.clear();
  order_.store(order, std::memory_order_release);
  sleeper_.unpark();
  changed_.notify_all();
}

Opened World::open(SessionOptions options) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (!up_ || finished_) throw std::runtime_error("MPI is not running");
    if (wanted_ != nullptr || session_ != nullptr) {
      throw std::runtime_error("another runtime of this process uses the network");
    }
    wanted_ = std::make_unique<SessionOptions>(std::move(options));
  }
  give(Order::open);
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return answered_; });
  wanted_.reset();
  if (!error_.empty()) throw std::runtime_error(error_);
  return opened_;
}

void World::end() {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (session_ == nullptr) return;
  }
  give(Order::end);
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return answered_; });
}

double World::measure(std::int64_t bytes, int rounds, Raw how) {
  measureBytes_ = bytes;
  measureRounds_ = rounds;
  measureHow_ = how;
  give(Order::measure);
  std::unique_lock<std::mutex> guard(lock_);
  changed_.wait(guard, [this] { return answered_; });
  if (!error_.empty()) throw std::runtime_error(error_);
  return measured_;
}

bool World::finish(int milliseconds, bool abandon) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (!up_ || ended_) return finished_;
    ended_ = true;
    abandon_ = abandon;
  }
  give(Order::finish);
  // MPI_Finalize returns when all ranks have called it: a wait that the user notices is explained.
  const int rank = facts_.rank;
  std::unique_lock<std::mutex> guard(lock_);
  const auto over = [this] { return answered_; };
  const auto began = std::chrono::steady_clock::now();
  const std::chrono::milliseconds limit(milliseconds);
  changed_.wait_for(guard, std::min(limit, kSilentWait), over);
  if (!answered_) {
    std::fprintf(
        stderr,
        "headrace: rank %d has ended its program and waits for the other ranks to end theirs, "
        "up to %d s\n",
        rank, milliseconds / 1000);
    changed_.wait_until(guard, began + limit, over);
  }
  const bool answered = answered_;
  if (!answered)
    std::fprintf(
        stderr,
        "headrace: rank %d ends without MPI_Finalize: some rank did not end within %d s; the "
        "launcher may end the job\n",
        rank, milliseconds / 1000);
  guard.unlock();
  if (answered)
    thread_.join();
  else
    thread_.detach();
  return finished_;
}

// --- The comm thread ----------------------------------------------------------------------------------------------

void World::run() {
  pthread_setname_np(pthread_self(), "hr-comm");
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  host_ = hostIdentity();
  const bool ok = initialise();
  {
    std::lock_guard<std::mutex> guard(lock_);
    up_ = ok;
  }
  changed_.notify_all();
  if (ok) serve();
}

bool World::initialise() {
  facts_ = describeLibrary();
  int initialised = 0;
  MPI_Initialized(&initialised);
  std::string error;
  if (!startGpu_.uuid.empty()) {
    mpiGpu_ = gpus_.find(startGpu_.kind, startGpu_.uuid, error);
    if (mpiGpu_ != nullptr) mpiGpu_->makeCurrent();
  }
  if (initialised != 0) {
    error = "another library initialised MPI in this process";
  } else if (error.empty()) {
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
      error = "MPI_Init_thread failed";
    } else if (provided < MPI_THREAD_SERIALIZED) {
      error = std::string("the MPI library offers thread level '") + levelName(provided) +
              "', 'serialized' is needed";
    } else {
      facts_.threadLevel = levelName(provided);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm_rank(MPI_COMM_WORLD, &facts_.rank);
      MPI_Comm_size(MPI_COMM_WORLD, &facts_.size);
      if (facts_.size == 1 || tie()) return true;
    }
  }
  std::lock_guard<std::mutex> guard(lock_);
  if (!error.empty()) error_ = error;
  return false;
}

/// Connects the lifeline of all ranks.
bool World::tie() {
  std::vector<std::uint64_t> hosts(static_cast<std::size_t>(facts_.size));
  MPI_Allgather(&host_, 8, MPI_BYTE, hosts.data(), 8, MPI_BYTE, MPI_COMM_WORLD);
  hostRanks_ = static_cast<std::int32_t>(std::count(hosts.begin(), hosts.end(), host_));
  const bool oneHost = hostRanks_ == facts_.size;
  Lifeline::Address address{};
  std::string error;
  bool ok = true;
  if (facts_.rank == 0) ok = lifeline_.listen(oneHost, address, error);
  if (!ok) address.host[0] = 0;
  MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
  ok = ok && address.host[0] != 0 && lifeline_.open(facts_.rank, facts_.size, address, error);
  int all = ok ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all == 1) return true;
  std::lock_guard<std::mutex> guard(lock_);
  error_ = error.empty() ? "another rank cannot reach rank 0" : error;
  return false;
}

void World::checkLifeline() {
  const std::int64_t time = now();
  if (time - lookedAt_ < kLook) return;
  lookedAt_ = time;
  if (lost_ >= 0 || facts_.size == 1) return;
  lost_ = lifeline_.lostRank();
  if (lost_ >= 0 && session_ != nullptr) session_->lost(lost_);
}

/// Waits for a collective without hanging on a rank that died; the rank lost, or -1.
int World::waitFor(MPI_Request* request) {
  int flag = 0;
  for (;;) {
    MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    if (flag != 0) return -1;
    checkLifeline();
    if (lost_ >= 0) return lost_;
    sleeper_.park(kStep);
  }
}

void World::serve() {
  for (;;) {
    const Order order = order_.load(std::memory_order_acquire);
    if (order != Order::none) {
      if (order == Order::open) openSession();
      if (order == Order::measure) measureRaw();
      bool over = false;
      bool finalized = false;
      if (order == Order::finish) {
        over = true;
        if (session_ == nullptr && lost_ < 0 && !abandon_) {
          lifeline_.leave();
          MPI_Finalize();
          gpus_.release();
          finalized = true;
        }
      }
      std::lock_guard<std::mutex> guard(lock_);
      if (order == Order::end) session_.reset();
      finished_ = finalized;
      order_ = Order::none;
      answered_ = true;
      changed_.notify_all();
      if (over) return;
      idleSince_ = 0;
      hurries_ = session_ != nullptr && session_->options().spinNanoseconds >= kLongSpin;
    }
    if (!hurries_ || ++rounds_ % kClockRounds == 0) checkLifeline();
    if (session_ != nullptr && session_->tick(hurries_)) {
      idleSince_ = 0;
      hurries_ = session_->options().spinNanoseconds >= kLongSpin;
      continue;
    }
    rest();
  }
}

void World::measureRaw() {
  std::string error;
  try {
    const bool isReal = measureHow_ == Raw::gpuMemory || measureHow_ == Raw::ipcRead;
    const Gpu* gpu = isReal ? mpiGpu_ : nullptr;
    if (isReal && gpu == nullptr) throw std::runtime_error("no GPU was named");
    measured_ = measureHow_ == Raw::ipcRead
                    ? rawIpcRead(measureBytes_, measureRounds_, facts_.rank, facts_.size, gpu)
                    : rawPingPong(measureBytes_, measureRounds_, facts_.rank, facts_.size, gpu,
                                  measureHow_ == Raw::emulatedMemory);
  } catch (const std::runtime_error& problem) {
    error = problem.what();
  }
  std::lock_guard<std::mutex> guard(lock_);
  error_ = error;
}

void World::rest() {
  if (session_ == nullptr) {
    sleeper_.park(kLook);
    return;
  }
  // A round takes longer than a pause, and a message would wait for both.
  if (hurries_ && rounds_ % kClockRounds != 0) return;
  const std::int64_t spin = session_->options().spinNanoseconds;
  const std::int64_t time = now();
  if (idleSince_ == 0) idleSince_ = time;
  const std::int64_t idle = time - idleSince_;
  if (idle < spin) {
    pauseProcessor();
    return;
  }
  // From here on each round looks at all that could wake the thread.
  hurries_ = false;
  const bool busy = session_->busy();
  const bool woken = session_->isWoken();
  const std::int64_t yields = !busy                    ? (woken ? 0 : kYield)
                              : session_->movesBytes() ? kMovingYield
                                                       : kBusyYield;
  if (idle < spin + yields || ++looks_ < kLooks) {
    sched_yield();
    return;
  }
  looks_ = 0;
  // Either the engine sees that this thread sleeps, or this thread sees its command.
  Word& sleeping = session_->word(NetWord::sleeping);
  sleeping.store(1, std::memory_order_seq_cst);
  if (!session_->commandsWaiting() && session_->watchLanes()) {
    const bool quiet = session_->word(NetWord::quiet).load(std::memory_order_relaxed) != 0;
    const bool calm = !busy && (woken || (quiet && !session_->lanesWaiting()));
    sleeper_.park(calm ? kQuietStep : kStep);
  }
  session_->unwatchLanes();
  sleeping.store(0, std::memory_order_seq_cst);
}

}  // namespace headrace::mpi
