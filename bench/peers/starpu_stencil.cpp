// The stencil with StarPU (stencil.h): the main thread submits all tasks, whose dependencies StarPU derives from the data. So
// many tasks may be submitted and not over; a graph of all steps does not fit into the caches.
#include <starpu.h>

#include "stencil.h"

namespace {

constexpr int kMostSubmitted = 4096;

/// A task of the two rows; its step is counted from 0 in each run.
struct Place {
  bool isCheck;
  std::int64_t iterations;
  std::int64_t step;
  std::int64_t column;
};

void execute(void* buffers[], void* argument) {
  const auto* place = static_cast<const Place*>(argument);
  auto cell = [buffers](int i) {
    return reinterpret_cast<peers::Cell*>(STARPU_VARIABLE_GET_PTR(buffers[i]));
  };
  peers::runTask(place->iterations, place->isCheck, cell(0), cell(1), cell(2), cell(3), place->step,
                 place->column);
}

class Stencil {
 public:
  explicit Stencil(const peers::Options& options)
      : options_(options), rows_(options.columns), steps_(0) {
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = options.workers;
    conf.ncuda = 0;
    conf.nopencl = 0;
    if (starpu_init(&conf) != 0) {
      std::fprintf(stderr, "starpu_init failed\n");
      std::exit(1);
    }
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = execute;
    codelet_.nbuffers = 4;
    codelet_.modes[0] = STARPU_W;
    for (int i = 1; i < 4; ++i) codelet_.modes[i] = STARPU_R;
    for (int parity = 0; parity < 2; ++parity) {
      handles_[parity].resize(static_cast<std::size_t>(options.columns));
      for (int c = 0; c < options.columns; ++c)
        starpu_variable_data_register(&handle(parity, c), STARPU_MAIN_RAM,
                                      reinterpret_cast<std::uintptr_t>(rows_.at(parity, c)),
                                      sizeof(peers::Cell));
    }
  }

  ~Stencil() {
    for (auto& row : handles_)
      for (starpu_data_handle_t each : row) starpu_data_unregister(each);
    starpu_shutdown();
  }

  double rate() {
    // Workers without tasks spin.
    starpu_pause();
    const double rate = peers::rateOfThreads(options_.workers);
    starpu_resume();
    return rate;
  }

  double run(peers::Point point) {
    rows_.fill();
    steps_ = point.steps;
    std::vector<Place> places;
    for (int step = 0; step < (options_.isCheck ? point.steps : 1); ++step)
      for (int c = 0; c < options_.columns; ++c)
        places.push_back({options_.isCheck, point.iterations, step, c});
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < point.steps; ++step) {
      for (int c = 0; c < options_.columns; ++c) {
        // Only the checked tasks need to know their step.
        const int row = options_.isCheck ? step : 0;
        submit(step, c, &places[static_cast<std::size_t>(row * options_.columns + c)]);
      }
      if (step % 64 == 0) starpu_task_wait_for_n_submitted(kMostSubmitted);
    }
    starpu_task_wait_for_all();
    return peers::secondsSince(start);
  }

  std::vector<std::int64_t> values() {
    std::vector<std::int64_t> found;
    for (int c = 0; c < options_.columns; ++c) {
      starpu_data_acquire(handle(steps_, c), STARPU_R);
      found.push_back(rows_.at(steps_, c)->value);
      starpu_data_release(handle(steps_, c));
    }
    return found;
  }

 private:
  starpu_data_handle_t& handle(int step, int column) {
    const int inside = std::min(std::max(column, 0), options_.columns - 1);
    return handles_[step % 2][static_cast<std::size_t>(inside)];
  }

  void submit(int step, int column, Place* place) {
    starpu_task* task = starpu_task_create();
    task->cl = &codelet_;
    task->cl_arg = place;
    task->cl_arg_size = sizeof(Place);
    task->handles[0] = handle(step + 1, column);
    for (int d = -1; d <= 1; ++d) task->handles[2 + d] = handle(step, column + d);
    if (starpu_task_submit(task) == 0) return;
    std::fprintf(stderr, "starpu_task_submit failed\n");
    std::exit(1);
  }

  peers::Options options_;
  peers::Rows rows_;
  int steps_;
  starpu_codelet codelet_;
  std::vector<starpu_data_handle_t> handles_[2];
};

}  // namespace

int main(int argc, char** argv) {
  const peers::Options options = peers::optionsOf(argc, argv);
  Stencil stencil(options);
  return peers::runPoints(stencil, options);
}
