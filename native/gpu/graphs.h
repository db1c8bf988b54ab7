// CUDA graphs: the commands of an iteration on one or several GPUs, captured once and launched as one piece of work.
//
// Between `gpuGraphBegin` and `gpuGraphEnd` the work that the thread puts into the graph's streams is kept, not executed.
//
// Invariants:
// - one thread captures, in a pause (gpu/quiescent_section.h), and holds the submission locks of all GPUs of the graph. So
//   nothing else is put into these streams meanwhile;
// - events and library calls belong to the context that is current. `begin` and `end` leave that of the graph's first GPU
//   current; in between the caller makes the one of a stream's GPU current before it uses the stream;
// - the order in a graph is that of each stream, and from a mark to the stream that follows it;
// - the words for the outcomes of library calls belong to the graph, and every launch writes all of them. So a graph with
//   such words is launched again only after the outcome of the launch before was delivered (`gpuGraphReports`);
// - the stream that launches sees the end of the work on all GPUs. An error on another GPU than its own may never show there,
//   so that GPU's watch is asked as well (gpu/events.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace headrace {

/// Another GPU of a graph, and an event of its context whose recording is over: a question about it tells whether the context
/// is alive.
struct GraphWatch {
  GpuDevice* device;
  void* event;
};

struct GpuGraph {
  /// That of the first stream.
  GpuDevice* device = nullptr;
  std::vector<GraphWatch> watches;
  /// The first one launches the graph.
  std::vector<GpuStream*> streams;
  /// While it is captured.
  std::vector<void*> events;
  void* exec = nullptr;
  /// Pinned, one per library call that reports an outcome, and what each belongs to.
  std::int32_t* words = nullptr;
  std::size_t room = 0;
  std::vector<std::int64_t> labels;
  std::int64_t label = -1;
  /// Of the newest launch that failed: the label of the first call that failed.
  std::int64_t failed = -1;

  /// Its code, or 0. Notes the label.
  std::int32_t outcome();
};

/// Begins to capture `count` streams, also of other GPUs than `device`, which is that of the first one. At most `outcomes` calls
/// will report one.
DriverStatus gpuGraphBegin(DeviceHandle device, const StreamHandle* streams, std::size_t count,
                           std::size_t outcomes, GraphHandle* graph);
/// The work that follows belongs to `label`, for `gpuGraphFailed`.
void gpuGraphLabel(GraphHandle graph, std::int64_t label);
/// The end of the stream's work so far, for `gpuGraphFollow`.
DriverStatus gpuGraphMark(GraphHandle graph, StreamHandle stream, EventHandle* mark);
DriverStatus gpuGraphFollow(GraphHandle graph, StreamHandle stream, EventHandle mark);
/// Ends the capture; also after an error, then with `keep` false. The handle is void after a status other than `ok`.
DriverStatus gpuGraphEnd(GraphHandle graph, bool keep);
DriverStatus gpuGraphLaunch(StreamHandle stream, GraphHandle graph, std::int32_t* status,
                            std::atomic<std::int32_t>* cancel);
bool gpuGraphReports(GraphHandle graph);
/// Label of the first call that failed in the newest launch with a failure; -1: none.
std::int64_t gpuGraphFailed(GraphHandle graph);
void gpuGraphRelease(GraphHandle graph);

/// All of these functions.
const GraphTable* gpuGraphs();

}  // namespace headrace
