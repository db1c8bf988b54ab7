// One session: the traffic of one runtime over its own communicator. Used by the comm thread only.
//
// Invariants:
// - control messages of one peer are handed over in the order sent: receives are posted ahead and looked at in the
//   order of posting;
// - nothing here waits for the engine: events that do not fit are kept, commands are always taken;
// - every send, receive and copy that was commanded ends in exactly one `done` event, also when a peer is lost;
// - chunks of one transfer are posted in order, so that they match in order.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "copier.h"
#include "headrace/doorbell.h"
#include "imports.h"
#include "parker.h"
#include "rings.h"

namespace headrace::mpi {

struct SpaceView {
  std::int32_t kind = 0;
  std::uint8_t* base = nullptr;
  double bytes = 0;
  std::int32_t fd = -1;
};

struct SessionOptions {
  std::vector<SpaceView> spaces;
  const headrace_doorbell* doorbell = nullptr;
  std::int64_t chunkBytes = 262144;
  std::int32_t chunksInFlight = 3;
  std::int64_t spinNanoseconds = 1000;
  std::int32_t failFlush = 0;
  SharedMemory memory;
};

/// What a rank tells the others when a session opens.
struct Hello {
  std::uint64_t host;
  std::int32_t pid;
  std::int32_t spaces;
  struct {
    std::int32_t kind;
    std::int32_t fd;
    std::uint64_t bytes;
  } space[NetLimit::spaces];
};

class Session {
 public:
  Session(SessionOptions options, MPI_Comm comm, int rank, std::vector<Hello> peers, Parker& parker);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Takes commands, tests requests, hands events over. True when anything moved.
  bool tick();
  /// Requests or copies under way besides the posted control receives.
  bool busy() const { return live_ > 0 || messages_.size() > 0; }
  /// A rank died: everything under way ends, and MPI is not called again.
  void lost(int rank);
  bool commandsWaiting() const;
  const SessionOptions& options() const { return options_; }
  const std::vector<Hello>& peers() const { return peers_; }
  Word& word(int i) const { return options_.memory.word(i); }

 private:
  enum class Kind : std::uint8_t { controlIn, controlOut, whole, chunkIn, chunkOut, barrier, over };
  /// What an MPI request belongs to: slot of controlIn, message of controlOut, transfer of the others.
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
    bool listed = false;  // in chunked_
    std::int32_t request = 0;
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
  void beginTransfer(const Record& command, bool send);
  void beginIpc(const Record& command);
  void cancel(std::int32_t request);
  bool testRequests();
  void completed(const Owner& owner, const MPI_Status& status, bool failed);
  bool handOverMessages();
  void postSlot(std::int32_t slot);
  bool moveChunks();
  bool postChunk(std::int32_t index);
  bool takeCopies();
  void chunkCopied(const Chunk& chunk);
  void chunkOver(const Chunk& chunk, std::int32_t status);
  void endIfOver(std::int32_t index);
  void finish(std::int32_t index);
  std::int32_t newTransfer(const Record& command);
  void done(std::int32_t request, std::int32_t status, std::int64_t start);
  void add(MPI_Request request, Owner owner);
  std::int32_t takeBuffer(bool send);
  std::uint8_t* locate(std::int32_t space, double offset, double bytes);
  void freeOutbox();

  SessionOptions options_;
  MPI_Comm comm_;
  const int rank_;
  std::vector<Hello> peers_;
  EventWriter events_;
  InboxWriter inbox_;
  Imports imports_;
  Copier copier_;

  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;
  std::vector<int> indices_;
  std::vector<Owner> over_;
  std::vector<MPI_Status> statuses_;
  std::vector<Slot> slots_;
  std::int32_t nextSlot_ = 0;
  std::deque<Message> messages_;
  std::int32_t firstMessage_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> freeTransfers_;
  /// Transfers in chunks, in the order in which they may post.
  std::vector<std::int32_t> chunked_;
  std::vector<std::int32_t> chunkedNow_;
  std::deque<CopyJob> copies_;
  std::vector<std::unique_ptr<std::uint8_t[]>> buffers_;
  /// Of receives and of sends.
  std::vector<std::int32_t> freeBuffers_[2];
  std::int32_t buffersMade_[2] = {0, 0};
  std::vector<std::int64_t> chunkSizes_;
  std::vector<std::int64_t> chunkOffsets_;
  std::int32_t live_ = 0;
  std::int32_t flushes_ = 0;
  bool isLost_ = false;
};

}  // namespace headrace::mpi
