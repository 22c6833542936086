// SPDX-License-Identifier: BSD-3-Clause
// A station on a real link, in real time.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "dpdk_port/link/interface_owner.h"
#include "tools/replay/play/last_play.h"
#include "tools/replay/play/subject.h"

struct pcap;

namespace stp::replay {

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
