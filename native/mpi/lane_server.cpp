// Sends and receives of lanes: see lane_server.h. lane_letters.cpp has the letters.
#include "lane_server.h"

#include <algorithm>
#include <utility>

#include "contract.h"
#include "core/clock.h"
#include "core/guards.h"
#include "headrace/contract.h"
#include "lane_letter.h"
#include "queues/sequence.h"

namespace headrace::mpi {
namespace {

/// Arguments of a send before its destinations, and all of a receive, of which an announced one has more.
constexpr std::size_t kSendArguments = 3;
constexpr std::size_t kReceiveArguments = 4;
constexpr std::size_t kAnnouncedArguments = 5;
constexpr std::int32_t kArrivalArgument = 4;
/// The arguments of an offer before its destinations: the number for its end, the key of the version that it passes on, its
/// memory space and its priority.
constexpr std::size_t kRequestArgument = 3;
constexpr std::size_t kKeyArgument = 4;
constexpr std::size_t kPriorityArgument = 6;
constexpr std::size_t kOfferArguments = 7;

}  // namespace

LaneServer::LaneServer(const Options& options, LetterTransport& transport)
    : options_(options),
      lanes_(*options.lanes),
      transport_(transport),
      offers_(transport,
              [this](std::int32_t request, std::int32_t status, double start, double end,
                     std::int32_t mode) { departed(request, status, start, end, mode); }) {
  all_.resize(static_cast<std::size_t>(lanes_.count));
  for (std::int32_t i = 0; i < lanes_.count; ++i) {
    Lane& lane = all_[static_cast<std::size_t>(i)];
    lane.number = i;
    lane.published = lane.over = lanes_.completed(lanes_.self, i);
  }
}

// --- Commands -----------------------------------------------------------------------------------------------------

/// The lane's next command; false when it has to wait.
bool LaneServer::serveLane(Lane& lane) {
  if (!lane.read) read(lane);
  if (!lane.happened) {
    lane.happened = lanes_.happened(lanes_.self, lane.waitQueue, lane.waitSequence) != 0;
    if (!lane.happened) return false;
  }
  std::int32_t status = Status::ok;
  const double start = startTime();
  if (!isOver(lane, status)) {
    const bool isDelivery = lane.opcode == Opcode::deliver && lane.fetch == Fetch::none;
    const bool isSend = lane.opcode == Opcode::send || lane.opcode == Opcode::offer;
    if (isSend || isDelivery) held_ = true;
    return false;
  }
  if (lane.opcode == Opcode::wait && lane.last != lane.published) {
    lane.read = false;
    lane.over = lane.last;
    return true;
  }
  complete(lane, status, lane.fetch == Fetch::none || start == 0 ? start : lane.fetchStart);
  return true;
}

void LaneServer::read(Lane& lane) {
  const std::int32_t first = after(lane.over, 1);
  const std::int32_t* words = lanes_.record(lanes_.self, lane.number, first);
  lane.read = true;
  lane.opcode = words[Record::head] & 0xff;
  lane.waitQueue = (words[Record::kernel] >> 16) - 1;
  lane.waitSequence = words[Record::waitSeq];
  lane.happened = lane.waitQueue < 0;
  lane.hasLetter = false;
  lane.fetch = Fetch::none;
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
  if (lane.refusal != Status::ok) return;
  lane.mode = lane.commandedMode();
  lane.data = options_.spaces[static_cast<std::size_t>(lane.space())].base + wholeOf(lane.offset());
  // While it waits, so that only its bytes are copied once its event has happened.
  if (lane.opcode == Opcode::send && lane.arguments.size() == kSendArguments + 2) {
    const double* destination = lane.arguments.data() + kSendArguments;
    lane.letter = version(lane.arguments[2], lane.bytes(), destination, 0);
  }
  if (lane.opcode != Opcode::receive) return;
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
  const bool isOffer = lane.opcode == Opcode::offer;
  const std::size_t first = isOffer ? kOfferArguments : kSendArguments;
  if (lane.opcode == Opcode::receive) {
    const bool known = count == kReceiveArguments ||
                       (count == kAnnouncedArguments &&
                        isWhole(lane.arguments[4], kSpaces * kModes * (NetScope::all + 1) - 1) &&
                        lane.commandedMode() <= NetMode::open);
    if (!known) return Status::badArguments;
  } else if (lane.opcode == Opcode::deliver) {
    if (count != kSendArguments + 2) return Status::badArguments;
  } else if ((lane.opcode != Opcode::send && !isOffer) || count < first + (isOffer ? 0 : 2) ||
             (count - first) % 2 != 0) {
    return Status::badArguments;
  }
  const double bytes = lane.bytes();
  const double spaces = static_cast<double>(options_.spaces.size());
  if (isOffer ? !isWhole(lane.arguments[5], spaces - 1) : lane.space() >= spaces) {
    return Status::outOfRange;
  }
  const double room = options_.spaces[static_cast<std::size_t>(lane.space())].bytes;
  const bool inside =
      lane.offset() >= 0 && lane.offset() <= room && isWhole(bytes, room - lane.offset());
  if (!inside) return Status::outOfRange;
  if (lane.opcode == Opcode::receive) return Status::ok;
  const std::size_t payload =
      isOffer || lane.opcode == Opcode::deliver ? 1 + kLongTail : valuesOf(bytes);
  if ((kHeader + count - first + payload) * sizeof(double) > options_.longest) {
    return Status::outOfRange;
  }
  for (std::size_t i = first; i < count; i += 2) {
    if (!isRank(lane.arguments[i])) return Status::badArguments;
  }
  return Status::ok;
}

bool LaneServer::isRank(double rank) const {
  return isWhole(rank, options_.size - 1) && rank != options_.rank;
}

bool LaneServer::isOver(Lane& lane, std::int32_t& status) {
  status = lane.refusal;
  const bool isOffer = lane.opcode == Opcode::offer;
  if (status != Status::ok) {
    if (isOffer && lane.arguments.size() > kRequestArgument) {
      const auto request = static_cast<std::int32_t>(lane.arguments[kRequestArgument]);
      transport_.departed(request, NetStatus::outOfRange, 0, 0, NetMode::direct);
    }
    return true;
  }
  if (lane.opcode == Opcode::send || isOffer) return isSent(lane, status);
  if (lane.opcode == Opcode::deliver) return isDelivered(lane, status);
  if (lane.opcode == Opcode::receive) return isReceived(lane, status);
  return true;
}

bool LaneServer::isSent(Lane& lane, std::int32_t& status) {
  const bool unhandled = guards.laneFailures && lanes_.unhandled(lanes_.self) != 0;
  const bool isOffer = lane.opcode == Opcode::offer;
  if (isCancelled(lane)) {
    status = Status::cancelled;
    if (isOffer) {
      const auto request = static_cast<std::int32_t>(lane.arguments[kRequestArgument]);
      transport_.departed(request, NetStatus::cancelled, 0, 0, NetMode::direct);
    }
    return true;
  }
  if (unhandled) return false;
  if (isLost_) {
    status = Status::cancelled;
    if (isOffer) {
      const auto request = static_cast<std::int32_t>(lane.arguments[kRequestArgument]);
      transport_.departed(request, NetStatus::lost, 0, 0, NetMode::direct);
    }
    return true;
  }
  if (isOffer) {
    offer(lane);
  } else if (!lane.letter.empty()) {
    fill(lane.letter, lane.data, lane.bytes());
    transport_.send(static_cast<std::int32_t>(lane.arguments[kSendArguments]),
                    std::move(lane.letter));
  } else {
    post(lane.arguments[2], lane.bytes(), lane.data, lane.arguments.data() + kSendArguments,
         lane.arguments.size() - kSendArguments, 0);
  }
  return true;
}

/// Announces a version to its destination, and is over when its offer has departed.
bool LaneServer::isDelivered(Lane& lane, std::int32_t& status) {
  const bool cancelled = isCancelled(lane);
  if (lane.fetch == Fetch::underWay && cancelled) {
    offers_.withdraw(lane.offer, NetStatus::cancelled);
  }
  if (lane.fetch == Fetch::underWay) return false;
  if (cancelled) {
    status = Status::cancelled;
    return true;
  }
  if (lane.fetch == Fetch::over) {
    // Without the bytes it waits for the end of its run: another rank knows the reason.
    if (lane.outcome == NetStatus::cancelled || lane.outcome == NetStatus::lost) return false;
    if (lane.outcome != NetStatus::ok) status = Status::driver;
    return true;
  }
  const bool unhandled = guards.laneFailures && lanes_.unhandled(lanes_.self) != 0;
  if (unhandled || isLost_ || isAbandoned_ || lane.arguments[2] < era_) return false;
  lane.fetch = Fetch::underWay;
  lane.fetchStart = startTime();
  lane.offer = offers_.open(-1 - lane.number, place(lane), lane.bytes(), 0);
  offers_.announced(lane.offer, post(lane.arguments[2], lane.bytes(), nullptr,
                                     lane.arguments.data() + kSendArguments, 2, lane.offer));
  return false;
}

/// An offer has departed: of a delivery, or of the engine's.
void LaneServer::departed(std::int32_t request, std::int32_t status, double start, double end,
                          std::int32_t mode) {
  if (request >= 0) {
    transport_.departed(request, status, start, end, mode);
    return;
  }
  Lane& lane = all_[static_cast<std::size_t>(-1 - request)];
  lane.fetch = Fetch::over;
  lane.outcome = status;
}

/// Announces a version to its destinations, or to those that came with it.
void LaneServer::offer(const Lane& lane) {
  const double era = lane.arguments[2];
  const auto request = static_cast<std::int32_t>(lane.arguments[kRequestArgument]);
  if (era < era_ || isAbandoned_) {
    transport_.departed(request, NetStatus::cancelled, 0, 0, NetMode::direct);
    return;
  }
  std::vector<double> destinations(lane.arguments.begin() + kOfferArguments, lane.arguments.end());
  if (destinations.empty()) {
    const auto found = branches_.find({era, lane.arguments[kKeyArgument]});
    if (found != branches_.end()) {
      destinations = std::move(found->second);
      branches_.erase(found);
    }
  }
  if (destinations.empty()) {
    transport_.departed(request, NetStatus::ok, 0, 0, NetMode::direct);
    return;
  }
  const std::int32_t number =
      offers_.open(request, place(lane), lane.bytes(), lane.arguments[kPriorityArgument]);
  offers_.announced(
      number, post(era, lane.bytes(), nullptr, destinations.data(), destinations.size(), number));
}

bool LaneServer::isCancelled(const Lane& lane) const {
  return guards.laneCancel && lanes_.cancelled(lanes_.self, lane.run) != 0;
}

/// 0 if no times are wanted.
double LaneServer::startTime() const {
  return lanes_.timing(lanes_.self) != 0 ? static_cast<double>(now()) : 0;
}

bool LaneServer::isReceived(Lane& lane, std::int32_t& status) {
  if (lane.fetch == Fetch::underWay && (guards.laneAwaitsBytes || !isCancelled(lane))) return false;
  const bool isFetched = lane.fetch == Fetch::over;
  const bool announced = lane.hasLetter && isAnnouncement(lane.letter);
  if (isWithdrawn(lane) || isCancelled(lane)) {
    status = Status::cancelled;
    if (announced && !isFetched) decline(lane.letter);
    if (isWithdrawn(lane) && !lane.hasLetter) refuse(lane.arguments[2], lane.arguments[3]);
  } else if (isFetched) {
    // Without the bytes it waits for the end of its run: the other rank knows the reason.
    if (lane.outcome == NetStatus::cancelled || lane.outcome == NetStatus::lost) return false;
    if (lane.outcome != NetStatus::ok) {
      const bool isShort = lane.outcome == NetStatus::truncated;
      status = isShort ? Status::truncated : Status::transfer - lane.outcome;
    }
  } else if (!lane.hasLetter) {
    // Nothing reads its place any more, and its letter will be copied there.
    __builtin_prefetch(lane.data, 1);
    return false;
  } else if (!announced) {
    status = copyIn(lane, lane.letter.data());
  } else if (contentsOf(lane.letter)[2] != lane.bytes()) {
    status = Status::truncated;
    decline(lane.letter);
  } else {
    if (isLost_) return false;
    if (lane.mode == NetMode::open) choose(lane);
    if (!mayFetch(lane)) return false;
    fetch(lane);
    return lane.fetch == Fetch::over && isReceived(lane, status);
  }
  if (!lane.hasLetter) expected_.erase(lane.address());
  return true;
}

/// How the bytes of a receive come that was commanded before its announcement. The engine finds it in the command.
void LaneServer::choose(Lane& lane) {
  const AnnouncementTail tail = tailOf(lane.letter);
  lane.mode = transport_.wayFrom(tail.rank, tail.space, lane.space());
  const std::int32_t scope = lane.mode == NetMode::direct ? lane.scope() : NetScope::none;
  lane.arguments[kArrivalArgument] = lane.space() + kSpaces * (lane.mode + kModes * scope);
  lanes_.setArgument(lanes_.self, lane.number, after(lane.over, 1), kArrivalArgument,
                     lane.arguments[kArrivalArgument]);
}

/// Whether a receive may fetch its bytes now; otherwise it waits until others have theirs.
bool LaneServer::mayFetch(Lane& lane) {
  if (!lane.isStaged()) return true;
  lane.fetch = Fetch::queued;
  if (staged_ >= kMostStaged) return false;
  const double priority = tailOf(lane.letter).priority;
  for (const std::int32_t number : active_) {
    const Lane& other = all_[static_cast<std::size_t>(number)];
    const bool waits = other.read && other.hasLetter && other.fetch == Fetch::queued;
    if (waits && tailOf(other.letter).priority > priority) return false;
  }
  return true;
}

/// Asks for the bytes of an announced version, or reads them. A receive is posted before the request for its bytes, so they do
/// not come unexpected. One that cannot be posted asks for nothing: the offering rank serves the ranks below this one.
void LaneServer::fetch(Lane& lane) {
  const double* contents = contentsOf(lane.letter);
  const std::size_t pairs = pairsOf(contents);
  const auto [number, rank, space, offset, priority] = tailOf(lane.letter);
  const std::int32_t tag = kFirstTag + lane.number;
  lane.fetch = Fetch::underWay;
  lane.fetchStart = startTime();
  const auto keepBranches = [&] {
    if (pairs > 0) branches_[lane.address()].assign(contents + kHeader, contents + kHeader + pairs);
  };
  if (lane.mode == NetMode::mapped) {
    keepBranches();
    transport_.readBytes(rank, space, offset, place(lane), lane.bytes(), lane.number);
    return;
  }
  if (lane.isStaged()) ++staged_;
  if (!transport_.receiveBytes(rank, tag, place(lane), lane.bytes(), lane.number, lane.mode,
                               lane.scope())) {
    decline(lane.letter);
    return;
  }
  keepBranches();
  Letter letter = blank();
  letter = {kAsked, number, static_cast<double>(tag)};
  if (lane.isStaged()) letter.push_back(NetMode::staged);
  transport_.send(rank, std::move(letter));
}

void LaneServer::fetched(std::int32_t lane, std::int32_t status) {
  Lane& each = all_[static_cast<std::size_t>(lane)];
  each.fetch = Fetch::over;
  each.outcome = status;
  if (each.isStaged()) --staged_;
  if (each.mode != NetMode::mapped) {
    const bool isOver =
        status == NetStatus::ok || status == NetStatus::cancelled || status == NetStatus::lost;
    if (!isOver) failBranches(each.address());
    return;
  }
  if (status == NetStatus::ok) {
    answer(tailOf(each.letter).rank, kTaken, tailOf(each.letter).offer);
  } else {
    decline(each.letter);
  }
}

/// The ranks to which this one should have passed a version on get it without bytes: their receives fail.
void LaneServer::failBranches(const Address& address) {
  const auto found = branches_.find(address);
  if (found == branches_.end()) return;
  const std::vector<double> pairs = std::move(found->second);
  branches_.erase(found);
  post(address.era, 0, nullptr, pairs.data(), pairs.size(), 0);
}

void LaneServer::complete(Lane& lane, std::int32_t status, double start) {
  const double end = start != 0 ? static_cast<double>(now()) : 0;
  // First: others wait for it.
  lanes_.complete(lanes_.self, lane.number, lane.last, status, start, end);
  lane.read = false;
  lane.over = lane.last;
  if (lane.published != lane.over) prefetchRecord(lane);
  if (!lane.letter.empty()) giveBack(std::move(lane.letter));
  lane.hasLetter = false;
  if (lane.withdrawn.has_value() && ahead(lane.last, *lane.withdrawn) >= 0) lane.withdrawn.reset();
}

}  // namespace headrace::mpi
