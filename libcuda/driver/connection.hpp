#pragma once
#include <cstddef>
#include <cstdint>

#include "wire.hpp"

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

  /// Sends a message that has no reply: [operation, arguments...].
  template <class... Arguments>
  void send(const char* operation, const Arguments&... arguments) {
    write(array_of(operation, arguments...));
  }
  /// Sends a message and waits for its reply. Throws Failure if simt is gone.
  template <class... Arguments>
  Value call(const char* operation, const Arguments&... arguments) {
    write(array_of(operation, arguments...));
    return receive();
  }
  Value receive();
  /// The file descriptor received with the last message, now owned by the caller; -1 if there was none.
  int take_file();

 private:
  void write(Bytes message);
  void read(std::byte* to, size_t size);

  int socket_ = -1;
  int file_ = -1;
  Bytes received_;
};

}  // namespace simt::driver
