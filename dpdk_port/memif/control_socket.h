// SPDX-License-Identifier: BSD-3-Clause
// The socket by which the two sides of a memif agree. No call waits.
#pragma once

#include <string>

#include "dpdk_port/memif/file_descriptor.h"
#include "dpdk_port/memif/protocol.h"

namespace stp::port::memif {

// Empty: `error` says why. A socket that a killed server has left behind is replaced.
FileDescriptor listen_at(const std::string& path, std::string& error);
FileDescriptor connect_to(const std::string& path, std::string& error);
FileDescriptor accept_from(const FileDescriptor& listener);  // empty: nobody waits

enum class Came { kNothing, kMessage, kEnd };
// kEnd: the peer has gone, or sends what is no message.
Came receive_message(const FileDescriptor& socket, Message& message, FileDescriptor& attached);
// False: it has gone, or takes nothing more. `attached`: -1, or a descriptor to hand over.
bool send_message(const FileDescriptor& socket, const Message& message, int attached = -1);
// Tells the peer why this side ends it.
void send_disconnect(const FileDescriptor& socket, const std::string& reason);

// Text of a field that need not end with 0, without what a terminal would obey.
std::string text_of(const char* field, std::size_t size);

}  // namespace stp::port::memif
