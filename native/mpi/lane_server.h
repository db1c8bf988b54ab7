// Serves the lanes of a core (headrace/lanes.h): sends versions to other ranks, and completes receives with the versions
// that come. It knows no MPI: a transport carries letters and bytes. One thread uses it.
//
// A letter is float64: era, key, bytes of the version, number of values that follow, pairs (rank, key) that its receiver
// passes it on to, then the bytes, padded to a multiple of 8. Other letters have a negative value before that:
//   -1  an announcement: as above, but with the number of an offer (lane_offers.h) instead of the bytes; from a rank with GPUs
//       also the memory space of the bytes, their place in it, and the priority of the transfer
//   -2  a request for the bytes: offer, tag; with a third value, a NetMode, if they do not go direct
//   -3  a rank needs no bytes: offer, era, and the pairs that came with the announcement: the offering rank serves these
//   -4  there are no bytes for a request: tag
//   -5  the bytes were read from mapped memory: offer
//
// Invariants:
// - the commands of a lane complete in order, each once, and never before its wait is over: whatever waits for a command
//   may rely on all that the command waits for. A wait without a command may complete with the next record of its lane: nothing
//   follows it;
// - a send looks at its wait first, then for failures that the engine has not handled, then at its run's cancel word. A
//   record that fails is counted and cancels its run before its completion can be seen, so no letter has bytes that were
//   computed from a failure;
// - a letter is passed on when it arrives, whether a receive waits for it or not;
// - ranks that get a version through this one get a letter in any case: an announcement when it is here, or a version without
//   bytes, which fails their receives;
// - letters between two ranks may come in any order (mailbox.h): what answers a letter names it;
// - a receive takes the letter with its era and key, whichever comes first; no letter is taken twice. A version that comes for a
//   receive at the head of its lane whose wait is over is not kept: it goes to its place at once;
// - a receive that leaves open how its bytes come learns it from its announcement, before it asks for them;
// - an announcement is answered once: by the receive that takes it, when the engine refuses it, or when its era is over. A receive asks when its wait is
//   over, so its bytes go straight to their place, and it does not end while they may still come;
// - at most `kMostStaged` receives through staging buffers are under way, the most urgent first: with more, other transfers could
//   find no buffers;
// - no lane waits for other ranks with a send: an announcement is over when it has left. The exception are deliveries, which
//   only plans have: there each lane's records have an order that all ranks share (scheduler/plans/messages.ts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "contract.h"
#include "headrace/contract.h"
#include "headrace/lanes.h"
#include "lane_offers.h"
#include "letter_transport.h"

namespace headrace::mpi {

class LaneServer {
 public:
  struct Options {
    const headrace_lanes* lanes = nullptr;
    /// Memory spaces; the first is the host's.
    struct Space {
      std::uint8_t* base = nullptr;
      double bytes = 0;
    };
    std::vector<Space> spaces;
    std::int32_t rank = 0;
    std::int32_t size = 1;
    /// Destinations from which on a version goes along a tree of ranks.
    std::int32_t treeFrom = 4;
    /// Bytes of the longest letter; a send of more fails with `outOfRange`.
    std::size_t longest = 65536;
  };

  /// Rounds from one look for cancelled runs to the next; all lanes are looked at only if there is one.
  static constexpr std::uint32_t kLookRounds = 64;
  static constexpr std::int32_t kMostStaged = 8;
  /// Lanes that one round looks at for new records, and lanes whose next command it reads: the engine has written these on
  /// another core, and a message that comes meanwhile should not wait for all of them.
  static constexpr std::int32_t kMostLooks = 4;
  static constexpr std::int32_t kMostReads = 2;

  LaneServer(const Options& options, LetterTransport& transport);

  /// Does what can be done now; true when anything moved. `published`: lanes may have new records. It looks for cancelled
  /// runs of receives without a letter when lanes have new records, after a sleep, and otherwise once in a while.
  bool serve(bool published);
  /// A letter has come from a rank. `values` are read in this call only. A receive that waits for nothing but this version is
  /// complete then; the next round reports that it has moved.
  void arrived(std::int32_t rank, const double* values, std::size_t bytes);
  /// Bytes have left for another rank, or not: the number of their offer, and a NetStatus.
  void sent(std::int32_t offer, std::int32_t status, double start, double end) {
    offers_.sent(offer, status, start, end);
  }
  /// The bytes have come for which a lane has asked, or do not come: a NetStatus.
  void fetched(std::int32_t lane, std::int32_t status);
  /// Versions of earlier eras that no receive took are forgotten, also those that come later.
  void beginEra(double era);
  /// A receive takes the version with that address, or refuses it: `declineBefore` leaves it.
  void want(double era, double key);
  /// Announcements of eras before `era` are declined that no receive takes which has come to its turn, and that none wants.
  void declineBefore(double era);
  /// The receive that is record `sequence` of a lane ends as cancelled, if its bytes have not come.
  void withdraw(std::int32_t lane, std::int32_t sequence);
  /// No receive takes the version with that address: it is dropped now, or when it comes.
  void refuse(double era, double key);
  /// Versions of calls that no receive takes are dropped: eras from `from` to before `until`, keys below 0 and above `above`.
  void refuseCalls(double from, double until, double above);
  /// `LetterTransport::came` follows with `number` when a letter with that address has come, unless it is dropped. It is kept.
  void expect(double era, double key, std::int32_t number);
  /// The ranks are out of step: nothing is announced or given away any more.
  void abandon();
  /// A rank was lost: from now on nothing is sent.
  void lost();
  /// Memory of a letter for the next one.
  void giveBack(Letter letter);

  /// Lanes have commands that are not complete.
  bool waiting() const { return working_ > 0; }
  /// Sends wait until the engine has handled a failure, which wakes no thread here.
  bool held() const { return held_; }
  /// Before the thread sleeps: the events for which lanes wait unpark `sleeper`, a FutexToken. False: one has happened.
  bool watch(void* sleeper);
  /// After it has slept.
  void unwatch();
  /// Letters that were dropped: duplicates, and those whose values make no sense.
  std::int64_t refused() const { return refused_; }
  /// Letters that no receive took so far.
  std::size_t kept() const { return kept_.size(); }

 private:
  struct Address {
    double era;
    double key;
    bool operator==(const Address& other) const { return era == other.era && key == other.key; }
  };
  /// Small numbers differ in the upper bits of a double only, and the containers may use the lower ones: the multiplication
  /// spreads what the first shift brings down, and the last shift brings it down again.
  struct AddressHash {
    std::size_t operator()(const Address& address) const {
      std::uint64_t mixed = bitsOf(address.key) ^ bitsOf(address.era) >> 7;
      mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15ull;
      return mixed ^ mixed >> 32;
    }
    /// Equal numbers have equal bits: the sum makes 0 of -0.
    static std::uint64_t bitsOf(double value) {
      const double sum = value + 0.0;
      std::uint64_t bits = 0;
      std::memcpy(&bits, &sum, sizeof bits);
      return bits;
    }
  };
  /// The bytes of a receive that was announced, or of a delivery.
  enum class Fetch : std::uint8_t { none, queued, underWay, over };
  /// Memory spaces and ways that the last argument of a receive tells apart (native/contract.ts).
  static constexpr std::int32_t kSpaces = NetLimit::spaces;
  static constexpr std::int32_t kModes = 4;
  /// One lane and its first command that is not over. What each round looks at lies in one line of the cache.
  struct alignas(64) Lane {
    std::int32_t number = 0;
    std::int32_t published = 0;
    /// Its last record that is over: complete, or a wait that completes with the next one.
    std::int32_t over = 0;
    bool active = false;
    /// It is in `active_`, and in `visited_`.
    bool listed = false;
    bool visited = false;
    /// It has no records until the condition of a play is decided.
    bool waitsInPlay = false;
    /// The command was read.
    bool read = false;
    bool happened = false;
    /// A receive's letter, once it has come.
    bool hasLetter = false;
    Fetch fetch = Fetch::none;
    std::int32_t opcode = 0;
    std::int32_t last = 0;
    std::int32_t waitQueue = -1;
    std::int32_t waitSequence = 0;
    std::int32_t run = -1;
    /// Its outcome, if the command makes no sense.
    std::int32_t refusal = 0;
    /// The receive that the engine withdraws, by the number of its last record.
    std::optional<std::int32_t> withdrawn;
    /// A delivery's offer.
    std::int32_t offer = 0;
    /// Where its bytes are, if the command makes sense.
    std::uint8_t* data = nullptr;
    std::vector<double> arguments;
    /// Of a receive that has its letter: that one; an announcement ends with its offer and the rank from which it came. Of a
    /// send with one destination, until it leaves: its letter without the bytes.
    Letter letter;
    /// The NetMode of an announced receive.
    std::int32_t mode = 0;
    /// A NetStatus, and when it began.
    std::int32_t outcome = 0;
    double fetchStart = 0;

    double offset() const { return arguments[0]; }
    double bytes() const { return arguments[1]; }
    /// Of a receive: the NetMode that its command asks for, and a NetScope.
    std::int32_t commandedMode() const { return arrival() / kSpaces % kModes; }
    std::int32_t scope() const { return arrival() / (kSpaces * kModes); }
    std::int32_t space() const {
      return opcode == Opcode::offer ? static_cast<std::int32_t>(arguments[5])
                                     : arrival() % kSpaces;
    }
    /// Nothing but a letter, a cancelled run or a withdrawal moves it on.
    bool awaitsLetter() const {
      return read && happened && opcode == Opcode::receive && !hasLetter && refusal == Status::ok;
    }
    bool isStaged() const { return opcode == Opcode::receive && mode == NetMode::staged; }
    Address address() const { return {arguments[2], arguments[3]}; }

   private:
    std::int32_t arrival() const {
      const bool has = opcode == Opcode::receive && arguments.size() > 4;
      return has ? static_cast<std::int32_t>(arguments[4]) : 0;
    }
  };

  /// The last complete record of a queue, as seen in this round.
  struct Reached {
    std::uint64_t round = 0;
    std::int32_t sequence = 0;
  };

  /// A lane that the round looks at. With a queue it waits for a record of that one, and nothing else but a withdrawal moves it,
  /// after which a round looks at all lanes.
  struct Visit {
    std::int32_t number;
    std::int32_t waitQueue;
    std::int32_t waitSequence;
  };

  /// A queue for whose records lanes wait, and its last complete one, as a round has seen it.
  struct Event {
    std::int32_t queue;
    std::int32_t reached;
  };

  bool serveLetters();
  void prefetchNews();
  void prefetchRecord(const Lane& lane);
  bool isAnyCancelled() const;
  bool isQuiet() const;
  void noteEvents();
  static Visit visitOf(const Lane& lane);
  std::int32_t reached(std::int32_t queue);
  void visitAll();
  void visit(Lane& lane);
  bool lookAtSome();
  void look(Lane& lane);
  bool mayMove(Lane& lane, bool all);
  bool serveLane(Lane& lane);
  void read(Lane& lane);
  std::int32_t check(const Lane& lane) const;
  bool isOver(Lane& lane, std::int32_t& status);
  bool isSent(Lane& lane, std::int32_t& status);
  void offer(const Lane& lane);
  bool isDelivered(Lane& lane, std::int32_t& status);
  void departed(std::int32_t request, std::int32_t status, double start, double end,
                std::int32_t mode);
  bool isReceived(Lane& lane, std::int32_t& status);
  bool receiveNow(const double* version);
  static std::int32_t copyIn(const Lane& lane, const double* version);
  bool isCancelled(const Lane& lane) const;
  static bool isWithdrawn(const Lane& lane) { return lane.withdrawn == lane.last; }
  double startTime() const;
  void choose(Lane& lane);
  bool mayFetch(Lane& lane);
  void fetch(Lane& lane);
  void failBranches(const Address& address);
  void tellCame(std::int32_t number, const Letter& letter);
  void complete(Lane& lane, std::int32_t status, double start);
  bool isRank(double rank) const;
  static LanePlace place(const Lane& lane) { return {lane.space(), lane.data}; }
  Letter version(double era, double bytes, const double* branch, std::size_t children);
  Letter announcement(double era, double bytes, const double* branch, std::size_t children,
                      std::int32_t offer);
  std::int32_t post(double era, double bytes, const void* data, const double* destinations,
                    std::size_t count, std::int32_t offer);
  bool take(std::int32_t rank, const double* values, std::size_t count);
  bool takeReply(std::int32_t rank, const double* values, std::size_t count);
  bool takeDecline(const double* values, std::size_t count);
  bool keep(Letter letter);
  bool isRefused(const Address& address) const;
  void drop(const Letter& letter);
  void decline(const Letter& announcement);
  void answer(std::int32_t rank, double kind, double value);
  Letter blank();

  const Options options_;
  const headrace_lanes& lanes_;
  LetterTransport& transport_;
  std::vector<Lane> all_;
  /// Lanes with commands that are not complete.
  std::int32_t working_ = 0;
  /// Their numbers, and those of lanes that had commands at the last look at all; those of them that each round looks at,
  /// which are all but the receives that wait for letters; and those whose letters came since the last round.
  std::vector<std::int32_t> active_;
  std::vector<Visit> visited_;
  std::vector<std::int32_t> withLetters_;
  /// Those for which the lanes of `visited_` wait, if all of them wait for events of a few queues.
  std::vector<Event> events_;
  bool awaitEvents_ = false;
  bool held_ = false;
  /// The next round looks at all lanes: the thread has slept, or the engine has withdrawn something.
  bool mustLook_ = false;
  /// Lanes that are still to be looked at for new records, from `nextLook_` on.
  std::int32_t unseen_ = 0;
  std::int32_t nextLook_ = 0;
  /// Rounds so far, from 1 in the first one: no entry of `reached_` is of a round that is still to come.
  std::uint64_t round_ = 0;
  /// By queue.
  std::vector<Reached> reached_;
  /// Lanes whose events unpark the sleeper.
  std::vector<std::int32_t> watched_;
  bool isLost_ = false;
  bool isAbandoned_ = false;
  double era_ = 0;
  double declinedTo_ = 0;
  /// Of versions that no receive takes and that have not come, in the present era and later ones.
  std::unordered_set<Address, AddressHash> unwanted_;
  /// Of versions of receives that come to their turn, or are commanded, behind the failure of a run.
  std::unordered_set<Address, AddressHash> wanted_;
  /// The calls whose versions no receive takes.
  struct {
    double from = 0;
    double until = 0;
    double above = 0;
  } refusedCalls_;
  LaneOffers offers_;
  /// Receives through staging buffers under way.
  std::int32_t staged_ = 0;
  std::int64_t refused_ = 0;
  std::unordered_map<Address, Letter, AddressHash> kept_;
  /// Pairs to which fetched versions go on, until an offer takes them.
  std::unordered_map<Address, std::vector<double>, AddressHash> branches_;
  /// Receives without a letter, at the heads of their lanes.
  std::unordered_map<Address, std::int32_t, AddressHash> expected_;
  /// Numbers of the versions that the engine expects.
  std::unordered_map<Address, std::int32_t, AddressHash> awaited_;
  std::vector<Letter> spare_;
};

}  // namespace headrace::mpi
