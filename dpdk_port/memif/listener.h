// SPDX-License-Identifier: BSD-3-Clause
// The socket of the memif servers of this process that share one path, each with an id of its own.
// It hears from each client which of them it wants. May be used by several threads.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dpdk_port/memif/control_socket.h"
#include "stp/types.h"

namespace stp::port::memif {

class Listener {
 public:
  // That of the path; it is made where this process has none. nullptr: `error` says why.
  static std::shared_ptr<Listener> at(const std::string& path, std::string& error);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // `shards`: those of the link with that id. False: another link of this process serves that id.
  bool serve(std::uint32_t id, unsigned shards);
  void stop(std::uint32_t id);
  // A client that wants this id; empty: none. Also hears the others.
  ControlSocket take(std::uint32_t id, Time now);
  [[nodiscard]] const std::shared_ptr<Closer>& closer() const { return closer_; }

 private:
  // Clients that have not said what they want yet: so many, and each for so long.
  static constexpr std::size_t kNewcomers = 8;
  static constexpr Time kPatience = 2 * kSecond;
  struct Served {
    unsigned shards = 1;
    ControlSocket wanted;  // a client; empty: none
  };
  struct Newcomer {
    ControlSocket socket;
    Time since = 0;
  };

  Listener(std::string path, FileDescriptor socket);
  void accept(Time now);
  bool hear(Newcomer& newcomer, Time now);  // false: it is a newcomer no more

  const std::string path_;
  const std::shared_ptr<Closer> closer_ = std::make_shared<Closer>();
  ControlSocket socket_;
  struct stat file_ {};  // which file of that path is its own
  std::mutex mutex_;     // of what follows
  std::vector<Newcomer> newcomers_;
  std::map<std::uint32_t, Served> served_;  // by id
};

}  // namespace stp::port::memif
