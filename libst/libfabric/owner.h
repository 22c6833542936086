// SPDX-License-Identifier: BSD-3-Clause
// Who is told of what happens on the link. All calls come under the link's mutex.
#pragma once

#include "libst/include/stp/managed.h"

namespace stp::fi {

struct Op;
struct RxBuffer;

// Of a connection, and of the operations on it.
class Owner {
 public:
  // The connection is up, or has ended.
  virtual void connection_event(const stm_event_t& event) = 0;
  // Connecting could not begin.
  virtual void not_dialed(int status) = 0;
  // A message has arrived in `buffer`, or the receive has failed.
  virtual void arrived(RxBuffer& buffer, const stm_event_t& event) = 0;
  // The peer asks to read.
  virtual void serve(const stm_event_t& event) = 0;
  // A part of the operation has ended.
  virtual void part_done(Op& op, int status) = 0;

 protected:
  ~Owner() = default;
};

// Of connection requests.
class Acceptor {
 public:
  virtual void requested(stm_connection_t connection) = 0;

 protected:
  ~Acceptor() = default;
};

}  // namespace stp::fi
