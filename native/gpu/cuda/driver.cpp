// The driver table of CUDA: see gpu/stream_driver.cpp, which holds everything except the name.
#include "gpu/device.h"
#include "headrace/contract.h"

namespace headrace {

namespace {

DriverStatus probe(std::int32_t* devices, char* reason, std::size_t reasonBytes) {
  std::string why;
  const GpuApi* api = cudaApi(why);
  return gpuProbe(api, why, devices, reason, reasonBytes);
}

DriverStatus open(std::int32_t ordinal, DeviceHandle* device, DeviceDescription* description,
                  char* reason, std::size_t reasonBytes) {
  std::string why;
  const GpuApi* api = cudaApi(why);
  return gpuOpen(api, why, "cuda", SpaceKind::cuda, ordinal, device, description, reason,
                 reasonBytes);
}

}  // namespace

const DriverTable* cudaDriver() {
  static const DriverTable table = gpuDriverTable("cuda", SpaceKind::cuda, probe, open);
  return &table;
}

}  // namespace headrace
