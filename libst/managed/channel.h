// SPDX-License-Identifier: BSD-3-Clause
// Owns the channel of a connection: the Virtual Connection, the rings that it shares with the Node,
// and the requests to the Node about it. It promises that, once let_go() is true, no frame of the
// connection reads memory any more.
#pragma once

#include <memory>

#include "libst/client/backend.h"
#include "stp/channel/user_side.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

class Channel {
 public:
  explicit Channel(client::Backend& backend) : backend_(backend) {}

  // The channel that a request to connect or to accept has made.
  void take(const client::Reply& made, std::shared_ptr<service::SharedMemory> memory);
  [[nodiscard]] bool is_taken() const { return vc_ != kNoneId; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] ChannelState state() const { return rings_.state(); }
  // kFailed: why; a negative errno.
  [[nodiscard]] int error() const { return rings_.error() < 0 ? rings_.error() : -ECONNABORTED; }
  // What the Node knows of the Virtual Connection. Returns 0 or a negative errno.
  int query(client::Reply& info) const;

  // There are headers that have not been received.
  [[nodiscard]] bool readable() const { return rings_.readable(); }
  // Gives the Sequencer everything that the Node has to say.
  void receive(Sequencer& sequencer, Time now);
  // Gives the Node the requests of the Sequencer, as far as there is room. Returns true if there
  // were some: the caller then tells the backend.
  bool send(Sequencer& sequencer, Time now);

  // Closes the Virtual Connection: at once, or after all requests. The peer learns of `option`.
  void close(bool at_once, const service::WireOption& option);
  [[nodiscard]] bool let_go() const;
  // No news of it are wanted any more.
  void leave() { rings_.leave(); }

 private:
  client::Backend& backend_;
  VcId vc_ = kNoneId;
  std::uint32_t number_ = 0;
  std::shared_ptr<service::SharedMemory> memory_;
  UserChannel rings_;
};

}  // namespace stp::managed
