// SPDX-License-Identifier: BSD-3-Clause
// A link that refuses every request.
#pragma once

#include <cerrno>
#include <new>

#include "libst/client/backend.h"

namespace stp::managed {

class NoLink final : public client::Backend {
 public:
  NoLink() {
    welcome({}, ipc::SharedMemory::lend("stp-client", sizeof(client::ClientPage)));
    new (&page()) client::ClientPage;
  }
  int exchange(ipc::RequestMessage& /*request*/, client::Payload& /*payload*/,
               ipc::ReplyMessage& /*reply*/) override {
    return -ENODEV;
  }
  void rung(Time /*now*/) override {}
  int attend(client::Condition /*condition*/, Time /*deadline*/) override { return -EAGAIN; }
  [[nodiscard]] int error() const override { return 0; }
};

}  // namespace stp::managed
