// SPDX-License-Identifier: BSD-3-Clause
// A user program at one end of a connection. Its End calls these functions.
#pragma once

#include "stp/channel/layout.h"
#include "stp/node/node.h"

namespace stp::sim {

class End;

class Application {
 public:
  virtual ~Application() = default;
  // The connection is established. `end` lives until gone().
  virtual void opened(End& end, const VcInfo& info, Time now) = 0;
  virtual void receive(const ReceivedEntry& entry, Time now) = 0;
  virtual void work(Time now) = 0;  // called after receive(), for all other work
  virtual bool transmit(SendEntry& out, Time now) = 0;
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual void expire(Time now) = 0;
  [[nodiscard]] virtual bool wants_close() const = 0;
  // The connection has ended. `error`: 0 if this side closed it, else a negative errno. Only gone()
  // is called after it.
  virtual void ended(int error, Time now) = 0;
  virtual void gone() = 0;  // the Node has released the connection
  virtual void lost() = 0;  // the host went down: all memory of the program is lost
};

}  // namespace stp::sim
