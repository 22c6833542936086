// SPDX-License-Identifier: BSD-3-Clause
// Two programs that keep every rule, connected to each other by the stpd under test: they go on
// sending headers back and forth, and one of them data into the other's memory. What they see of
// hostile neighbours is how long that takes.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/hostile/client.h"

namespace stp::hostile {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

struct Tally {
  std::uint64_t trips = 0, transfers = 0;
  std::vector<float> microseconds;  // of each round trip that was to be measured
  Duration longest_trip{}, longest_answer{};
  std::string fault;  // "": nothing was lost, nothing was wrong

  [[nodiscard]] double percentile(double part) const;
};

class HonestPair {
 public:
  // As `uid` (root only), if one is given. fault() tells why it could not be made.
  HonestPair(const std::string& socket, std::uint32_t uport, std::optional<uid_t> uid = {});
  ~HonestPair() { stop(); }
  HonestPair(const HonestPair&) = delete;
  HonestPair& operator=(const HonestPair&) = delete;

  // A header to and fro. False: not within `patience`, or it was another one.
  bool trip(Duration patience = std::chrono::seconds(30));
  // One Block of data, compared.
  bool transfer(Duration patience = std::chrono::seconds(30));
  // stpd answers a request of each.
  bool is_answered();
  [[nodiscard]] const std::string& fault() const { return tally_.fault; }

  // On a thread of its own, until stop(), which gives what has happened since.
  void start();
  Tally stop();
  // Whether round trips that begin from now on are measured: all are, unless told otherwise.
  void measure(bool on) { measures_ = on; }

 private:
  struct Side {
    std::optional<Client> client;
    std::uint64_t endpoint = 0;
    Channel channel;
  };
  void make(const std::string& socket, std::uint32_t uport);
  bool lend_memory();
  void run();
  bool send(Side& from, const SendEntry& entry);
  bool await(Side& at, ReceivedEntry& entry, Duration patience);
  bool fail(const std::string& why);

  Side alice_, bob_;
  UniqueFd source_fd_, sink_fd_;
  std::shared_ptr<SharedMemory> source_, sink_;
  std::uint16_t mx_ = 0;
  std::uint32_t number_ = 0;
  Tally tally_;
  std::atomic<bool> stop_{false}, measures_{true};
  std::thread thread_;
};

}  // namespace stp::hostile
