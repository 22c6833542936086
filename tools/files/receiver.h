// SPDX-License-Identifier: BSD-3-Clause
// Serves every sender that connects, each in a thread of its own.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/files/file_receiver.h"
#include "tools/files/link.h"

namespace stp::files {

// Which senders count as one host. `station`: the address of a peer (stm_peer_info). On a link over
// UDP a host can have as many UDP ports as it likes, and as many IPv6 addresses as its network has:
// all of an IPv4 address are one host, and all of the first 64 bits of an IPv6 address, except for
// link-local ones, which all begin alike.
std::string host_in(const std::string& station);

// Whether a host has more than its share of the places, if another sender waits for one. `hosts`:
// who has each place. `newcomer`: the host of who waits.
bool has_more_than_its_share(const std::vector<std::string>& hosts, const std::string& host,
                             const std::string& newcomer);

class Receiver {
 public:
  Receiver(const std::string& address, ReceiverContext& context);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Runs until the program must stop, or with `once` until the first sender has been served. True:
  // every file that any sender began has arrived.
  bool run(bool once);

 private:
  struct Place {
    explicit Place(std::string who) : peer(std::move(who)) {}
    const std::string peer;  // its host
    std::thread thread;
    std::atomic<bool> done{false};
    Presence presence;
  };
  // nullptr: the program is to stop.
  stm_connection_t await_request();
  // False: the program is to stop.
  bool await_place(const std::string& newcomer);
  [[nodiscard]] bool has_enough_of(const std::string& peer) const;
  void ask_the_most_silent_to_leave(const std::string& newcomer);
  void begin(stm_connection_t request, const std::string& peer);
  void serve(stm_connection_t request, const std::string& peer, Presence& presence);
  void reap(bool all);

  ReceiverContext& context_;
  Link link_;
  const Progress::Watch watch_{context_.progress, [this] { return link_.trouble(); }};
  Queue requests_;
  stm_listener_t listener_ = nullptr;
  std::list<Place> places_;
  std::mutex mutex_;  // of the following
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
