// What the peer programs share: the stencil of Task Bench with three dependencies per task, its command line, and what they
// print. Each program offers a class with
//   rate()        iterations per second of one core while every worker computes and no runtime is in sight
//   run(point)    seconds of so many steps of kernels of so many iterations, ends of the row included; 0: empty tasks
//   values()      the row after the last step, where the results are checked
// Measured tasks run the compute-bound kernel of Headrace's benchmarks (native/kernels/basic.cpp) and, like there, do not touch
// the data. With --check they combine their inputs as well; bench/peer-programs.ts computes the same on its own.
//
// usage: PROGRAM [--check] WORKERS COLUMNS ITERATIONSxSTEPS...
// prints a JSON array with an entry per point: {"seconds": of the point, "rate": the better one before and after it}, or with
// --check the values of the row
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/kernels.h"

namespace peers {

/// 16 bytes, as in Task Bench.
struct Cell {
  std::int64_t value;
  std::int64_t unused;
};

struct Point {
  std::int64_t iterations;
  int steps;
};

struct Options {
  bool isCheck = false;
  int workers = 0;
  int columns = 0;
  std::vector<Point> points;
};

/// Between measurements every worker computes so long: some milliseconds.
constexpr std::int64_t kRateIterations = 96 * 65536;
/// Values stay exact in every number format of JSON.
constexpr std::int64_t kModulus = 1000003;

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline std::int64_t firstValue(int column) { return 11 * column + 1; }

/// One task: at the ends of the row a missing neighbour is the column itself.
inline void runTask(std::int64_t iterations, bool isCheck, Cell* to, const Cell* left,
                    const Cell* middle, const Cell* right, std::int64_t step, std::int64_t column) {
  if (iterations > 0) headrace::computeBound(iterations);
  if (!isCheck) return;
  const std::int64_t sum = left->value + 3 * middle->value + 5 * right->value;
  to->value = (sum + 7 * step + column) % kModulus;
}

/// Two rows in shared memory: step t reads row t % 2 and writes the other one.
class Rows {
 public:
  explicit Rows(int columns)
      : columns_(columns),
        cells_{std::vector<Cell>(static_cast<std::size_t>(columns)),
               std::vector<Cell>(static_cast<std::size_t>(columns))} {}

  void fill() {
    for (int c = 0; c < columns_; ++c) *at(0, c) = {firstValue(c), 0};
  }

  Cell* at(int step, int column) {
    const int inside = std::min(std::max(column, 0), columns_ - 1);
    return &cells_[step % 2][static_cast<std::size_t>(inside)];
  }

  std::vector<std::int64_t> values(int steps) {
    std::vector<std::int64_t> found;
    for (int c = 0; c < columns_; ++c) found.push_back(at(steps, c)->value);
    return found;
  }

 private:
  int columns_;
  std::vector<Cell> cells_[2];
};

inline double rateOfThreads(int workers) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([] { headrace::computeBound(kRateIterations); });
  for (std::thread& thread : threads) thread.join();
  return kRateIterations / secondsSince(start);
}

/// Reads the command line; a wrong one ends the program with code 2.
inline Options optionsOf(int argc, char** argv) {
  Options options;
  int next = 1;
  if (next < argc && std::strcmp(argv[next], "--check") == 0) {
    options.isCheck = true;
    ++next;
  }
  if (argc - next >= 3) {
    options.workers = std::atoi(argv[next]);
    options.columns = std::atoi(argv[next + 1]);
  }
  for (int i = next + 2; i < argc; ++i) {
    long long iterations = 0;
    int steps = 0;
    if (std::sscanf(argv[i], "%lldx%d", &iterations, &steps) == 2 && iterations >= 0 && steps > 0)
      options.points.push_back({iterations, steps});
    else
      options.workers = 0;
  }
  if (options.workers > 0 && options.columns > 0) return options;
  std::fprintf(stderr, "usage: %s [--check] WORKERS COLUMNS ITERATIONSxSTEPS...\n", argv[0]);
  std::exit(2);
}

inline void printValues(bool isFirst, const std::vector<std::int64_t>& values) {
  std::printf("%s[", isFirst ? "[" : ",");
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%s%lld", i == 0 ? "" : ",", static_cast<long long>(values[i]));
  std::printf("]");
}

/// Runs all points; `isPrinter` is false on ranks that print nothing.
template <class Stencil>
int runPoints(Stencil& stencil, const Options& options, bool isPrinter = true) {
  // Threads are started, connections are made, and the kernel's code is loaded.
  stencil.run({4, 100});
  bool isFirst = true;
  double before = options.isCheck ? 0 : stencil.rate();
  for (const Point& point : options.points) {
    const double seconds = stencil.run(point);
    if (options.isCheck) {
      const std::vector<std::int64_t> values = stencil.values();
      if (isPrinter) printValues(isFirst, values);
    } else {
      const double after = stencil.rate();
      if (isPrinter)
        std::printf("%s{\"seconds\":%.9f,\"rate\":%.0f}", isFirst ? "[" : ",", seconds,
                    std::max(before, after));
      before = after;
    }
    isFirst = false;
  }
  if (isPrinter) std::printf("]\n");
  return 0;
}

}  // namespace peers
