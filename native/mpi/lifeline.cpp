// The lifeline: see lifeline.h.
#include "lifeline.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/clock.h"

namespace headrace::mpi {
namespace {

constexpr std::int64_t kPatience = 10'000'000'000;  // nanoseconds for all ranks to connect
constexpr std::int32_t kGoodbye = -1;

struct Greeting {
  std::uint64_t token;
  std::int32_t rank;
  std::int32_t spare;
};

socklen_t unixName(std::uint64_t token, sockaddr_un& name) {
  std::memset(&name, 0, sizeof name);
  name.sun_family = AF_UNIX;
  const std::string text = "headrace-" + std::to_string(token);
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

bool waitFor(int socket, short what, std::int64_t until) {
  for (;;) {
    const std::int64_t left = until - now();
    if (left <= 0) return false;
    pollfd entry{socket, what, 0};
    const int count = ::poll(&entry, 1, static_cast<int>(left / 1000000) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

}  // namespace

Lifeline::~Lifeline() {
  for (const int socket : sockets_) {
    if (socket >= 0) ::close(socket);
  }
  if (listener_ >= 0) ::close(listener_);
}

bool Lifeline::listen(bool oneHost, Address& address, std::string& error) {
  std::memset(&address, 0, sizeof address);
  if (::getrandom(&address.token, sizeof address.token, 0) != sizeof address.token) {
    address.token =
        static_cast<std::uint64_t>(now()) ^ (static_cast<std::uint64_t>(getpid()) << 32);
  }
  gethostname(address.host, sizeof address.host - 1);
  listener_ = ::socket(oneHost ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool ok = listener_ >= 0;
  if (ok && oneHost) {
    sockaddr_un name;
    const socklen_t length = unixName(address.token, name);
    ok = ::bind(listener_, reinterpret_cast<sockaddr*>(&name), length) == 0;
  } else if (ok) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t length = sizeof name;
    ok = ::bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0 &&
         ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &length) == 0;
    address.port = ntohs(name.sin_port);
  }
  ok = ok && ::listen(listener_, 1024) == 0;
  if (!ok) error = std::string("cannot listen for the other ranks: ") + std::strerror(errno);
  return ok;
}

bool Lifeline::open(int rank, int size, const Address& address, std::string& error) {
  rank_ = rank;
  if (rank == 0) {
    const bool ok = accept(size, address.token, error);
    ::close(listener_);
    listener_ = -1;
    return ok;
  }
  return connect(rank, address, error);
}

bool Lifeline::accept(int size, std::uint64_t token, std::string& error) {
  sockets_.assign(static_cast<std::size_t>(size), -1);
  const std::int64_t until = now() + kPatience;
  for (int missing = size - 1; missing > 0;) {
    if (!waitFor(listener_, POLLIN, until)) {
      error = std::to_string(missing) + " ranks did not connect to rank 0";
      return false;
    }
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    Greeting greeting{};
    const bool said = waitFor(socket, POLLIN, until) &&
                      ::recv(socket, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting;
    if (!said || greeting.token != token || greeting.rank < 1 || greeting.rank >= size ||
        sockets_[static_cast<std::size_t>(greeting.rank)] >= 0) {
      ::close(socket);
      continue;
    }
    sockets_[static_cast<std::size_t>(greeting.rank)] = socket;
    --missing;
  }
  return true;
}

bool Lifeline::connect(int rank, const Address& address, std::string& error) {
  int socket = -1;
  if (address.port == 0) {
    socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name;
    const socklen_t length = unixName(address.token, name);
    if (socket >= 0 && ::connect(socket, reinterpret_cast<sockaddr*>(&name), length) != 0) {
      ::close(socket);
      socket = -1;
    }
  } else {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    if (::getaddrinfo(address.host, port.c_str(), &hints, &found) == 0) {
      for (const addrinfo* each = found; each != nullptr && socket < 0; each = each->ai_next) {
        socket = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
        if (socket >= 0 && ::connect(socket, each->ai_addr, each->ai_addrlen) != 0) {
          ::close(socket);
          socket = -1;
        }
      }
      ::freeaddrinfo(found);
    }
  }
  const Greeting greeting{address.token, rank, 0};
  if (socket < 0 || ::send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) {
    error =
        std::string("cannot connect to rank 0 on ") + address.host + ": " + std::strerror(errno);
    if (socket >= 0) ::close(socket);
    return false;
  }
  sockets_.assign(1, socket);
  return true;
}

int Lifeline::lostRank() {
  if (lost_ >= 0 || left_) return lost_;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    int& socket = sockets_[i];
    if (socket < 0) continue;
    std::int32_t word = 0;
    const ssize_t count = ::recv(socket, &word, sizeof word, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) continue;
    if (count == static_cast<ssize_t>(sizeof word) && word == kGoodbye) {
      ::close(socket);
      socket = -1;
      continue;
    }
    // Rank 0 names the lost rank; anything else is the end of the peer itself.
    lost_ = count == static_cast<ssize_t>(sizeof word) && word >= 0 ? word : static_cast<int>(i);
    report(lost_);
    break;
  }
  return lost_;
}

void Lifeline::report(int rank) {
  if (rank_ != 0) return;
  for (const int socket : sockets_) {
    if (socket >= 0) ::send(socket, &rank, sizeof rank, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void Lifeline::leave() {
  if (left_) return;
  left_ = true;
  for (int& socket : sockets_) {
    if (socket < 0) continue;
    ::send(socket, &kGoodbye, sizeof kGoodbye, MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(socket);
    socket = -1;
  }
}

}  // namespace headrace::mpi
