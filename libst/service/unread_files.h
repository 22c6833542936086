// SPDX-License-Identifier: BSD-3-Clause
// Descriptors in messages of a Unix socket that nobody has read. Whoever closes the socket closes
// them too, and that may block for ever. A socket without any closes at once.
#pragma once

namespace stp::service {

// Whether unread messages of a SOCK_SEQPACKET socket have descriptors attached; also true if that
// cannot be found out in a few steps. Reads messages that have none. Never blocks, and closes no
// descriptor. Call after shutdown(): no message arrives any more.
bool has_unread_files(int socket);

// Whether peers may attach descriptors to messages from now on. For a listening socket: before it
// is accepted, a peer may not either. Linux before 6.16 knows no such choice: there they always
// may.
void permit_files(int socket, bool permitted);
// Whether they may not: if they never might, no message has any.
bool refuses_files(int socket);

}  // namespace stp::service
