// The inventory of a machine with GPUs, for the doctor: asks the driver without making a context on any GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

struct GpuFacts {
  std::string name;
  std::string uuid;
  double bytes;
  int multiprocessors;
  int major;
  int minor;
  int rdma;                 // GPU_DIRECT_RDMA_SUPPORTED
  int rdmaFlush;            // FLUSH_WRITES_OPTIONS: 1 from the host, 2 by stream memory operations
  int rdmaOrdering;         // WRITES_ORDERING: 0 none, 100 owner, 200 all devices
  std::vector<bool> peers;  // by ordinal: it can reach that GPU's memory
};

/// The CUDA GPUs of this machine; empty if there is no usable driver.
std::vector<GpuFacts> cudaInventory();

}  // namespace headrace
