// SPDX-License-Identifier: BSD-3-Clause
// Serves every sender that connects, each in a thread of its own.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "tools/files/file_receiver.h"
#include "tools/files/link.h"

namespace stp::files {

class Receiver {
 public:
  // At once; further senders wait for their turn.
  static constexpr std::size_t kMaxSenders = 16;

  Receiver(const std::string& address, ReceiverContext& context);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Until the program is to stop, or with `once` until the first sender has been served. True:
  // every file that any sender began is there.
  bool run(bool once);

 private:
  struct Place {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  // nullptr: the program is to stop.
  stm_connection_t await_request();
  void begin(stm_connection_t request);
  void serve(stm_connection_t request);
  void reap(bool all);

  ReceiverContext& context_;
  Link link_;
  Queue requests_;
  stm_listener_t listener_ = nullptr;
  std::list<Place> places_;
  std::mutex mutex_;  // of the following
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
