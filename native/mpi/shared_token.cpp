// Tokens in memory of several processes: see shared_token.h.
#include "shared_token.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "process_files.h"

namespace headrace::mpi {
namespace {

constexpr std::size_t kBytes = 4096;
static_assert(sizeof(FutexToken) <= kBytes, "the token fits into one page");

/// The page behind a descriptor, or null.
void* mapPage(std::int32_t fd) {
  void* page = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return page == MAP_FAILED ? nullptr : page;
}

}  // namespace

SharedToken::SharedToken() {
  fd_ = ::memfd_create("headrace-token", MFD_CLOEXEC);
  if (fd_ < 0) return;
  void* page = ::ftruncate(fd_, kBytes) == 0 ? mapPage(fd_) : nullptr;
  if (page == nullptr) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  token_ = new (page) FutexToken(FutexToken::Scope::processes);
}

SharedToken::~SharedToken() {
  if (fd_ < 0) return;
  ::munmap(token_, kBytes);
  ::close(fd_);
}

bool PeerTokens::open(std::int32_t rank, std::int32_t pid, std::int32_t fd) {
  const int file = openDescriptor(pid, fd);
  if (file < 0) return false;
  void* page = mapPage(file);
  ::close(file);
  tokens_[static_cast<std::size_t>(rank)] = static_cast<FutexToken*>(page);
  return page != nullptr;
}

PeerTokens::~PeerTokens() {
  for (FutexToken* token : tokens_) {
    if (token != nullptr) ::munmap(token, kBytes);
  }
}

}  // namespace headrace::mpi
