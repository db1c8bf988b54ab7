// The stencil by hand (stencil.h), with non-blocking MPI: every rank has its share of the columns. In each step it sends its
// outer columns to its neighbours and receives theirs (MPI_Isend, MPI_Irecv per neighbour, one MPI_Waitall), then runs the
// kernel of each column. WORKERS are the ranks. Rank 0 prints, and times go from one barrier to the next.
#include <mpi.h>

#include <utility>

#include "stencil.h"

namespace {

using peers::Cell;

class Stencil {
 public:
  explicit Stencil(const peers::Options& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    if (ranks_ != options.workers || options.columns % ranks_ != 0) {
      std::fprintf(stderr, "%d ranks cannot share %d columns as %d workers\n", ranks_,
                   options.columns, options.workers);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    columns_ = options.columns / ranks_;
    // Element 0 and the last one are the neighbours' columns.
    from_.resize(static_cast<std::size_t>(columns_) + 2);
    to_.resize(from_.size());
  }

  double rate() {
    const double start = begin();
    headrace::computeBound(peers::kRateIterations);
    MPI_Barrier(MPI_COMM_WORLD);
    return peers::kRateIterations / (MPI_Wtime() - start);
  }

  double run(peers::Point point) {
    const int first = rank_ * columns_;
    const auto last = static_cast<std::size_t>(columns_);
    for (int c = 1; c <= columns_; ++c)
      from_[static_cast<std::size_t>(c)] = {peers::firstValue(first + c - 1), 0};
    const double start = begin();
    for (int step = 0; step < point.steps; ++step) {
      exchange(from_);
      if (rank_ == 0) from_[0] = from_[1];
      if (rank_ == ranks_ - 1) from_[last + 1] = from_[last];
      for (std::size_t c = 1; c <= last; ++c)
        peers::runTask(point.iterations, options_.isCheck, &to_[c], &from_[c - 1], &from_[c],
                       &from_[c + 1], step, first + static_cast<std::int64_t>(c) - 1);
      std::swap(from_, to_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
  }

  /// On rank 0 all columns.
  std::vector<std::int64_t> values() {
    std::vector<std::int64_t> own;
    for (int c = 1; c <= columns_; ++c) own.push_back(from_[static_cast<std::size_t>(c)].value);
    std::vector<std::int64_t> all(static_cast<std::size_t>(options_.columns));
    MPI_Gather(own.data(), columns_, MPI_INT64_T, all.data(), columns_, MPI_INT64_T, 0,
               MPI_COMM_WORLD);
    return all;
  }

  bool isFirst() const { return rank_ == 0; }

 private:
  static double begin() {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
  }

  void exchange(std::vector<Cell>& row) {
    MPI_Request requests[4];
    int count = 0;
    const auto last = static_cast<std::size_t>(columns_);
    auto receive = [&](std::size_t at, int rank) {
      MPI_Irecv(&row[at], sizeof(Cell), MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[count++]);
    };
    auto send = [&](std::size_t at, int rank) {
      MPI_Isend(&row[at], sizeof(Cell), MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[count++]);
    };
    if (rank_ > 0) {
      receive(0, rank_ - 1);
      send(1, rank_ - 1);
    }
    if (rank_ < ranks_ - 1) {
      receive(last + 1, rank_ + 1);
      send(last, rank_ + 1);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }

  peers::Options options_;
  int columns_ = 0;
  int rank_ = 0;
  int ranks_ = 1;
  std::vector<Cell> from_;
  std::vector<Cell> to_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const peers::Options options = peers::optionsOf(argc, argv);
  Stencil stencil(options);
  const int code = peers::runPoints(stencil, options, stencil.isFirst());
  MPI_Finalize();
  return code;
}
