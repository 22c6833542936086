// SPDX-License-Identifier: BSD-3-Clause
// A station on a real link, in real time.
#pragma once

#include <memory>

#include "tools/replay/play/subject.h"

struct pcap;

namespace stp::replay {

class LinkSubject final : public Subject {
 public:
  // Returns nullptr if the interface cannot be used: `error` says why.
  static std::unique_ptr<LinkSubject> open(const std::string& link, const MacAddr& station,
                                           Output output, std::string& error);
  [[nodiscard]] const std::string& error() const { return error_; }

  [[nodiscard]] bool wants_credit() const override { return false; }
  void advance(std::int64_t now) override;
  void deliver(std::size_t at, Bytes frame) override;
  bool decide(std::size_t /*at*/) override { return true; }  // its users decide for themselves

 private:
  struct Close {
    void operator()(pcap* link) const;
  };
  LinkSubject(pcap* link, const MacAddr& station, Output output)
      : link_(link), station_(station), output_(std::move(output)) {}
  void read(std::int64_t trace_now);

  std::unique_ptr<pcap, Close> link_;
  MacAddr station_;
  Output output_;
  std::string error_;
  std::int64_t trace_start_ = -1, real_start_ = 0;
};

}  // namespace stp::replay
