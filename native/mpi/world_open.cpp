// Opening a session: every rank tells the others about its memory, and finds the memory that it can reach (see world.h).
#include <unistd.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "headrace/contract.h"
#include "world.h"

namespace headrace::mpi {

/// Finds this rank's GPUs. MPI libraries that take device pointers bind themselves to one GPU per process (H10). The
/// memory of the others goes other ways.
void World::findGpus() {
  for (SpaceView& space : wanted_->spaces) {
    if (space.kind != SpaceKind::cuda && space.kind != SpaceKind::hip) continue;
    std::string why;
    space.gpu = gpus_.find(space.kind, space.uuid, why);
    if (space.gpu == nullptr) throw std::runtime_error(why);
    if (mpiGpu_ == nullptr) mpiGpu_ = space.gpu;
    space.direct = space.direct && space.gpu == mpiGpu_;
  }
}

Hello World::describeSelf(const Mailbox* mailbox) {
  Hello mine{};
  mine.host = host_;
  mine.pid = getpid();
  mine.tokenFd = token_.fd();
  mine.mailboxFd = mailbox == nullptr ? -1 : mailbox->fd();
  mine.mailboxNumber = mailbox == nullptr ? 0 : mailbox->number();
  mine.told = wanted_->told;
  mine.spaces = static_cast<std::int32_t>(wanted_->spaces.size());
  for (std::int32_t s = 0; s < mine.spaces; ++s) {
    const SpaceView& space = wanted_->spaces[s];
    auto& told = mine.space[s];
    told.kind = space.kind;
    told.fd = space.fd;
    told.bytes = static_cast<std::uint64_t>(space.bytes);
    told.ordinal = space.gpu == nullptr ? -1 : space.gpu->ordinal;
    told.direct = space.direct;
    told.shared = space.shared;
    told.exported = space.exported;
    std::strncpy(told.exported.uuid, space.uuid.c_str(), sizeof told.exported.uuid - 1);
  }
  return mine;
}

/// Such a library compares the drivers' numbers of GPUs across processes of a host, so they must mean the same there.
/// All ranks read the same words and get the same answer.
std::string World::directProblem() const {
  for (const Hello& a : hellos_) {
    for (const Hello& b : hellos_) {
      if (a.host != b.host) continue;
      for (std::int32_t s = 0; s < a.spaces; ++s) {
        for (std::int32_t t = 0; t < b.spaces; ++t) {
          const auto& x = a.space[s];
          const auto& y = b.space[t];
          if (x.ordinal < 0 || y.ordinal < 0 || !x.direct || !y.direct) continue;
          const bool same = std::strcmp(x.exported.uuid, y.exported.uuid) == 0;
          if (same != (x.ordinal == y.ordinal)) {
            return "ranks of one host number its GPUs differently (CUDA_VISIBLE_DEVICES), which "
                   "MPI libraries mistake "
                   "for the same GPU";
          }
        }
      }
    }
  }
  return "";
}

void World::openSession() {
  std::string error;
  try {
    findGpus();
  } catch (const std::runtime_error& problem) {
    error = problem.what();
  }
  auto mailbox = wanted_->mailboxes ? std::make_unique<Mailbox>(hostRanks_) : nullptr;
  const Hello mine = describeSelf(mailbox.get());
  hellos_.assign(static_cast<std::size_t>(facts_.size), Hello{});
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  int lost = waitFor(&request);
  if (lost < 0) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, hellos_.data(), sizeof mine, MPI_BYTE, comm,
                   &request);
    lost = waitFor(&request);
  }
  opened_ = Opened{};
  if (lost < 0 && error.empty()) {
    opened_.directProblem = directProblem();
    if (!opened_.directProblem.empty()) {
      for (SpaceView& space : wanted_->spaces) space.direct = space.direct && space.gpu == nullptr;
    }
    const Gpu* bound = nullptr;
    for (const SpaceView& space : wanted_->spaces) {
      if (space.gpu != nullptr && bound == nullptr) bound = space.gpu;
    }
    try {
      auto session = std::make_unique<Session>(std::move(*wanted_), comm, facts_.rank, hellos_,
                                               host_, bound, sleeper_, std::move(mailbox));
      std::lock_guard<std::mutex> guard(lock_);
      session_ = std::move(session);
    } catch (const std::runtime_error& problem) {
      error = problem.what();
    }
  }
  if (session_ != nullptr) opened_.mappingProblem = session_->mappingProblem();
  for (std::size_t r = 0; session_ != nullptr && r < hellos_.size(); ++r) {
    const Hello& hello = hellos_[r];
    const bool writes = session_->writesTo(static_cast<int>(r));
    Opened::Peer peer{hello.host == host_, hello.pid, hello.told, writes, {}, {}};
    for (std::int32_t s = 0; s < hello.spaces; ++s) {
      const bool real = hello.space[s].ordinal >= 0;
      peer.mappable.push_back(session_->mappable(static_cast<int>(r), s));
      peer.reachable.push_back(hello.space[s].direct && (!real || opened_.directProblem.empty()));
    }
    opened_.peers.push_back(std::move(peer));
  }
  std::lock_guard<std::mutex> guard(lock_);
  if (lost >= 0)
    error_ = "rank " + std::to_string(lost) + " is gone";
  else
    error_ = error;
}

}  // namespace headrace::mpi
