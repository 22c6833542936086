// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/unread_files.h"

#include <sys/socket.h>

#include <cerrno>

// Older kernel headers lack it.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace stp::service {
namespace {

enum class Unread { kNothing, kError, kBytes, kFiles, kUnknown };

// Looks at the first unread message. The credentials that the kernel adds to each tell a message
// without bytes from the end. There is room for them alone, so the kernel hands out no descriptor
// and reports those that it left out.
Unread first_unread(int socket) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0)
    return errno == ECONNRESET ? Unread::kError : Unread::kUnknown;  // reported once
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Unread::kFiles;
  return CMSG_FIRSTHDR(&message) == nullptr ? Unread::kNothing : Unread::kBytes;
}

}  // namespace

bool has_unread_files(int socket) {
  constexpr int kMostMessages = 16, kOn = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn) != 0) return true;
  for (int i = 0; i < kMostMessages; ++i) {
    const auto first = first_unread(socket);
    if (first == Unread::kError) continue;
    if (first != Unread::kBytes) return first != Unread::kNothing;
    msghdr message{};
    [[maybe_unused]] const auto read = ::recvmsg(socket, &message, MSG_DONTWAIT);
  }
  return true;
}

void permit_files(int socket, bool permitted) {
  const int value = permitted ? 1 : 0;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof value);
}

bool refuses_files(int socket) {
  int value = 1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, &size) == 0 && value == 0;
}

}  // namespace stp::service
