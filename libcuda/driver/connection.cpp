#include "connection.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "failure.hpp"

namespace simt::driver {
namespace {

/// How long a reply is polled for before the thread sleeps until it arrives: a core that sleeps takes longer
/// to wake up than simt takes for most replies.
constexpr std::chrono::microseconds patience{50};

[[noreturn]] void gone() {
  fail(CUDA_ERROR_SYSTEM_NOT_READY, "simt, which started this program, does not answer");
}

}  // namespace

Connection::Connection() {
  const char* path = std::getenv("SIMT_EXEC_SOCKET");
  if (!path)
    fail(CUDA_ERROR_NO_DEVICE,
         "this CUDA library belongs to simt: start the program with `simt exec -- ...`");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view text(path);
  if (text.size() >= sizeof address.sun_path) gone();
  text.copy(address.sun_path, text.size());
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (socket_ >= 0) close(socket_);
    gone();
  }
}

Connection::~Connection() {
  if (file_ >= 0) close(file_);
  close(socket_);
}

void Connection::write(Bytes message) {
  uint64_t size = message.size();
  iovec parts[] = {{&size, sizeof size}, {message.data(), message.size()}};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  while (header.msg_iovlen > 0) {
    ssize_t sent = sendmsg(socket_, &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) gone();
    while (header.msg_iovlen > 0 && static_cast<size_t>(sent) >= header.msg_iov->iov_len) {
      sent -= static_cast<ssize_t>(header.msg_iov->iov_len);
      ++header.msg_iov;
      --header.msg_iovlen;
    }
    if (header.msg_iovlen > 0) {
      header.msg_iov->iov_base = static_cast<char*>(header.msg_iov->iov_base) + sent;
      header.msg_iov->iov_len -= static_cast<size_t>(sent);
    }
  }
}

void Connection::read(std::byte* to, size_t size) {
  while (size > 0) {
    iovec part{to, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) gone();
    if (const cmsghdr* c = CMSG_FIRSTHDR(&header); c && c->cmsg_type == SCM_RIGHTS) {
      if (file_ >= 0) close(file_);
      std::memcpy(&file_, CMSG_DATA(c), sizeof file_);
    }
    to += got;
    size -= static_cast<size_t>(got);
  }
}

Reader Connection::receive() {
  const auto end = std::chrono::steady_clock::now() + patience;
  pollfd reply{socket_, POLLIN, 0};
  while (poll(&reply, 1, 0) == 0 && std::chrono::steady_clock::now() < end) sched_yield();
  uint64_t size = 0;
  read(reinterpret_cast<std::byte*>(&size), sizeof size);
  received_.resize(size);
  read(received_.data(), size);
  return Reader(received_);
}

int Connection::take_file() {
  return std::exchange(file_, -1);
}

}  // namespace simt::driver
