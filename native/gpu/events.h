// The event functions of a real driver's table (gpu/events.cpp).
#pragma once

#include "gpu/device.h"

namespace headrace {

/// True when the device was given up and its streams still wait for a GPU that is lost.
bool gpuStuck(GpuDevice& device);
DriverStatus gpuCreateMarks(GpuStream& stream);
void gpuDestroyMarks(GpuStream& stream);
DriverStatus gpuEventRecord(EventHandle event, StreamHandle stream);
DriverStatus gpuEventQuery(EventHandle event);
DriverStatus gpuEventTime(EventHandle event, double* nanoseconds);
DriverStatus gpuStreamWait(StreamHandle stream, EventHandle event);

}  // namespace headrace
