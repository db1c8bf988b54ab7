// The staged way by hand: 16 MiB go back and forth between two ranks in chunks, through staging buffers, with a thread per rank that
// copies to and from them, as native/mpi/ does between emulated GPUs. Beside it the same bytes as one message. It shows what
// the way costs on a machine apart from Headrace: each byte is moved three times instead of once.
//
// usage: PROGRAM [ROUND TRIPS OF A REPEAT], on two ranks
// Rank 0 prints bytes per second: {"whole": ..., "staged": ...}, medians of the repeats.
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "../../native/mpi/chunks.h"

namespace {

constexpr std::int64_t kBytes = 16 << 20;
constexpr std::int64_t kChunk = 512 << 10;
constexpr int kBuffers = 4;
constexpr int kRepeats = 5;
constexpr int kTag = 1;

/// Copies in order, on a thread that waits awake.
class Copier {
 public:
  Copier() : thread_([this] { run(); }) {}
  ~Copier() {
    ending_ = true;
    thread_.join();
  }
  /// Number of the copy; it is over when `done` has reached it.
  std::uint64_t copy(char* to, const char* from, std::int64_t bytes) {
    const std::uint64_t number = submitted_.load(std::memory_order_relaxed);
    jobs_[number % kJobs] = {to, from, bytes};
    submitted_.store(number + 1, std::memory_order_release);
    return number + 1;
  }
  std::uint64_t done() const { return done_.load(std::memory_order_acquire); }

 private:
  struct Job {
    char* to;
    const char* from;
    std::int64_t bytes;
  };
  void run() {
    for (std::uint64_t next = 0;; ++next) {
      while (submitted_.load(std::memory_order_acquire) == next) {
        if (ending_) return;
        std::this_thread::yield();
      }
      const Job& job = jobs_[next % kJobs];
      std::memcpy(job.to, job.from, static_cast<std::size_t>(job.bytes));
      done_.store(next + 1, std::memory_order_release);
    }
  }

  static constexpr std::uint64_t kJobs = 2 * kBuffers;
  Job jobs_[kJobs] = {};
  alignas(128) std::atomic<std::uint64_t> submitted_{0};
  alignas(128) std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

/// One side of a transfer: a chunk is in one of the buffers from its copy or receive on.
class Side {
 public:
  explicit Side(char* memory) : memory_(memory) {
    for (char*& buffer : buffers_) {
      buffer = static_cast<char*>(std::aligned_alloc(4096, kChunk));
      std::memset(buffer, 1, kChunk);
    }
    std::fill_n(requests_, kBuffers, MPI_REQUEST_NULL);
  }
  ~Side() {
    for (char* buffer : buffers_) std::free(buffer);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void transfer(int peer, bool sends) {
    peer_ = peer;
    next_ = 0;
    for (int buffer = 0; buffer < kBuffers; ++buffer) free_.push_back(buffer);
    while (next_ < kBytes || free_.size() < kBuffers) {
      while (next_ < kBytes && !free_.empty()) begin(sends);
      int finished = 0;
      std::vector<int> indices(kBuffers);
      MPI_Testsome(kBuffers, requests_, &finished, indices.data(), MPI_STATUSES_IGNORE);
      indices.resize(static_cast<std::size_t>(finished == MPI_UNDEFINED ? 0 : finished));
      arrived(indices, sends);
      while (!copies_.empty() && copier_.done() >= copies_.front().number) copied(sends);
    }
    free_.clear();
  }

 private:
  struct Copy {
    std::uint64_t number;
    int buffer;
  };

  void begin(bool sends) {
    const int buffer = free_.back();
    free_.pop_back();
    offsets_[buffer] = next_;
    lengths_[buffer] = headrace::mpi::chunkLength(next_, kBytes, kChunk);
    next_ += lengths_[buffer];
    if (sends)
      copies_.push_back(
          {copier_.copy(buffers_[buffer], memory_ + offsets_[buffer], lengths_[buffer]), buffer});
    else
      MPI_Irecv(buffers_[buffer], static_cast<int>(lengths_[buffer]), MPI_BYTE, peer_, kTag,
                MPI_COMM_WORLD, &requests_[buffer]);
  }

  void arrived(std::vector<int>& buffers, bool sends) {
    std::sort(buffers.begin(), buffers.end(),
              [this](int a, int b) { return offsets_[a] < offsets_[b]; });
    for (const int buffer : buffers) {
      if (sends)
        free_.push_back(buffer);
      else
        copies_.push_back(
            {copier_.copy(memory_ + offsets_[buffer], buffers_[buffer], lengths_[buffer]), buffer});
    }
  }

  void copied(bool sends) {
    const int buffer = copies_.front().buffer;
    copies_.pop_front();
    if (sends)
      MPI_Isend(buffers_[buffer], static_cast<int>(lengths_[buffer]), MPI_BYTE, peer_, kTag,
                MPI_COMM_WORLD, &requests_[buffer]);
    else
      free_.push_back(buffer);
  }

  char* memory_;
  Copier copier_;
  char* buffers_[kBuffers];
  MPI_Request requests_[kBuffers];
  std::int64_t offsets_[kBuffers] = {};
  std::int64_t lengths_[kBuffers] = {};
  std::vector<int> free_;
  std::deque<Copy> copies_;
  std::int64_t next_ = 0;
  int peer_ = 0;
};

void whole(char* memory, int peer, bool sends) {
  if (sends)
    MPI_Send(memory, kBytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
  else
    MPI_Recv(memory, kBytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// Bytes per second.
template <typename Transfer>
double rate(int rank, int rounds, Transfer transfer) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < 2 * rounds; ++i) transfer(1 - rank, i % 2 == rank);
  return 2 * rounds * static_cast<double>(kBytes) / (MPI_Wtime() - start);
}

/// What the memory of a rank has at first.
char valueAt(std::int64_t i, int rank) { return rank == 0 ? static_cast<char>(i * 31 / 7) : '\0'; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 1);
  char* bytes = static_cast<char*>(memory);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  for (std::int64_t i = 0; i < kBytes; ++i) bytes[i] = valueAt(i, rank);
  {
    Side side(bytes);
    side.transfer(1 - rank, rank == 0);
  }
  for (std::int64_t i = 0; i < kBytes; ++i)
    if (bytes[i] != valueAt(i, 0)) MPI_Abort(MPI_COMM_WORLD, 1);
  std::vector<double> wholes;
  std::vector<double> stageds;
  // The first repeat counts for nothing. The copying thread exists for the staged part only.
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    const double one = rate(rank, rounds, [&](int peer, bool sends) { whole(bytes, peer, sends); });
    Side side(bytes);
    const double chunks =
        rate(rank, rounds, [&](int peer, bool sends) { side.transfer(peer, sends); });
    if (repeat == 0) continue;
    wholes.push_back(one);
    stageds.push_back(chunks);
  }
  if (rank == 0)
    std::printf("{\"whole\": %.0f, \"staged\": %.0f}\n", median(wholes), median(stageds));
  MPI_Finalize();
}
