// SPDX-License-Identifier: BSD-3-Clause
// Two programs that obey every rule, connected to each other through the stpd under test, or two
// of them. They send
// headers back and forth, and one sends data into the other's memory. They measure how much hostile
// programs delay this.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/hostile/client.h"
#include "tests/hostile/processor_waits.h"

namespace stp::hostile {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

// What something took, again and again.
struct Times {
  std::vector<float> microseconds;
  Duration longest{};
  Duration longest_apart{};  // apart from what its threads waited for a processor

  void add(Duration time, Duration waited = {});
  void add(const Times& others);
  [[nodiscard]] double percentile(double part) const;  // in microseconds
};

struct Tally {
  std::uint64_t trips = 0, transfers = 0;
  Times trip_times;    // of the measured round trips
  Times answer_times;  // of stpd's answers to requests
  std::string fault;   // "" if nothing was lost or wrong
};

class HonestPair {
 public:
  // Runs as `uid` (root only), if one is given. `other`: the socket of the second one's stpd, which
  // is at that address with the usual UDP port; "": the same. If it could not be made, fault() says
  // why.
  HonestPair(const std::string& socket, std::uint32_t uport, std::optional<uid_t> uid = {},
             const std::string& other = "", const std::string& address = "");
  ~HonestPair() { stop(); }
  HonestPair(const HonestPair&) = delete;
  HonestPair& operator=(const HonestPair&) = delete;

  // Sends a header there and back. Returns false if it took longer than `patience` or was wrong.
  bool trip(Duration patience = std::chrono::seconds(30));
  // Sends one Block of data and compares it.
  bool transfer(Duration patience = std::chrono::seconds(30));
  // Whether stpd answers a request of each.
  bool is_answered();
  [[nodiscard]] const std::string& fault() const { return tally_.fault; }

  // What these wait for a processor is measured from the next start() on.
  void served_by(const Servers& servers) { servers_ = servers; }
  // Runs on another thread until stop(), which returns what has happened since.
  void start();
  Tally stop();
  // Whether round trips that begin from now on are measured. Initially they are.
  void measure(bool on) { measures_ = on; }

 private:
  using Waits = ProcessorWaits::Waits;
  struct Side {
    std::optional<Client> client;
    std::uint64_t endpoint = 0;
    Channel channel;
  };
  void make(const std::string& socket, const std::string& other, const std::string& address,
            std::uint32_t uport);
  bool lend_memory();
  void run();
  bool send(Side& from, const SendEntry& entry);
  bool await(Side& at, ReceivedEntry& entry, Duration patience);
  bool fail(const std::string& why);
  // What this thread and the servers have waited for a processor, if that is measured.
  Waits waits(bool workers) { return waits_ ? waits_->now(workers) : Waits{}; }
  Duration waited_since(const Waits& before) { return waits_ ? waits_->since(before) : Duration{}; }
  // Of this thread what counts: not while there is nothing to receive yet.
  void have_looked(bool found);

  Side alice_, bob_;
  UniqueFd source_fd_, sink_fd_;
  std::shared_ptr<SharedMemory> source_, sink_;
  std::uint16_t mx_ = 0;
  std::uint32_t number_ = 0;
  Tally tally_;
  Servers servers_;
  std::optional<ProcessorWaits> waits_;  // while it runs
  Duration looked_{}, own_{};            // of this thread until its last look; of it what counts
  std::atomic<bool> stop_{false}, measures_{true};
  std::thread thread_;
};

}  // namespace stp::hostile
