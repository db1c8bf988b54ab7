// The stencil with OpenMP tasks (stencil.h): one thread makes all tasks with their depend clauses, and executes some of them.
#include <omp.h>

#include "stencil.h"

namespace {

using peers::Cell;

class Stencil {
 public:
  explicit Stencil(const peers::Options& options)
      : options_(options), rows_(options.columns), steps_(0) {
    omp_set_num_threads(options.workers);
  }

  double rate() {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel
    headrace::computeBound(peers::kRateIterations);
    return peers::kRateIterations / peers::secondsSince(start);
  }

  double run(peers::Point point) {
    rows_.fill();
    steps_ = point.steps;
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel
#pragma omp single
    for (int step = 0; step < point.steps; ++step)
      for (int column = 0; column < options_.columns; ++column)
        insert(point.iterations, step, column);
    return peers::secondsSince(start);
  }

  std::vector<std::int64_t> values() { return rows_.values(steps_); }

 private:
  void insert(std::int64_t iterations, int step, int column) {
    Cell* const to = rows_.at(step + 1, column);
    const Cell* const left = rows_.at(step, column - 1);
    const Cell* const middle = rows_.at(step, column);
    const Cell* const right = rows_.at(step, column + 1);
    const bool isCheck = options_.isCheck;
#pragma omp task depend(out : to[0]) depend(in : left[0], middle[0], right[0])
    peers::runTask(iterations, isCheck, to, left, middle, right, step, column);
  }

  peers::Options options_;
  peers::Rows rows_;
  int steps_;
};

}  // namespace

int main(int argc, char** argv) {
  const peers::Options options = peers::optionsOf(argc, argv);
  Stencil stencil(options);
  return peers::runPoints(stencil, options);
}
