// SPDX-License-Identifier: BSD-3-Clause
// A station on a real link, in real time.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dpdk_port/link/owners.h"
#include "stp/types.h"
#include "tools/replay/play/subject.h"

struct pcap;

namespace stp::replay {

// When a play over a link has last made connections with a station. For 4 s the station takes the
// requests of a second play for late duplicates of the first (protocol 5.10).
class LastPlay {
 public:
  static constexpr std::chrono::milliseconds kRemembered{4'000};

  // On the machine; a name of its own for each network namespace, interface and station.
  static LastPlay with(int interface, const MacAddr& station);
  // Kept as the time of this file. "": nowhere, and nothing is known.
  explicit LastPlay(std::string path) : path_(std::move(path)) {}

  // How long the station may still remember.
  [[nodiscard]] std::chrono::milliseconds remembered() const;
  void note() const;  // connections have been made until now

 private:
  std::string path_;
};

class LinkSubject final : public Subject {
 public:
  // Returns nullptr if the interface cannot be used: `error` says why.
  // `others`: the stations in whose names it sends. Waits while the station may take its requests
  // for duplicates of an earlier play's, and says so on stderr.
  static std::unique_ptr<LinkSubject> open(const std::string& link, const MacAddr& station,
                                           const std::set<MacAddr>& others, Output output,
                                           std::string& error);
  ~LinkSubject() override;
  [[nodiscard]] const std::string& error() const { return error_; }

  [[nodiscard]] bool wants_credit() const override { return false; }
  void advance(std::int64_t now) override;
  void deliver(std::size_t at, Bytes frame) override;
  bool decide(std::size_t /*at*/) override { return true; }  // its users decide for themselves

 private:
  struct Close {
    void operator()(pcap* link) const;
  };
  LinkSubject(pcap* link, const MacAddr& station, Output output, LastPlay last)
      : link_(link), station_(station), output_(std::move(output)), last_(std::move(last)) {}
  bool claim(const std::string& link, int index, const std::set<MacAddr>& others,
             std::string& error);
  void read(std::int64_t trace_now);

  std::unique_ptr<pcap, Close> link_;
  MacAddr station_;
  Output output_;
  LastPlay last_;
  bool connected_ = false;  // the station has accepted a connection
  std::vector<std::unique_ptr<port::InterfaceOwner>> owned_;
  std::string error_;
  std::int64_t trace_start_ = -1, real_start_ = 0;
};

}  // namespace stp::replay
