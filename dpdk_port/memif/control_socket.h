// SPDX-License-Identifier: BSD-3-Clause
// The socket by which the two sides of a memif agree. No call waits.
#pragma once

#include <sys/socket.h>

#include <string>

#include "dpdk_port/memif/closer.h"
#include "dpdk_port/memif/protocol.h"

namespace stp::port::memif {

// The peer hears at once that this side closes it, though the Closer may take long.
class ControlSocket : public SharedDescriptor {
 public:
  using SharedDescriptor::SharedDescriptor;
  ControlSocket() = default;
  ControlSocket(ControlSocket&&) noexcept = default;
  ControlSocket& operator=(ControlSocket&&) noexcept = default;
  ~ControlSocket() {
    if (*this) ::shutdown(get(), SHUT_RDWR);
  }
};

// Empty: `error` says why. A socket that a killed server has left behind is replaced.
FileDescriptor listen_at(const std::string& path, std::string& error);
FileDescriptor connect_to(const std::string& path, std::string& error);
// Empty: nobody waits. Those that have not been accepted are closed with the listener.
ControlSocket accept_from(const ControlSocket& listener);

enum class Came { kNothing, kMessage, kEnd };
// kEnd: the peer has gone, or sends what is no message. Descriptors that come with it are for the
// Closer of the socket; `attached` is one that a message may have.
Came receive_message(const ControlSocket& socket, Message& message, SharedDescriptor& attached);
// False: it has gone, or takes nothing more. `attached`: -1, or a descriptor to hand over.
bool send_message(const ControlSocket& socket, const Message& message, int attached = -1);
// Tells the peer why this side ends it.
void send_disconnect(const ControlSocket& socket, const std::string& reason);

// Text of a field that need not end with 0, without what a terminal would obey.
std::string text_of(const char* field, std::size_t size);

}  // namespace stp::port::memif
