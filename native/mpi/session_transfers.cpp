// The bytes of long versions: whole messages, staged chunks, reads of mapped memory (see session.h).
#include <algorithm>
#include <cstring>

#include "chunks.h"
#include "core/clock.h"
#include "session.h"

namespace headrace::mpi {
namespace {

/// The comm thread itself makes copies in host memory up to this size.
constexpr std::int64_t kShortCopy = 32768;
/// MPI counts are int: longer transfers go in chunks.
constexpr std::int64_t kLongest = std::int64_t{1} << 30;
/// Time for the news that a rank died to come, in nanoseconds.
constexpr std::int64_t kDoubtPatience = 1'000'000'000;
constexpr std::int32_t kToHostLane = 0;
constexpr std::int32_t kToDeviceLane = 1;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

// --- Beginning ----------------------------------------------------------------------------------------------------

bool Session::sendBytes(std::int32_t rank, std::int32_t tag, LanePlace from, double bytes,
                        std::int32_t offer, std::int32_t mode) {
  const std::int32_t index = newTransfer(rank, from, bytes, offer);
  transfers_[index].send = true;
  return startTransfer(index, tag, mode);
}

bool Session::receiveBytes(std::int32_t rank, std::int32_t tag, LanePlace to, double bytes,
                           std::int32_t lane, std::int32_t mode, std::int32_t scope) {
  const std::int32_t index = newTransfer(rank, to, bytes, lane);
  transfers_[index].scope = scope;
  return startTransfer(index, tag, mode);
}

/// A transfer that has not started.
std::int32_t Session::newTransfer(std::int32_t rank, LanePlace place, double bytes,
                                  std::int32_t number) {
  std::int32_t index = static_cast<std::int32_t>(transfers_.size());
  if (freeTransfers_.empty()) {
    transfers_.emplace_back();
  } else {
    index = freeTransfers_.back();
    freeTransfers_.pop_back();
  }
  const SpaceView& view = options_.spaces[static_cast<std::size_t>(place.space)];
  Transfer& transfer = transfers_[index];
  transfer = Transfer{};
  transfer.live = true;
  transfer.number = number;
  transfer.rank = rank;
  transfer.space = place.space;
  transfer.device = view.kind != 0;
  transfer.mover = moverOf(view);
  transfer.data = place.data;
  transfer.bytes = static_cast<std::int64_t>(bytes);
  transfer.start = now();
  ++live_;
  return index;
}

/// False: it has failed, and its end is told now or later.
bool Session::startTransfer(std::int32_t index, std::int32_t tag, std::int32_t mode) {
  Transfer& transfer = transfers_[index];
  transfer.tag = tag;
  transfer.staged = mode == NetMode::staged;
  if (!transfer.staged && !options_.spaces[static_cast<std::size_t>(transfer.space)].direct) {
    fail(index, NetStatus::library);
    return false;
  }
  if (transfer.staged || transfer.bytes > kLongest) {
    transfer.listed = true;
    chunked_.push_back(index);
    return true;
  }
  // An MPI library that takes device pointers works in the context that is current on its thread (H10).
  if (transfer.mover != nullptr) transfer.mover->gpu().makeCurrent();
  MPI_Request request;
  const auto count = static_cast<int>(transfer.bytes);
  const int code =
      transfer.send
          ? MPI_Isend(transfer.data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request)
          : MPI_Irecv(transfer.data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request);
  if (transfer.send) tokens_.wake(transfer.rank);
  if (code == MPI_SUCCESS)
    add(request, {Kind::whole, index, -1});
  else
    fail(index, NetStatus::library);
  return code == MPI_SUCCESS;
}

void Session::readBytes(std::int32_t rank, std::int32_t space, double offset, LanePlace to,
                        double bytes, std::int32_t lane) {
  const std::int32_t index = newTransfer(rank, to, bytes, lane);
  Transfer& transfer = transfers_[index];
  transfer.copied = true;
  const Hello& peer = peers_[static_cast<std::size_t>(rank)];
  const bool inside = space < peer.spaces && offset >= 0 &&
                      offset + bytes <= static_cast<double>(peer.space[space].bytes);
  if (!inside) {
    fail(index, NetStatus::outOfRange);
    return;
  }
  const auto from = static_cast<std::uint64_t>(offset);
  if (peer.space[space].shared) {
    readMapped(index, peer.space[space].exported, from);
    return;
  }
  std::string error;
  const std::uint8_t* base =
      imports_.map(rank, space, peer.pid, peer.space[space].fd, peer.space[space].bytes, error);
  if (base == nullptr || transfer.mover != nullptr) {
    fail(index, NetStatus::mapping);
    return;
  }
  transfer.next = transfer.bytes;
  transfer.inFlight = 1;
  copy(transfer.data, base + from, {index, -1, 0, transfer.bytes});
}

/// Reads memory of a peer's real GPU: straight into a GPU here, whose stream drives the copy, or into host memory through
/// staging buffers, since only those are sure to be page-locked.
void Session::readMapped(std::int32_t index, const GpuExport& exported, std::uint64_t from) {
  Transfer& transfer = transfers_[index];
  const Gpu* own = options_.spaces[static_cast<std::size_t>(transfer.space)].gpu;
  const Gpu* reader = own != nullptr ? own : bound_;
  const std::uint64_t base =
      reader == nullptr ? 0 : gpuImports_.find(transfer.rank, exported, *reader);
  if (base == 0) {
    fail(index, NetStatus::mapping);
    return;
  }
  transfer.from = base + from;
  transfer.mover = movers_[reader].get();
  transfer.bounced = own == nullptr;
  if (transfer.bounced) {
    transfer.listed = true;
    chunked_.push_back(index);
    return;
  }
  transfer.next = transfer.bytes;
  transfer.inFlight = 1;
  const Chunk whole{index, -1, 0, transfer.bytes};
  submit(*transfer.mover,
         {GpuMover::Kind::onDevice, laneOf(transfer.rank), 0, address(transfer.data), transfer.from,
          static_cast<std::uint64_t>(transfer.bytes), 0},
         {false, whole, 0, false, {}});
}

/// A transfer ends that has not begun, for instance because memory could not be opened.
void Session::fail(std::int32_t index, std::int32_t status) {
  transfers_[index].status = status;
  finish(index);
}

void Session::cancelBytes(std::int32_t lane) {
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    Transfer& transfer = transfers_[t];
    const bool isMeant =
        transfer.live && transfer.number == lane && !transfer.send && !transfer.copied;
    if (!isMeant) continue;
    transfer.status = NetStatus::cancelled;
    transfer.next = transfer.bytes;  // no further chunks
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Kind kind = owners_[i].kind;
      if ((kind == Kind::whole || kind == Kind::chunkIn) &&
          owners_[i].index == static_cast<std::int32_t>(t) && requests_[i] != MPI_REQUEST_NULL) {
        MPI_Cancel(&requests_[i]);
      }
    }
    endIfOver(static_cast<std::int32_t>(t));
  }
}

// --- Chunks -------------------------------------------------------------------------------------------------------

bool Session::moveChunks() {
  bool moved = false;
  chunkedNow_.swap(chunked_);
  for (const std::int32_t index : chunkedNow_) {
    const auto unfinished = [&] {
      return transfers_[index].live && transfers_[index].next < transfers_[index].bytes;
    };
    while (unfinished() && transfers_[index].inFlight < options_.chunksInFlight &&
           postChunk(index)) {
      moved = true;
    }
    if (unfinished()) {
      chunked_.push_back(index);
    } else {
      transfers_[index].listed = false;
      if (!transfers_[index].live) freeTransfers_.push_back(index);
    }
  }
  chunkedNow_.clear();
  return moved;
}

/// Posts the next chunk of a transfer, or starts the copy before it; false when no buffer is free.
bool Session::postChunk(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  const std::int32_t buffer = staging_.take(transfer.send);
  if (buffer < 0) return false;
  const std::int64_t bytes = chunkLength(transfer.next, transfer.bytes, options_.chunkBytes);
  const Chunk chunk{index, buffer, transfer.next, bytes};
  staging_.bytes(buffer) = bytes;
  staging_.offset(buffer) = chunk.offset;
  transfer.next += bytes;
  ++transfer.inFlight;
  if (transfer.mover != nullptr && (transfer.send || transfer.bounced)) {
    const std::uint64_t from = transfer.bounced ? transfer.from : address(transfer.data);
    const std::int32_t lane = transfer.bounced ? laneOf(transfer.rank) : kToHostLane;
    submit(*transfer.mover,
           {GpuMover::Kind::toHost, lane, 0, address(staging_.data(buffer)),
            from + static_cast<std::uint64_t>(chunk.offset), static_cast<std::uint64_t>(bytes), 0},
           {false, chunk, 0, false, {}});
    return true;
  }
  if (transfer.send && transfer.device) {
    copy(staging_.data(buffer), transfer.data + chunk.offset, chunk);
    return true;
  }
  if (transfer.send) {
    sendChunk(chunk, bytes);
    return true;
  }
  MPI_Request request;
  std::uint8_t* where = transfer.device ? staging_.data(buffer) : transfer.data + chunk.offset;
  const int code = MPI_Irecv(where, static_cast<int>(bytes), MPI_BYTE, transfer.rank, transfer.tag,
                             comm_, &request);
  if (code == MPI_SUCCESS)
    add(request, {Kind::chunkIn, index, buffer});
  else
    chunkOver(chunk, NetStatus::library);
  return true;
}

/// A received chunk of device memory is in its staging buffer.
void Session::chunkArrived(const Chunk& chunk) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (transfer.mover == nullptr) {
    copy(transfer.data + chunk.offset, staging_.data(chunk.buffer), chunk);
    return;
  }
  submit(*transfer.mover,
         {GpuMover::Kind::toDevice, kToDeviceLane, 0, address(transfer.data + chunk.offset),
          address(staging_.data(chunk.buffer)), static_cast<std::uint64_t>(chunk.bytes), 0},
         {false, chunk, 0, false, {}});
}

/// Copies in host memory; `chunkCopied` follows. Does not overtake earlier copies: chunks are posted in order.
void Session::copy(void* to, const void* from, const Chunk& chunk) {
  if (chunk.bytes <= kShortCopy && copies_.empty()) {
    std::memcpy(to, from, static_cast<std::size_t>(chunk.bytes));
    chunkCopied(chunk);
    return;
  }
  copies_.push_back({copier_.copy(to, from, static_cast<std::uint64_t>(chunk.bytes)), chunk});
}

bool Session::takeCopies() {
  bool moved = false;
  const std::uint64_t done = copier_.done();
  while (!copies_.empty() && copies_.front().number <= done) {
    const Chunk chunk = copies_.front().chunk;
    copies_.pop_front();
    chunkCopied(chunk);
    moved = true;
  }
  return moved;
}

/// The copy of a chunk is over: a send continues to the network, a receive or a mapped read is finished.
void Session::chunkCopied(const Chunk& chunk) {
  if (transfers_[chunk.transfer].send)
    sendChunk(chunk, chunk.bytes);
  else
    chunkOver(chunk, NetStatus::ok);
}

/// Fewer bytes than the chunk has tell the receiver that this side failed.
void Session::sendChunk(const Chunk& chunk, std::int64_t bytes) {
  Transfer& transfer = transfers_[chunk.transfer];
  const std::uint8_t* from =
      transfer.device ? staging_.data(chunk.buffer) : transfer.data + chunk.offset;
  MPI_Request request;
  const int code = MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, transfer.rank, transfer.tag,
                             comm_, &request);
  tokens_.wake(transfer.rank);
  if (code == MPI_SUCCESS)
    add(request, {Kind::chunkOut, chunk.transfer, chunk.buffer});
  else
    chunkOver(chunk, NetStatus::library);
}

void Session::chunkOver(const Chunk& chunk, std::int32_t status) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (chunk.buffer >= 0) staging_.give(chunk.buffer, transfer.send);
  transfer.finished += chunk.bytes;
  --transfer.inFlight;
  if (status != NetStatus::ok && transfer.status == NetStatus::ok) {
    transfer.status = status;
    // After a failure of a GPU, here or there, the sender still sends the rest: it is received, or the next receive of the lane would
    // get it.
    const bool isSent = status == NetStatus::device || status == NetStatus::truncated;
    if (!transfer.send && !isSent) transfer.next = transfer.bytes;
  }
  endIfOver(chunk.transfer);
}

void Session::endIfOver(std::int32_t index) {
  const Transfer& transfer = transfers_[index];
  const bool chunked = transfer.staged || transfer.copied || transfer.bytes > kLongest;
  if (chunked && transfer.next >= transfer.bytes && transfer.inFlight == 0) finish(index);
}

void Session::finish(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  transfer.live = false;
  --live_;
  // `moveChunks` returns a listed row: two lists must not name it for different transfers.
  if (!transfer.listed) freeTransfers_.push_back(index);
  tellEnd(Transfer(transfer), transfer.status);
}

/// The end of a transfer is told at once, unless a peer that died may be the cause.
void Session::tellEnd(const Transfer& transfer, std::int32_t status) {
  if (!Doubts<Transfer>::explains(status)) {
    tellNow(transfer, status);
    return;
  }
  doubts_.add(transfer, status, now() + kDoubtPatience);
  ++live_;
}

/// Nobody died who would explain these ends.
bool Session::tellDoubts() {
  return doubts_.tellDue(now(), [this](const Transfer& transfer, std::int32_t status) {
    --live_;
    tellNow(transfer, status);
  });
}

/// The lane server learns of the end of a transfer. Received bytes may have to be flushed before.
void Session::tellNow(const Transfer& transfer, std::int32_t status) {
  if (transfer.send)
    laneServer_->sent(transfer.number, status, static_cast<double>(transfer.start),
                      static_cast<double>(now()));
  else if (status == NetStatus::ok && transfer.scope != NetScope::none) {
    Unflushed& batch = unflushed_[static_cast<std::size_t>(transfer.space)];
    batch.lanes.push_back(transfer.number);
    batch.scope = std::max(batch.scope, transfer.scope);
  } else
    laneServer_->fetched(transfer.number, status);
}

}  // namespace headrace::mpi
