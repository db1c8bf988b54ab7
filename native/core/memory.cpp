// The host reservation: see core/memory.h.
#include "core/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace headrace {

HostMemory::HostMemory(std::uint64_t bytes) : bytes_(bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  mapped_ = bytes == 0 ? page : (bytes + page - 1) / page * page;
  void* data = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw std::runtime_error("cannot reserve " + std::to_string(bytes) +
                             " bytes of address space for host data: " + std::strerror(errno));
  }
  data_ = static_cast<std::uint8_t*>(data);
  // Fewer page faults and translation misses for tiles; harmless on systems without support.
  if (mapped_ >= (std::uint64_t{4} << 20)) madvise(data, mapped_, MADV_HUGEPAGE);
}

void HostMemory::discard() { madvise(data_, mapped_, MADV_DONTNEED); }

HostMemory::~HostMemory() { munmap(data_, mapped_); }

}  // namespace headrace
