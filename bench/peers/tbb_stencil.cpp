// The stencil as a flow graph of oneTBB (stencil.h). The graph is built before the clock starts. It has some steps, and is
// started again until all steps are done, because a graph of all steps does not fit into the caches.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <memory>

#include "stencil.h"

namespace {

namespace flow = oneapi::tbb::flow;

/// Steps of a graph; even, so that the next start goes on in the same row. The best of 10, 20, 50, 100, 200 and 1000.
constexpr int kGraphSteps = 50;

/// What the tasks of the graphs read when they run.
struct Current {
  bool isCheck;
  std::int64_t iterations;
  int firstStep;
};

class Graph {
 public:
  Graph(peers::Rows& rows, const Current& current, int columns, int steps) : start_(graph_) {
    for (int step = 0; step < steps; ++step)
      for (int column = 0; column < columns; ++column) add(rows, current, columns, step, column);
  }

  void run() {
    start_.try_put(flow::continue_msg());
    graph_.wait_for_all();
  }

 private:
  using Node = flow::continue_node<flow::continue_msg>;

  void add(peers::Rows& rows, const Current& current, int columns, int step, int column) {
    peers::Cell* const to = rows.at(step + 1, column);
    const peers::Cell* const left = rows.at(step, column - 1);
    const peers::Cell* const middle = rows.at(step, column);
    const peers::Cell* const right = rows.at(step, column + 1);
    nodes_.push_back(std::make_unique<Node>(graph_, [=, &current](const flow::continue_msg&) {
      peers::runTask(current.iterations, current.isCheck, to, left, middle, right,
                     current.firstStep + step, column);
    }));
    Node& node = *nodes_.back();
    if (step == 0) {
      flow::make_edge(start_, node);
      return;
    }
    for (int c = std::max(column - 1, 0); c <= std::min(column + 1, columns - 1); ++c)
      flow::make_edge(*nodes_[static_cast<std::size_t>((step - 1) * columns + c)], node);
  }

  flow::graph graph_;
  flow::broadcast_node<flow::continue_msg> start_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

class Stencil {
 public:
  explicit Stencil(const peers::Options& options)
      : options_(options),
        limit_(oneapi::tbb::global_control::max_allowed_parallelism,
               static_cast<std::size_t>(options.workers)),
        rows_(options.columns),
        steps_(0),
        current_{options.isCheck, 0, 0},
        graph_(rows_, current_, options.columns, kGraphSteps) {}

  double rate() { return peers::rateOfThreads(options_.workers); }

  double run(peers::Point point) {
    rows_.fill();
    steps_ = point.steps;
    current_ = {options_.isCheck, point.iterations, 0};
    Graph rest(rows_, current_, options_.columns, point.steps % kGraphSteps);
    const auto start = std::chrono::steady_clock::now();
    while (current_.firstStep + kGraphSteps <= point.steps) {
      graph_.run();
      current_.firstStep += kGraphSteps;
    }
    rest.run();
    return peers::secondsSince(start);
  }

  std::vector<std::int64_t> values() { return rows_.values(steps_); }

 private:
  peers::Options options_;
  oneapi::tbb::global_control limit_;
  peers::Rows rows_;
  int steps_;
  Current current_;
  Graph graph_;
};

}  // namespace

int main(int argc, char** argv) {
  const peers::Options options = peers::optionsOf(argc, argv);
  Stencil stencil(options);
  return peers::runPoints(stencil, options);
}
