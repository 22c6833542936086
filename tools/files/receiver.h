// SPDX-License-Identifier: BSD-3-Clause
// Serves every sender that connects, each in a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/files/connection.h"
#include "tools/files/transfer_receiver.h"

namespace stp::files {

class Receiver {
 public:
  // At once; further senders wait for their turn.
  static constexpr unsigned kMaxSenders = 16;

  Receiver(const std::string& address, ReceiverContext& context);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Until close(), or with `once` until the first sender has been served. True: every file that
  // any sender began is there.
  bool run(bool once);
  // From another thread: lets the senders hear why, then ends run().
  void close();

 private:
  struct Place {
    bool taken = false;
    std::thread thread;
  };
  std::size_t take_place();
  void serve(st_chandle_t handle, std::size_t place);
  void serve_connection(st_chandle_t handle, std::size_t place);
  void wait_for_all();

  ReceiverContext& context_;
  Endpoint endpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Place> places_;
  unsigned serving_ = 0;
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
