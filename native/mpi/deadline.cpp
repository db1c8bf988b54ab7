// See deadline.h.
#include "deadline.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "core/clock.h"

namespace headrace::mpi::deadline {
namespace {

constexpr int kSignals = 32;
/// The end of a process by signal n, as shells count it.
constexpr int kExitBase = 128;

struct Watched {
  /// The time at which the process has to be over; 0: no signal came.
  std::atomic<std::int64_t> until{0};
  std::atomic<std::int64_t> patience{0};
  struct sigaction before {};
  bool on = false;
};

std::array<Watched, kSignals>& table() {
  static auto* all = new std::array<Watched, kSignals>();
  return *all;
}

sem_t& rung() {
  static sem_t* semaphore = [] {
    auto* made = new sem_t;
    sem_init(made, 0, 0);
    return made;
  }();
  return *semaphore;
}

void take(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  Watched& watched = table()[static_cast<std::size_t>(signal)];
  std::int64_t none = 0;
  watched.until.compare_exchange_strong(none, now() + watched.patience.load());
  sem_post(&rung());
  const struct sigaction& before = watched.before;
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  errno = saved;
}

/// The signal whose time is over first, or -1.
int next(std::int64_t& until) {
  int found = -1;
  for (int signal = 1; signal < kSignals; ++signal) {
    const std::int64_t its = table()[static_cast<std::size_t>(signal)].until.load();
    if (its == 0 || (found >= 0 && its >= until)) continue;
    found = signal;
    until = its;
  }
  return found;
}

void serve() {
  pthread_setname_np(pthread_self(), "hr-deadline");
  for (;;) {
    std::int64_t until = 0;
    const int signal = next(until);
    if (signal < 0) {
      while (sem_wait(&rung()) != 0 && errno == EINTR) continue;
      continue;
    }
    const std::int64_t left = until - now();
    if (left <= 0) _exit(kExitBase + signal);
    const timespec pause{static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
    nanosleep(&pause, nullptr);
  }
}

void startThread() {
  static const bool started = [] {
    // The thread takes no signals itself.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread(serve).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return true;
  }();
  static_cast<void>(started);
}

bool isWatchable(int signal) { return signal > 0 && signal < kSignals; }

}  // namespace

void watch(int signal, int milliseconds) {
  if (!isWatchable(signal)) return;
  Watched& watched = table()[static_cast<std::size_t>(signal)];
  rung();
  watched.until.store(0);
  watched.patience.store(static_cast<std::int64_t>(milliseconds) * 1'000'000);
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  // A handler that was installed after this one may call it, and this one would call that one: it stays then.
  if (watched.on && current.sa_handler != watched.before.sa_handler) return;
  startThread();
  watched.before = current;
  struct sigaction ours = current;
  ours.sa_flags = (current.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_RESTART;
  ours.sa_sigaction = take;
  watched.on = sigaction(signal, &ours, nullptr) == 0;
}

void heard(int signal) {
  if (isWatchable(signal)) table()[static_cast<std::size_t>(signal)].until.store(0);
}

void leave(int signal) {
  if (!isWatchable(signal)) return;
  Watched& watched = table()[static_cast<std::size_t>(signal)];
  watched.until.store(0);
  if (!watched.on) return;
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  // Another handler may have been installed over this one and may call it: it stays then, and does no harm.
  if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != take) return;
  sigaction(signal, &watched.before, nullptr);
  watched.on = false;
}

}  // namespace headrace::mpi::deadline
