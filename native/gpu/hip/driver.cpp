// The driver table of HIP: see gpu/stream_driver.cpp, which holds everything except the name.
#include "gpu/device.h"
#include "headrace/contract.h"

namespace headrace {

namespace {

DriverStatus probe(std::int32_t* devices, char* reason, std::size_t reasonBytes) {
  std::string why;
  const GpuApi* api = hipApi(why);
  return gpuProbe(api, why, devices, reason, reasonBytes);
}

DriverStatus open(std::int32_t ordinal, DeviceHandle* device, DeviceDescription* description,
                  char* reason, std::size_t reasonBytes) {
  std::string why;
  const GpuApi* api = hipApi(why);
  return gpuOpen(api, why, "hip", SpaceKind::hip, ordinal, device, description, reason,
                 reasonBytes);
}

}  // namespace

const DriverTable* hipDriver() {
  static const DriverTable table = gpuDriverTable("hip", SpaceKind::hip, probe, open);
  return &table;
}

}  // namespace headrace
