// Memory behind a descriptor of another process of this host, which /proc shows to processes that may trace it.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>

namespace headrace::mpi {

inline std::string pathOfDescriptor(std::int32_t pid, std::int32_t fd) {
  return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
}

/// A descriptor of this process for the same file, to read and write it; negative when `fd` is, or when that is not possible.
inline int openDescriptor(std::int32_t pid, std::int32_t fd) {
  return fd < 0 ? -1 : ::open(pathOfDescriptor(pid, fd).c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace headrace::mpi
