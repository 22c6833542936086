// SPDX-License-Identifier: BSD-3-Clause
// The path from one station to this one, if it leads through a network that others use, too: what
// has been granted along it and has not arrived, its window, and the connections whose CTS wait for
// room. The connections with that station share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "stp/base/linked_list.h"
#include "stp/node/inbound/path_window.h"
#include "stp/node/node.h"

namespace stp {

struct HasRoom;  // paths with room, along which CTS wait

class Path : public Link<HasRoom> {
 public:
  using Roomy = LinkedList<Path, HasRoom>;
  // `roomy` must outlive this.
  Path(std::uint64_t stu, Roomy& roomy) : window_(stu), stu_(stu), roomy_(roomy) {}

  // Whether `bytes` more may be granted.
  // protocol: 13.9
  [[nodiscard]] bool has_room(std::uint64_t bytes) const {
    return charged_ == 0 || charged_ + bytes <= window_.bytes();
  }
  void grant(std::uint64_t bytes) { charged_ += bytes; }
  // `bytes` have arrived, will not arrive, or no longer count.
  void settle(std::uint64_t bytes) {
    STP_ASSERT(bytes <= charged_, "no more is settled than was granted");
    charged_ -= bytes;
    if (!waiting_.empty() && !linked() && has_room(waiting_.front().bytes)) roomy_.push_back(*this);
  }
  // As PathWindow::arrived(), before the bytes are settled.
  void arrived(std::uint64_t bytes, Time delay, Time now) {
    const bool full = !waiting_.empty() || 2 * charged_ >= window_.bytes();
    window_.arrived(bytes, delay, full, now);
  }
  void lost(Time now) { window_.lost(now); }
  [[nodiscard]] Time round_trip() const { return window_.round_trip(); }
  // Exponent of the Block that suits the window: an eighth of it, but an STU at least; four STUs
  // while nothing is known.
  // protocol: 13.13
  [[nodiscard]] unsigned block_log2() const;

  // The first CTS of `vc` grants `bytes`, and there is no room for it.
  void wait(VcId vc, std::uint64_t bytes) { waiting_.push_back({vc, bytes}); }
  // Takes the connection that has waited longest, if there is room for its CTS beside those that
  // were taken before. kNoneId: none; this is no longer among the paths with room.
  VcId next() {
    if (waiting_.empty() || !has_room(promised_ + waiting_.front().bytes)) {
      promised_ = 0;
      unlink();
      return kNoneId;
    }
    const auto first = waiting_.front();
    waiting_.pop_front();
    promised_ += first.bytes;
    return first.vc;
  }

 private:
  PathWindow window_;
  const std::uint64_t stu_;
  Roomy& roomy_;
  std::uint64_t charged_ = 0;  // granted, not arrived, and not written off
  struct Waiting {
    VcId vc;
    std::uint64_t bytes;
  };
  std::deque<Waiting> waiting_;
  std::uint64_t promised_ = 0;  // to those that next() has returned
};

// The paths of a Node. One lives as long as a connection with its station has a share in it.
class PathTable {
  struct Entry;
  struct Leave {
    void operator()(Path* path) const;
  };

 public:
  using Share = std::unique_ptr<Path, Leave>;

  PathTable() = default;
  PathTable(const PathTable&) = delete;
  PathTable& operator=(const PathTable&) = delete;
  // The table must outlive the share.
  Share find(const MacAddr& station, std::uint64_t stu);
  [[nodiscard]] Path::Roomy& roomy() { return roomy_; }
  [[nodiscard]] const Path::Roomy& roomy() const { return roomy_; }

 private:
  struct Entry : Path {
    Entry(PathTable& all, const MacAddr& of, std::uint64_t stu)
        : Path(stu, all.roomy_), table(all), station(of) {}
    PathTable& table;
    const MacAddr station;
    std::size_t shares = 0;
  };
  Path::Roomy roomy_;
  std::map<MacAddr, Entry> paths_;
};

}  // namespace stp
