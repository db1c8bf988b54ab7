// Capturing and launching CUDA graphs: see gpu/graphs.h.
#include "gpu/graphs.h"

#include <algorithm>

#include "gpu/events.h"
#include "gpu/quiescent_section.h"

namespace headrace {

namespace {

/// Calls that could wait for a kernel may be made while streams are captured: none runs (CU_STREAM_CAPTURE_MODE_RELAXED).
constexpr int kRelaxed = 2;

GpuGraph& graph(GraphHandle handle) { return *static_cast<GpuGraph*>(handle); }

DriverStatus mark(GpuGraph& of, GpuStream& stream, void** event) {
  const GpuApi& api = *of.device->api;
  int code = api.eventCreate(event, gpu::kEventNoTiming);
  if (code != 0) return of.device->fail(code, "cuEventCreate");
  of.events.push_back(*event);
  code = api.eventRecord(*event, stream.stream);
  return of.device->check(code, "cuEventRecord");
}

DriverStatus follow(GpuGraph& of, GpuStream& stream, void* event) {
  return of.device->check(of.device->api->streamWaitEvent(stream.stream, event, 0),
                          "cuStreamWaitEvent");
}

DriverStatus enter(GpuGraph& of, const GpuDevice& device) {
  return of.device->check(of.device->api->contextSetCurrent(device.context), "cuCtxSetCurrent");
}

/// An event on every other GPU than the first, recorded and over before the capture begins.
DriverStatus watchOthers(GpuGraph& of) {
  const GpuApi& api = *of.device->api;
  for (const GpuStream* stream : of.streams) {
    GpuDevice* other = stream->device;
    if (other == of.device ||
        std::any_of(of.watches.begin(), of.watches.end(),
                    [&](const GraphWatch& each) { return each.device == other; })) {
      continue;
    }
    DriverStatus status = enter(of, *other);
    if (status != DriverStatus::ok) return status;
    void* event = nullptr;
    int code = api.eventCreate(&event, gpu::kEventNoTiming);
    if (code != 0) return of.device->fail(code, "cuEventCreate");
    of.watches.push_back({other, event});
    code = api.eventRecord(event, stream->stream);
    if (code != 0) return of.device->fail(code, "cuEventRecord");
    // Nothing is in the stream: this ends at once.
    while ((code = api.eventQuery(event)) == gpu::kNotReady) {
    }
    if (code != 0) return of.device->fail(code, "cuEventQuery");
  }
  return of.watches.empty() ? DriverStatus::ok : enter(of, *of.device);
}

/// The other streams join the capture of the first one.
DriverStatus fork(GpuGraph& of) {
  void* begin = nullptr;
  DriverStatus status = mark(of, *of.streams[0], &begin);
  for (std::size_t i = 1; i < of.streams.size() && status == DriverStatus::ok; ++i) {
    status = follow(of, *of.streams[i], begin);
  }
  return status;
}

/// One of the other GPUs of a graph that is lost, or null.
GpuDevice* lostOther(const GpuGraph& of) {
  for (const GraphWatch& each : of.watches) {
    if (each.device->lost.load(std::memory_order_acquire)) return each.device;
  }
  return nullptr;
}

DriverStatus refuseFor(GpuStream& on, GpuDevice& lost) {
  return on.device->refuse(DriverStatus::refused, "a graph has work on GPU " +
                                                      std::to_string(lost.ordinal) +
                                                      ", which is lost: " + lost.error());
}

/// The first stream waits for the others.
DriverStatus join(GpuGraph& of) {
  DriverStatus status = DriverStatus::ok;
  for (std::size_t i = 1; i < of.streams.size() && status == DriverStatus::ok; ++i) {
    void* end = nullptr;
    if (!of.watches.empty()) status = enter(of, *of.streams[i]->device);
    if (status == DriverStatus::ok) status = mark(of, *of.streams[i], &end);
    if (status == DriverStatus::ok) status = follow(of, *of.streams[0], end);
  }
  if (status == DriverStatus::ok && !of.watches.empty()) status = enter(of, *of.device);
  return status;
}

}  // namespace

std::int32_t GpuGraph::outcome() {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (words[i] == 0) continue;
    failed = labels[i];
    return words[i];
  }
  return 0;
}

DriverStatus gpuGraphBegin(DeviceHandle device, const StreamHandle* streams, std::size_t count,
                           std::size_t outcomes, GraphHandle* result) {
  auto& on = *static_cast<GpuDevice*>(device);
  const GpuApi& api = *on.api;
  if (api.streamBeginCapture == nullptr) {
    return on.refuse(DriverStatus::unsupported, "this driver has no graphs");
  }
  auto* made = new GpuGraph;
  made->device = &on;
  for (std::size_t i = 0; i < count; ++i) {
    made->streams.push_back(static_cast<GpuStream*>(streams[i]));
  }
  DriverStatus status = DriverStatus::ok;
  if (outcomes > 0) {
    void* words = nullptr;
    status = on.check(api.hostAlloc(&words, outcomes * sizeof(std::int32_t), gpu::kHostPortable),
                      "cuMemHostAlloc");
    made->words = static_cast<std::int32_t*>(words);
    made->room = outcomes;
  }
  if (status == DriverStatus::ok) status = watchOthers(*made);
  if (status == DriverStatus::ok) {
    status = on.check(api.streamBeginCapture(made->streams[0]->stream, kRelaxed),
                      "cuStreamBeginCapture");
  }
  if (status != DriverStatus::ok) {
    enter(*made, on);
    gpuGraphRelease(made);
    return status;
  }
  for (GpuStream* stream : made->streams) stream->capture = made;
  status = fork(*made);
  if (status != DriverStatus::ok) {
    gpuGraphEnd(made, false);
    return status;
  }
  *result = made;
  return DriverStatus::ok;
}

void gpuGraphLabel(GraphHandle handle, std::int64_t label) { graph(handle).label = label; }

DriverStatus gpuGraphMark(GraphHandle handle, StreamHandle stream, EventHandle* event) {
  return mark(graph(handle), *static_cast<GpuStream*>(stream), event);
}

DriverStatus gpuGraphFollow(GraphHandle handle, StreamHandle stream, EventHandle event) {
  return follow(graph(handle), *static_cast<GpuStream*>(stream), event);
}

DriverStatus gpuGraphEnd(GraphHandle handle, bool keep) {
  GpuGraph& of = graph(handle);
  GpuDevice& device = *of.device;
  const GpuApi& api = *device.api;
  DriverStatus status = keep ? join(of) : DriverStatus::refused;
  // It ends the capture of all streams, also of one that has failed.
  if (status != DriverStatus::ok && !of.watches.empty()) enter(of, *of.device);
  void* captured = nullptr;
  const int code = api.streamEndCapture(of.streams[0]->stream, &captured);
  for (GpuStream* stream : of.streams) stream->capture = nullptr;
  if (status == DriverStatus::ok) status = device.check(code, "cuStreamEndCapture");
  if (status == DriverStatus::ok) {
    status = device.check(api.graphInstantiate(&of.exec, captured, 0), "cuGraphInstantiate");
  }
  if (captured != nullptr) api.graphDestroy(captured);
  for (void* event : of.events) api.eventDestroy(event);
  of.events.clear();
  if (status != DriverStatus::ok) gpuGraphRelease(&of);
  return status;
}

DriverStatus gpuGraphLaunch(StreamHandle handle, GraphHandle launched, std::int32_t* status,
                            std::atomic<std::int32_t>* cancel) {
  auto& on = *static_cast<GpuStream*>(handle);
  GpuGraph& of = graph(launched);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (GpuDevice* other = lostOther(of)) return refuseFor(on, *other);
  ++on.device->work;
  announceLaunch(on);
  of.failed = -1;
  const int code = on.device->api->graphLaunch(of.exec, on.stream);
  if (code != 0) {
    // The error may be that of another GPU, whose context is dead.
    for (const GraphWatch& each : of.watches) {
      const int state = on.device->api->eventQuery(each.event);
      if (gpuLost(state)) each.device->fail(state, "cuGraphLaunch");
    }
    GpuDevice* other = lostOther(of);
    return other != nullptr ? refuseFor(on, *other) : on.device->fail(code, "cuGraphLaunch");
  }
  for (const GraphWatch& each : of.watches) {
    on.foreignWaits.push_back({each.device, on.position + 1, each.event});
  }
  if (gpuGraphReports(launched)) {
    on.outcomes.push_back({on.position + 1, nullptr, status, cancel, &of});
  }
  return DriverStatus::ok;
}

bool gpuGraphReports(GraphHandle handle) { return !graph(handle).labels.empty(); }

std::int64_t gpuGraphFailed(GraphHandle handle) { return graph(handle).failed; }

void gpuGraphRelease(GraphHandle handle) {
  GpuGraph& of = graph(handle);
  const GpuApi& api = *of.device->api;
  // What may be under way for ever stays.
  if (!gpuStuck(*of.device)) {
    if (of.exec != nullptr) api.graphExecDestroy(of.exec);
    for (const GraphWatch& each : of.watches) api.eventDestroy(each.event);
    if (of.words != nullptr) api.hostFree(of.words);
  }
  delete &of;
}

const GraphTable* gpuGraphs() {
  static constexpr GraphTable table = {gpuGraphBegin,   gpuGraphLabel,  gpuGraphMark,
                                       gpuGraphFollow,  gpuGraphEnd,    gpuGraphLaunch,
                                       gpuGraphReports, gpuGraphFailed, gpuGraphRelease};
  return &table;
}

}  // namespace headrace
