// Sends and receives of lanes: see lane_server.h.
#include "lane_server.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "core/clock.h"
#include "core/guards.h"
#include "headrace/contract.h"
#include "queues/sequence.h"

namespace headrace::mpi {
namespace {

/// Values of a letter before its pairs.
constexpr std::size_t kHeader = 4;
/// Letters whose memory is kept for further ones.
constexpr std::size_t kSpare = 64;
/// Arguments of a send before its destinations, and all of a receive.
constexpr std::size_t kSendArguments = 3;
constexpr std::size_t kReceiveArguments = 4;

bool isWhole(double value, double most) {
  return value >= 0 && value <= most && value == std::floor(value);
}

/// Values that `bytes` bytes take.
std::size_t valuesOf(double bytes) {
  return (static_cast<std::size_t>(bytes) + sizeof(double) - 1) / sizeof(double);
}

}  // namespace

std::size_t LaneServer::AddressHash::operator()(const Address& address) const {
  const std::hash<double> hash;
  return hash(address.key) + 0x9e3779b97f4a7c15ull * hash(address.era);
}

LaneServer::LaneServer(const Options& options, LetterTransport& transport)
    : options_(options), lanes_(*options.lanes), transport_(transport) {
  all_.resize(static_cast<std::size_t>(lanes_.count));
  for (std::int32_t i = 0; i < lanes_.count; ++i) {
    Lane& lane = all_[static_cast<std::size_t>(i)];
    lane.number = i;
    lane.published = lane.completed = lanes_.completed(lanes_.self, i);
  }
}

// --- Commands -----------------------------------------------------------------------------------------------------

bool LaneServer::serve(bool published) {
  if (published) {
    for (Lane& lane : all_) {
      lane.published = lanes_.published(lanes_.self, lane.number);
      if (lane.active || lane.published == lane.completed) continue;
      lane.active = true;
      active_.push_back(lane.number);
    }
  }
  if (active_.empty()) return false;
  bool moved = false;
  held_ = false;
  const bool all = published || slept_ || ++round_ % kLookRounds == 0;
  slept_ = false;
  std::size_t left = 0;
  for (const std::int32_t number : active_) {
    Lane& lane = all_[static_cast<std::size_t>(number)];
    if (mayMove(lane, all)) {
      while (lane.published != lane.completed && serveLane(lane)) moved = true;
    }
    lane.active = lane.published != lane.completed;
    if (lane.active) active_[left++] = number;
  }
  active_.resize(left);
  return moved;
}

/// A round costs a comparison per lane: what the thread waits for most of the time is looked at here.
bool LaneServer::mayMove(const Lane& lane, bool all) {
  if (!lane.read || all) return true;
  // Then a receive waits for its letter. A send that is held is looked at in each round.
  if (lane.happened) return lane.opcode != Opcode::receive || lane.hasLetter;
  const auto queue = static_cast<std::size_t>(lane.waitQueue);
  if (queue >= reached_.size()) reached_.resize(queue + 1);
  Reached& reached = reached_[queue];
  if (reached.round != round_) reached = {round_, lanes_.reached(lanes_.self, lane.waitQueue)};
  return ahead(reached.sequence, lane.waitSequence) >= 0;
}

bool LaneServer::watch(void* sleeper) {
  for (const std::int32_t number : active_) {
    const Lane& lane = all_[static_cast<std::size_t>(number)];
    if (!lane.read || lane.happened) continue;
    if (lanes_.watch(lanes_.self, number, lane.waitQueue, lane.waitSequence, sleeper) != 0) {
      return false;
    }
    watched_.push_back(number);
  }
  return true;
}

void LaneServer::unwatch() {
  for (const std::int32_t number : watched_) lanes_.unwatch(lanes_.self, number);
  watched_.clear();
  slept_ = true;
}

/// The lane's next command; false when it has to wait.
bool LaneServer::serveLane(Lane& lane) {
  if (!lane.read) read(lane);
  std::int32_t status = Status::ok;
  const double start = lanes_.timing(lanes_.self) != 0 ? static_cast<double>(now()) : 0;
  if (!isOver(lane, status)) {
    if (lane.opcode == Opcode::send && lane.happened) held_ = true;
    return false;
  }
  complete(lane, status, start);
  return true;
}

void LaneServer::read(Lane& lane) {
  const std::int32_t first = after(lane.completed, 1);
  const std::int32_t* words = lanes_.record(lanes_.self, lane.number, first);
  lane.read = true;
  lane.opcode = words[Record::head] & 0xff;
  lane.waitQueue = (words[Record::kernel] >> 16) - 1;
  lane.waitSequence = words[Record::waitSeq];
  lane.happened = lane.waitQueue < 0;
  lane.hasLetter = false;
  lane.arguments.clear();
  lane.last = first;
  lane.refusal = Status::ok;
  lane.run = -1;
  if (lane.opcode == Opcode::nop || lane.opcode == Opcode::wait) return;
  lane.run = words[Record::run];
  const auto count =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(words[Record::head]) >> 20);
  const auto* values = reinterpret_cast<const double*>(words) + Record::argument;
  for (std::int32_t i = 0, room = Record::inlineArguments; i < count; ++i, --room) {
    if (room == 0) {
      lane.last = after(lane.last, 1);
      values = reinterpret_cast<const double*>(lanes_.record(lanes_.self, lane.number, lane.last));
      room = Record::doubles;
    }
    lane.arguments.push_back(*values++);
  }
  lane.refusal = check(lane);
  if (lane.opcode != Opcode::receive || lane.refusal != Status::ok) return;
  const auto found = kept_.find(lane.address());
  if (found != kept_.end()) {
    lane.letter = std::move(found->second);
    lane.hasLetter = true;
    kept_.erase(found);
  } else if (!expected_.emplace(lane.address(), lane.number).second) {
    lane.refusal = Status::badArguments;
  }
}

/// `ok`, or why the command makes no sense.
std::int32_t LaneServer::check(const Lane& lane) const {
  const std::size_t count = lane.arguments.size();
  if (lane.opcode == Opcode::receive) {
    if (count != kReceiveArguments) return Status::badArguments;
  } else if (lane.opcode != Opcode::send || count < kSendArguments + 2 ||
             (count - kSendArguments) % 2 != 0) {
    return Status::badArguments;
  }
  const double bytes = lane.bytes();
  const bool inside = lane.offset() >= 0 && bytes >= 0 && lane.offset() <= options_.hostBytes &&
                      bytes <= options_.hostBytes - lane.offset() && bytes == std::floor(bytes);
  if (!inside) return Status::outOfRange;
  if (lane.opcode == Opcode::receive) return Status::ok;
  const std::size_t pairs = count - kSendArguments;
  if ((kHeader + pairs + valuesOf(bytes)) * sizeof(double) > options_.longest) {
    return Status::outOfRange;
  }
  for (std::size_t i = kSendArguments; i < count; i += 2) {
    if (!isRank(lane.arguments[i])) return Status::badArguments;
  }
  return Status::ok;
}

bool LaneServer::isRank(double rank) const {
  return isWhole(rank, options_.size - 1) && rank != options_.rank;
}

bool LaneServer::isOver(Lane& lane, std::int32_t& status) {
  if (!lane.happened) {
    lane.happened = lanes_.happened(lanes_.self, lane.waitQueue, lane.waitSequence) != 0;
    if (!lane.happened) return false;
  }
  status = lane.refusal;
  if (status != Status::ok) return true;
  if (lane.opcode == Opcode::send) return isSent(lane, status);
  if (lane.opcode == Opcode::receive) return isReceived(lane, status);
  return true;
}

bool LaneServer::isSent(Lane& lane, std::int32_t& status) {
  const bool unhandled = guards.laneFailures && lanes_.unhandled(lanes_.self) != 0;
  if (guards.laneCancel && lanes_.cancelled(lanes_.self, lane.run) != 0) {
    status = Status::cancelled;
    return true;
  }
  if (unhandled || isLost_) return false;
  post(lane.arguments[2], lane.bytes(), options_.host + static_cast<std::uint64_t>(lane.offset()),
       lane.arguments.data() + kSendArguments, lane.arguments.size() - kSendArguments);
  return true;
}

bool LaneServer::isReceived(Lane& lane, std::int32_t& status) {
  if (guards.laneCancel && lanes_.cancelled(lanes_.self, lane.run) != 0) {
    status = Status::cancelled;
  } else if (!lane.hasLetter) {
    return false;
  } else if (lane.letter[2] != lane.bytes()) {
    status = Status::truncated;
  } else {
    const std::size_t header = kHeader + static_cast<std::size_t>(lane.letter[3]);
    std::memcpy(options_.host + static_cast<std::uint64_t>(lane.offset()),
                lane.letter.data() + header, static_cast<std::size_t>(lane.bytes()));
  }
  if (!lane.hasLetter) expected_.erase(lane.address());
  return true;
}

void LaneServer::complete(Lane& lane, std::int32_t status, double start) {
  lane.read = false;
  lane.completed = lane.last;
  if (lane.hasLetter) giveBack(std::move(lane.letter));
  lane.hasLetter = false;
  const double end = start != 0 ? static_cast<double>(now()) : 0;
  lanes_.complete(lanes_.self, lane.number, lane.last, status, start, end);
}

// --- Letters ------------------------------------------------------------------------------------------------------

void LaneServer::giveBack(Letter letter) {
  if (spare_.size() < kSpare) spare_.push_back(std::move(letter));
}

Letter LaneServer::blank() {
  if (spare_.empty()) return {};
  Letter letter = std::move(spare_.back());
  spare_.pop_back();
  letter.clear();
  return letter;
}

/// Sends a version to its destinations, `count` values in pairs: the branches of a binomial tree, each with its own letter
/// (devices/network/tree.ts).
void LaneServer::post(double era, double bytes, const void* data, const double* destinations,
                      std::size_t count) {
  const std::size_t ranks = count / 2;
  const bool isTree = ranks >= static_cast<std::size_t>(options_.treeFrom);
  for (std::size_t first = 0, left = ranks; left > 0;) {
    // The largest branch first: it has the longest path.
    const std::size_t size = isTree ? (left + 1) / 2 : 1;
    const double* branch = destinations + 2 * first;
    Letter letter = blank();
    const std::size_t children = 2 * (size - 1);
    const std::size_t header = kHeader + children;
    letter.resize(header + valuesOf(bytes));
    letter[0] = era;
    letter[1] = branch[1];
    letter[2] = bytes;
    letter[3] = static_cast<double>(children);
    std::copy(branch + 2, branch + 2 + children, letter.begin() + kHeader);
    if (bytes > 0) {
      letter.back() = 0;  // what pads the bytes
      std::memcpy(letter.data() + header, data, static_cast<std::size_t>(bytes));
    }
    transport_.send(static_cast<std::int32_t>(branch[0]), std::move(letter));
    first += size;
    left -= size;
  }
}

void LaneServer::arrived(const double* values, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(double);
  const auto most = static_cast<double>(options_.longest);
  const bool sound = bytes % sizeof(double) == 0 && count >= kHeader && isWhole(values[2], most) &&
                     isWhole(values[3], most) && std::fmod(values[3], 2) == 0 &&
                     count == kHeader + static_cast<std::size_t>(values[3]) + valuesOf(values[2]);
  bool passable = sound;
  for (std::size_t i = 0; passable && i < static_cast<std::size_t>(values[3]); i += 2) {
    passable = isRank(values[kHeader + i]);
  }
  if (!passable) {
    ++refused_;
    return;
  }
  const auto children = static_cast<std::size_t>(values[3]);
  const Address address{values[0], values[1]};
  if (children > 0 && !isLost_) {
    post(address.era, values[2], values + kHeader + children, values + kHeader, children);
  }
  if (address.era < era_) return;
  Letter letter = blank();
  letter.assign(values, values + count);
  const auto expected = expected_.find(address);
  if (expected != expected_.end()) {
    Lane& lane = all_[static_cast<std::size_t>(expected->second)];
    lane.letter = std::move(letter);
    lane.hasLetter = true;
    expected_.erase(expected);
    return;
  }
  const bool isNew = kept_.emplace(address, std::move(letter)).second;
  if (!isNew) ++refused_;
}

void LaneServer::beginEra(double era) {
  if (era <= era_) return;
  era_ = era;
  for (auto each = kept_.begin(); each != kept_.end();) {
    each = each->first.era < era ? kept_.erase(each) : std::next(each);
  }
}

}  // namespace headrace::mpi
