// One session: the traffic of one runtime over its own communicator. Used by the comm thread only.
//
// Invariants:
// - control messages of one peer are handed over in the order sent: receives are posted ahead and tested in the
//   order of posting;
// - no code here waits for the engine: events that do not fit are kept, commands are always taken;
// - the lane server learns of the end of every transfer exactly once, also when a peer is lost;
// - chunks of one transfer are posted in order, so that they match in order;
// - letters of lanes go from and into memory of their own, or through a mailbox: no lane waits for the library to send;
// - only its own mover (gpu_mover.h) or MPI touches memory of a real GPU, never this thread.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "copier.h"
#include "doubts.h"
#include "gpu_imports.h"
#include "gpu_mover.h"
#include "headrace/doorbell.h"
#include "imports.h"
#include "lane_server.h"
#include "mailbox.h"
#include "queues/futex_token.h"
#include "rings.h"
#include "shared_token.h"
#include "staging.h"

namespace headrace::mpi {

struct SpaceView {
  std::int32_t kind = 0;
  std::uint8_t* base = nullptr;
  double bytes = 0;
  std::int32_t fd = -1;
  /// MPI may get addresses of it.
  bool direct = true;
  /// A real GPU's: its UUID, itself once the comm thread has found it, and how others open its memory.
  std::string uuid;
  const Gpu* gpu = nullptr;
  bool shared = false;
  GpuExport exported{};
};

struct SessionOptions {
  std::vector<SpaceView> spaces;
  const headrace_doorbell* doorbell = nullptr;
  /// Null: the core has no lanes.
  const headrace_lanes* lanes = nullptr;
  std::int32_t treeFrom = 4;
  std::int64_t chunkBytes = 262144;
  std::int32_t chunksInFlight = 3;
  std::int64_t spinNanoseconds = 1000;
  std::int64_t flushNanoseconds = 5'000'000'000;
  /// Letters of this host's ranks may go through memory (mailbox.h).
  bool mailboxes = false;
  /// Told to the other ranks.
  std::array<double, NetLimit::told> told{};
  SharedMemory memory;
};

/// The facts that a rank tells the others when a session opens.
struct Hello {
  std::uint64_t host;
  std::int32_t pid;
  std::int32_t spaces;
  /// Descriptor of the comm thread's token (shared_token.h), or -1.
  std::int32_t tokenFd;
  /// Descriptor of its mailbox (mailbox.h), or -1.
  std::int32_t mailboxFd;
  std::uint64_t mailboxNumber;
  std::array<double, NetLimit::told> told;
  struct {
    std::int32_t kind;
    std::int32_t fd;
    std::uint64_t bytes;
    /// The driver's number of a real GPU in that process.
    std::int32_t ordinal;
    bool direct;
    bool shared;
    GpuExport exported;
  } space[NetLimit::spaces];
};

class Session : private LetterTransport {
 public:
  /// `bound` is the GPU that is current on this thread, if any; `mailbox` may be null. Opens the memory that peers of this host
  /// share. Throws std::runtime_error.
  Session(SessionOptions options, MPI_Comm comm, int rank, std::vector<Hello> peers,
          std::uint64_t host, const Gpu* bound, FutexToken& sleeper,
          std::unique_ptr<Mailbox> mailbox);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Takes commands, tests requests, hands events over. True when anything moved. If `hurries`, most rounds look only for
  /// letters and at lanes, unless something else is under way. Before the thread sleeps it must look at all. Where cores are
  /// scarce it does so in every round, with one call: the library may give the core away in each.
  bool tick(bool hurries);
  /// Requests or copies under way besides the posted control receives.
  bool busy() const {
    return live_ > 0 || messages_.size() > 0 || outgoing_.size() > freeOutgoing_.size() ||
           isClosing_;
  }
  /// MPI moves long messages.
  bool movesBytes() const;
  /// Everything for which this session waits unparks the comm thread: other ranks, and events for which lanes wait.
  bool isWoken() const { return isWoken_ && (laneServer_ == nullptr || !laneServer_->held()); }
  /// Lanes wait for an event or for a letter.
  bool lanesWaiting() const { return laneServer_ != nullptr && laneServer_->waiting(); }
  /// Before the comm thread sleeps: events for which lanes wait unpark it. False: one has happened.
  bool watchLanes() { return laneServer_ == nullptr || laneServer_->watch(&sleeper_); }
  void unwatchLanes() {
    if (laneServer_ != nullptr) laneServer_->unwatch();
  }
  /// A rank died: everything under way ends, and MPI is not called again.
  void lost(int rank);
  bool commandsWaiting() const;
  const SessionOptions& options() const { return options_; }
  const std::vector<Hello>& peers() const { return peers_; }
  /// Whether this rank can read `space` of `rank` without its help.
  bool mappable(int rank, int space) const;
  /// Whether this rank writes letters into memory of `rank`.
  bool writesTo(int rank) const { return peerMailboxes_.count(rank) != 0; }
  /// Why shared memory of a peer could not be opened; empty when all could.
  const std::string& mappingProblem() const { return mappingProblem_; }
  Word& word(int i) const { return options_.memory.word(i); }

 private:
  enum class Kind : std::uint8_t {
    controlIn,
    controlOut,
    letterIn,
    letterOut,
    whole,
    chunkIn,
    chunkOut,
    barrier,
    over
  };
  /// The owner of an MPI request: slot of controlIn and letterIn, message of controlOut, letter of letterOut, transfer of
  /// the others.
  struct Owner {
    Kind kind;
    std::int32_t index;
    std::int32_t buffer;
  };
  struct Transfer {
    bool live = false;
    bool send = false;
    bool staged = false;
    bool copied = false;
    bool device = false;
    bool bounced = false;  // a mapped read through a staging buffer
    bool listed = false;   // in chunked_
    std::int32_t space = 0;
    std::int32_t scope = 0;  // who must see received bytes before their lane learns of them
    GpuMover* mover =
        nullptr;  // of the real GPU whose memory `data` is, or that reads for host memory
    std::uint64_t from = 0;   // mapped address
    std::int32_t number = 0;  // of its offer or lane at the lane server
    std::int32_t rank = 0;
    std::int32_t tag = 0;
    std::int32_t status = 0;
    std::uint8_t* data = nullptr;
    std::int64_t bytes = 0;
    std::int64_t next = 0;      // first byte not yet posted
    std::int64_t finished = 0;  // bytes over
    std::int32_t inFlight = 0;
    std::int64_t start = 0;
  };
  struct Chunk {
    std::int32_t transfer;
    std::int32_t buffer;  // -1: none
    std::int64_t offset;
    std::int64_t bytes;
  };
  /// A job of a mover: a chunk's copy, or a flush.
  struct GpuTask {
    bool flush;
    Chunk chunk;
    std::int64_t start;
    bool late;                        // answered without it
    std::vector<std::int32_t> lanes;  // those for which a flush is
  };
  /// Lanes whose bytes in one space have come and wait for their flush.
  struct Unflushed {
    std::vector<std::int32_t> lanes;
    std::int32_t scope = 0;
  };
  struct CopyJob {
    std::uint64_t number;
    Chunk chunk;
  };
  struct Message {
    std::int32_t position;
    bool left;
  };
  struct Slot {
    std::vector<std::uint8_t> bytes;
    bool arrived = false;
    std::int32_t rank = 0;
    std::int32_t length = 0;
  };

  bool takeCommands();
  void perform(const Record& command);
  void beginMessage(const Record& command);
  bool testRequests();
  void completed(const Owner& owner, const MPI_Status& status, bool failed);
  bool handOverMessages();
  void postSlot(std::int32_t slot);
  void postEmptied();
  void openLetters();
  void postLetterSlots();
  bool asksForLetter();
  bool testOldestLetter();
  void openMailboxes(std::uint64_t host);
  bool emptyMailbox();
  void letterArrived(std::int32_t slot, const MPI_Status& status, bool failed);
  std::int32_t wayFrom(std::int32_t rank, std::int32_t from, std::int32_t space) override;
  void send(std::int32_t rank, Letter letter) override;
  bool sendBytes(std::int32_t rank, std::int32_t tag, LanePlace from, double bytes,
                 std::int32_t offer, std::int32_t mode) override;
  bool receiveBytes(std::int32_t rank, std::int32_t tag, LanePlace to, double bytes,
                    std::int32_t lane, std::int32_t mode, std::int32_t scope) override;
  void readBytes(std::int32_t rank, std::int32_t space, double offset, LanePlace to, double bytes,
                 std::int32_t lane) override;
  void cancelBytes(std::int32_t lane) override;
  void departed(std::int32_t request, std::int32_t status, double start, double end,
                std::int32_t mode) override;
  void came(std::int32_t number, std::int32_t rank, std::int32_t space, bool forwards) override;
  std::int32_t newTransfer(std::int32_t rank, LanePlace place, double bytes, std::int32_t number);
  bool startTransfer(std::int32_t index, std::int32_t tag, std::int32_t mode);
  void readMapped(std::int32_t index, const GpuExport& exported, std::uint64_t from);
  void fail(std::int32_t index, std::int32_t status);
  void flushForLanes();
  void tellLanes(const Record& command);
  void letterLeft(std::int32_t index);
  bool serveLanes();
  void endLetters();
  bool moveChunks();
  bool postChunk(std::int32_t index);
  bool takeCopies();
  bool takeGpuTasks();
  void flushOver(const GpuTask& task, std::int32_t status);
  void answerLateFlushes();
  void submit(GpuMover& mover, GpuMover::Job job, const GpuTask& task);
  void copy(void* to, const void* from, const Chunk& chunk);
  void chunkArrived(const Chunk& chunk);
  void chunkCopied(const Chunk& chunk);
  void chunkOver(const Chunk& chunk, std::int32_t status);
  void sendChunk(const Chunk& chunk, std::int64_t bytes);
  void endIfOver(std::int32_t index);
  void finish(std::int32_t index);
  void tellEnd(const Transfer& transfer, std::int32_t status);
  void tellNow(const Transfer& transfer, std::int32_t status);
  bool tellDoubts();
  void add(MPI_Request request, Owner owner);
  GpuMover* moverOf(const SpaceView& space);
  std::int32_t laneOf(std::int32_t rank) const;
  void freeOutbox();

  SessionOptions options_;
  MPI_Comm comm_;
  const int rank_;
  std::vector<Hello> peers_;
  EventWriter events_;
  InboxWriter inbox_;
  const Gpu* bound_;
  Imports imports_;
  GpuImports gpuImports_;
  std::vector<std::vector<bool>> mappable_;
  std::string mappingProblem_;
  Staging staging_;
  Copier copier_;
  FutexToken& sleeper_;
  PeerTokens tokens_;
  bool isWoken_ = true;
  std::map<const Gpu*, std::unique_ptr<GpuMover>> movers_;
  std::vector<GpuTask> gpuTasks_;
  std::vector<std::int32_t> freeGpuTasks_;
  std::vector<GpuMover::Finished> finished_;
  /// Tickets of flushes under way, oldest first.
  std::deque<std::int32_t> flushing_;
  /// By space.
  std::vector<Unflushed> unflushed_;

  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;
  std::vector<int> indices_;
  std::vector<Owner> over_;
  std::vector<MPI_Status> statuses_;
  std::vector<Slot> slots_;
  std::int32_t nextSlot_ = 0;
  /// Slots whose message was handed over and that wait for their next post, the last of them before `nextSlot_`.
  std::int32_t emptied_ = 0;
  std::unique_ptr<LaneServer> laneServer_;
  /// `NetWord::lanesPublished` when lanes were last looked through.
  std::int32_t lanesSeen_ = 0;
  /// The mailbox of this rank, the ranks of this host by their numbers there, and the mailboxes of the others, by rank.
  std::unique_ptr<Mailbox> mailbox_;
  std::vector<std::int32_t> hostRanks_;
  std::map<std::int32_t, PeerMailbox> peerMailboxes_;
  /// Rounds in a hurry since MPI brought the last letter.
  std::uint32_t sinceLetter_ = 0;
  std::vector<Letter> letterSlots_;
  /// Slots with a receive, the oldest first, and slots without one.
  std::vector<std::int32_t> letterPosted_;
  std::vector<std::int32_t> letterEmptied_;
  std::uint32_t rounds_ = 0;
  /// Letters that MPI has not sent yet, and free places among them.
  std::vector<Letter> outgoing_;
  std::vector<std::int32_t> freeOutgoing_;
  std::deque<Message> messages_;
  std::int32_t firstMessage_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> freeTransfers_;
  /// Transfers in chunks, in the order in which they may post.
  std::vector<std::int32_t> chunked_;
  std::vector<std::int32_t> chunkedNow_;
  std::deque<CopyJob> copies_;
  Doubts<Transfer> doubts_;
  std::int32_t live_ = 0;
  std::int32_t flushes_ = 0;
  bool isClosing_ = false;
  bool isLost_ = false;
};

}  // namespace headrace::mpi
