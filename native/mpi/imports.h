// Memory of other processes of this host, mapped through /proc/<pid>/fd/<fd>: emulated GPUs have such memory.
// Owner, space and the owner's session name a mapping, which is made once. Mappings of an older session are undone
// before a new one is used. Invariant: all are undone before the owner learns that it may free (session close).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace headrace::mpi {

class Imports {
 public:
  Imports() = default;
  ~Imports() { clear(); }
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  /// First byte of the mapping, or null with a text in `error`.
  const std::uint8_t* map(std::int32_t rank, std::int32_t space, std::int32_t pid, std::int32_t fd,
                          std::uint64_t bytes, std::string& error);
  void clear();

 private:
  struct Mapping {
    std::uint8_t* data;
    std::uint64_t bytes;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Mapping> mappings_;
};

}  // namespace headrace::mpi
