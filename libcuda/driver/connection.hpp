#pragma once
#include <cstddef>
#include <cstdint>

#include "requests.hpp"

namespace simt::driver {

/// The socket to the simt process that started this program, and the device memory they share. Not
/// thread-safe: callers hold the process's lock.
class Connection {
 public:
  /// Connects to the socket that the environment variable SIMT_EXEC_SOCKET names. Throws Failure.
  Connection();
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends a request that has no reply. Throws Failure if simt is gone.
  template <class Request>
    requires std::is_void_v<typename Request::Reply>
  void send(const Request& request) {
    write(encoded(request));
  }
  /// Sends a request and waits for its reply. Throws Failure if simt is gone. make_host_call: makes the call
  /// of a function of the program, by its number, that simt asks for before it replies to what waits for
  /// work.
  template <class Request>
  typename Request::Reply call(const Request& request) {
    write(encoded(request));
    typename Request::Reply reply{};
    receive().read(reply);
    return reply;
  }
  template <class Request, class HostCall>
  typename Request::Reply call(const Request& request, const HostCall& make_host_call) {
    static_assert(!std::integral<typename Request::Reply> || std::same_as<typename Request::Reply, bool>);
    write(encoded(request));
    Reader reader = receive();
    while (reader.at_number()) {
      uint64_t number = 0;
      reader.read(number);
      make_host_call(number);
      send(CalledRequest{});
      reader = receive();
    }
    typename Request::Reply reply{};
    reader.read(reply);
    return reply;
  }
  /// The file descriptor received with the last message, now owned by the caller; -1 if there was none.
  int take_file();

 private:
  void write(Bytes message);
  /// Of the next message, until there is another one.
  Reader receive();
  void read(std::byte* to, size_t size);

  int socket_ = -1;
  int file_ = -1;
  Bytes received_;
};

}  // namespace simt::driver
