// Letters of lanes as MPI messages (see session.h and lane_server.h).
#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "session.h"

namespace headrace::mpi {
namespace {

/// Above all tags of data (lane_letter.h); MPI promises tags up to 32767.
constexpr int kLetterTag = 32767;
constexpr std::int32_t kLetterSlots = 8;
constexpr std::size_t kLetterValues = NetLimit::letter / sizeof(double);
/// Time for letters under way to leave when the session ends.
constexpr std::int64_t kLeavePatience = 1'000'000'000;

}  // namespace

void Session::openLetters() {
  if (options_.lanes == nullptr) return;
  LaneServer::Options options;
  options.lanes = options_.lanes;
  for (const SpaceView& space : options_.spaces) {
    options.spaces.push_back({space.base, space.bytes});
  }
  unflushed_.resize(options_.spaces.size());
  options.rank = rank_;
  options.size = static_cast<std::int32_t>(peers_.size());
  options.treeFrom = options_.treeFrom;
  options.longest = NetLimit::letter;
  LetterTransport& transport = *this;
  laneServer_ = std::make_unique<LaneServer>(options, transport);
  lanesSeen_ = word(NetWord::lanesPublished).load(std::memory_order_seq_cst);
  letterSlots_.resize(kLetterSlots);
  for (std::int32_t i = 0; i < kLetterSlots; ++i) {
    letterSlots_[i].resize(kLetterValues);
    letterEmptied_.push_back(i);
  }
  postLetterSlots();
}

/// After lanes were served: what waits for a letter need not wait for this.
void Session::postLetterSlots() {
  for (const std::int32_t slot : letterEmptied_) {
    MPI_Request request;
    MPI_Irecv(letterSlots_[slot].data(), NetLimit::letter, MPI_BYTE, MPI_ANY_SOURCE, kLetterTag,
              comm_, &request);
    add(request, {Kind::letterIn, slot, -1});
    letterPosted_.push_back(slot);
  }
  letterEmptied_.clear();
}

/// Short letters end in the order of their receives; a long one may hold back those behind it until all requests are tested.
/// MPI_Test shows what it takes from the wire itself. MPI_Testsome of Open MPI shows that in the next call only.
bool Session::testOldestLetter() {
  if (letterPosted_.empty()) return false;
  const std::int32_t slot = letterPosted_.front();
  std::size_t at = 0;
  while (owners_[at].kind != Kind::letterIn || owners_[at].index != slot) ++at;
  MPI_Status status;
  int came = 0;
  const int code = MPI_Test(&requests_[at], &came, &status);
  if (came == 0) return false;
  letterArrived(slot, status, code != MPI_SUCCESS);
  // Its receive comes first. Meanwhile requests are only added.
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(at));
  owners_.erase(owners_.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

void Session::letterArrived(std::int32_t slot, const MPI_Status& status, bool failed) {
  int bytes = 0;
  if (!failed) MPI_Get_count(&status, MPI_BYTE, &bytes);
  laneServer_->arrived(status.MPI_SOURCE, letterSlots_[slot].data(),
                       static_cast<std::size_t>(bytes));
  letterPosted_.erase(std::find(letterPosted_.begin(), letterPosted_.end(), slot));
  letterEmptied_.push_back(slot);
  sinceLetter_ = 0;
}

/// A rank writes letters only for ranks that it can wake.
void Session::openMailboxes(std::uint64_t host) {
  std::int32_t self = 0;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].host != host) continue;
    const auto rank = static_cast<std::int32_t>(r);
    if (rank == rank_) self = static_cast<std::int32_t>(hostRanks_.size());
    hostRanks_.push_back(rank);
  }
  if (mailbox_ == nullptr) return;
  const auto ranks = static_cast<std::int32_t>(hostRanks_.size());
  for (const std::int32_t rank : hostRanks_) {
    const Hello& peer = peers_[static_cast<std::size_t>(rank)];
    PeerMailbox other;
    if (rank == rank_ || !tokens_.canWake(rank)) continue;
    if (other.open(peer.pid, peer.mailboxFd, peer.mailboxNumber, self, ranks)) {
      peerMailboxes_.emplace(rank, std::move(other));
    }
  }
}

bool Session::emptyMailbox() {
  if (mailbox_ == nullptr || laneServer_ == nullptr) return false;
  return mailbox_->empty([this](std::int32_t writer, const double* values, std::size_t bytes) {
    laneServer_->arrived(hostRanks_[static_cast<std::size_t>(writer)], values, bytes);
  });
}

std::int32_t Session::wayFrom(std::int32_t rank, std::int32_t from, std::int32_t space) {
  const auto own = static_cast<std::int32_t>(options_.spaces.size());
  return options_.memory.ways[(rank * NetLimit::spaces + from) * own + space];
}

void Session::send(std::int32_t rank, Letter letter) {
  const auto mailbox = peerMailboxes_.find(rank);
  if (mailbox != peerMailboxes_.end() &&
      mailbox->second.put(letter.data(), letter.size() * sizeof(double))) {
    tokens_.wake(rank);
    laneServer_->giveBack(std::move(letter));
    return;
  }
  MPI_Request request;
  int left = 0;
  const int code = MPI_Isend(letter.data(), static_cast<int>(letter.size() * sizeof(double)),
                             MPI_BYTE, rank, kLetterTag, comm_, &request);
  tokens_.wake(rank);
  // Most are short, and have left at once.
  if (code != MPI_SUCCESS || (MPI_Test(&request, &left, MPI_STATUS_IGNORE), left != 0)) {
    laneServer_->giveBack(std::move(letter));
    return;
  }
  if (freeOutgoing_.empty()) {
    freeOutgoing_.push_back(static_cast<std::int32_t>(outgoing_.size()));
    outgoing_.emplace_back();
  }
  const std::int32_t index = freeOutgoing_.back();
  freeOutgoing_.pop_back();
  outgoing_[index] = std::move(letter);
  add(request, {Kind::letterOut, index, -1});
}

void Session::departed(std::int32_t request, std::int32_t status, double start, double end,
                       std::int32_t mode) {
  Record event{};
  event.words[NetRecord::kind] = NetEvent::departed;
  event.words[NetRecord::request] = request;
  event.words[NetRecord::status] = status;
  event.words[NetRecord::tag] = mode;
  event.doubles[NetRecord::start] = start;
  event.doubles[NetRecord::end] = end;
  events_.push(event);
}

void Session::came(std::int32_t number, std::int32_t rank, std::int32_t space, bool forwards) {
  Record event{};
  event.words[NetRecord::kind] = NetEvent::came;
  event.words[NetRecord::request] = number;
  event.words[NetRecord::rank] = rank;
  event.words[NetRecord::space] = space;
  event.words[NetRecord::tag] = forwards ? 1 : 0;
  events_.push(event);
}

/// Commands about versions of lanes.
void Session::tellLanes(const Record& command) {
  if (laneServer_ == nullptr) return;
  LaneServer& lanes = *laneServer_;
  const std::int32_t tag = command.word(NetRecord::tag);
  const double number = command.number(NetRecord::offset);
  switch (command.word(NetRecord::kind)) {
    case NetCommand::era: lanes.beginEra(tag); break;
    case NetCommand::want: lanes.want(tag, number); break;
    case NetCommand::decline: lanes.declineBefore(tag); break;
    case NetCommand::withdraw: lanes.withdraw(command.word(NetRecord::request), tag); break;
    case NetCommand::refuse: lanes.refuse(tag, number); break;
    case NetCommand::refuseCalls:
      lanes.refuseCalls(tag, command.number(NetRecord::size), number);
      break;
    case NetCommand::expect: lanes.expect(tag, number, command.word(NetRecord::request)); break;
    case NetCommand::abandon: lanes.abandon(); break;
  }
}

void Session::letterLeft(std::int32_t index) {
  laneServer_->giveBack(std::move(outgoing_[index]));
  freeOutgoing_.push_back(index);
}

bool Session::serveLanes() {
  if (laneServer_ == nullptr) return false;
  if (!isLost_) flushForLanes();
  const std::int32_t published = word(NetWord::lanesPublished).load(std::memory_order_seq_cst);
  const bool isNew = published != lanesSeen_;
  lanesSeen_ = published;
  return laneServer_->serve(isNew);
}

/// Lets letters leave that are under way; memory of those that do not is left to MPI.
void Session::endLetters() {
  const std::int64_t until = now() + kLeavePatience;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || owners_[i].kind != Kind::letterOut) continue;
    int left = 0;
    do {
      MPI_Test(&requests_[i], &left, MPI_STATUS_IGNORE);
    } while (left == 0 && now() < until);
    if (left == 0) new Letter(std::move(outgoing_[owners_[i].index]));
  }
}

}  // namespace headrace::mpi
