// The stencil of Task Bench by hand, with non-blocking MPI: every rank has some columns. In each step it sends its outer
// columns to its neighbours and receives theirs (MPI_Isend, MPI_Irecv per neighbour, one MPI_Waitall), then runs the kernel
// of each column. The kernel is that of Headrace's benchmarks (native/kernels/basic.cpp). Outputs are 16 bytes: step and
// column, which the readers compare, so a wrong exchange ends the program.
//
// usage: mpirun -n RANKS mpi_stencil COLUMNS ITERATIONSxSTEPS...    (columns per rank)
// Rank 0 prints a JSON array: seconds of each point, from one barrier to the next.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernels/kernels.h"

namespace {

struct Output {
  double step;
  double column;
};

void compare(const Output& input, int step, int column) {
  if (input.step == step && input.column == column) return;
  std::fprintf(stderr, "found (%g, %g) for (%d, %d)\n", input.step, input.column, step, column);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

class Stencil {
 public:
  explicit Stencil(int columns) : columns_(columns) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  double run(std::int64_t iterations, int steps) {
    // Element 0 and the last one are the neighbours' columns.
    const auto width = static_cast<std::size_t>(columns_) + 2;
    std::vector<Output> from(width);
    std::vector<Output> to(width);
    const int first = rank_ * columns_;
    for (int c = 1; c <= columns_; ++c) from[static_cast<std::size_t>(c)] = {-1, first + c - 1.0};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
      exchange(from);
      for (int c = 1; c <= columns_; ++c) {
        const int column = first + c - 1;
        for (int d = -1; d <= 1; ++d) {
          const int other = column + d;
          if (other < 0 || other >= ranks_ * columns_) continue;
          compare(from[static_cast<std::size_t>(c + d)], step - 1, other);
        }
        headrace::computeBound(iterations);
        to[static_cast<std::size_t>(c)] = {static_cast<double>(step), static_cast<double>(column)};
      }
      std::swap(from, to);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
  }

  bool isFirst() const { return rank_ == 0; }

 private:
  void exchange(std::vector<Output>& row) {
    MPI_Request requests[4];
    int count = 0;
    const auto last = static_cast<std::size_t>(columns_);
    if (rank_ > 0) {
      MPI_Irecv(&row[0], 2, MPI_DOUBLE, rank_ - 1, 0, MPI_COMM_WORLD, &requests[count++]);
      MPI_Isend(&row[1], 2, MPI_DOUBLE, rank_ - 1, 0, MPI_COMM_WORLD, &requests[count++]);
    }
    if (rank_ < ranks_ - 1) {
      MPI_Irecv(&row[last + 1], 2, MPI_DOUBLE, rank_ + 1, 0, MPI_COMM_WORLD, &requests[count++]);
      MPI_Isend(&row[last], 2, MPI_DOUBLE, rank_ + 1, 0, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }

  int columns_;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) {
    std::fprintf(stderr, "usage: mpirun -n RANKS %s COLUMNS ITERATIONSxSTEPS...\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Stencil stencil(std::atoi(argv[1]));
  // Connections are made, and the kernel's code is loaded.
  stencil.run(4, 100);
  for (int i = 2; i < argc; ++i) {
    char* rest = nullptr;
    const std::int64_t iterations = std::strtoll(argv[i], &rest, 10);
    const double seconds = stencil.run(iterations, std::atoi(rest + 1));
    if (stencil.isFirst()) std::printf("%s%.9f", i == 2 ? "[" : ",", seconds);
  }
  if (stencil.isFirst()) std::printf("]\n");
  MPI_Finalize();
  return 0;
}
