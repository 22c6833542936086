// SPDX-License-Identifier: BSD-3-Clause
// A user program at one end of a connection, as its End runs it.
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
  virtual void work(Time now) = 0;  // whatever else there is to do
  virtual bool transmit(SendEntry& out, Time now) = 0;
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual void expire(Time now) = 0;
  [[nodiscard]] virtual bool wants_close() const = 0;
  // The connection has ended: 0 closed by this side, else a negative errno. Nothing is called
  // after it but gone().
  virtual void ended(int error, Time now) = 0;
  virtual void gone() = 0;  // the Node has let go of it
  virtual void lost() = 0;  // the host went down, and all the user's memory with it
};

}  // namespace stp::sim
