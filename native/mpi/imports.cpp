// Mapping memory of other processes: see imports.h.
#include "imports.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "process_files.h"

namespace headrace::mpi {

const std::uint8_t* Imports::map(std::int32_t rank, std::int32_t space, std::int32_t pid,
                                 std::int32_t fd, std::uint64_t bytes, std::string& error) {
  const auto key = std::make_pair(rank, space);
  const auto known = mappings_.find(key);
  if (known != mappings_.end()) return known->second.data;
  const std::string path = pathOfDescriptor(pid, fd);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    error = "cannot open " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  const int reason = errno;
  ::close(file);
  if (data == MAP_FAILED) {
    error = "cannot map " + path + ": " + std::strerror(reason);
    return nullptr;
  }
  mappings_[key] = Mapping{static_cast<std::uint8_t*>(data), bytes};
  return static_cast<std::uint8_t*>(data);
}

void Imports::clear() {
  for (auto& [key, mapping] : mappings_) ::munmap(mapping.data, mapping.bytes);
  mappings_.clear();
}

}  // namespace headrace::mpi
