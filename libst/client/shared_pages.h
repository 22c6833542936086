// SPDX-License-Identifier: BSD-3-Clause
// Makes memory that the user allocated in whatever way visible to stpd: the pages that cover it are
// replaced, in place, by pages of a sealed memfd with the same contents. Who writes to them in that
// moment waits (WriteFreeze). Pages that are shared already are found again by the inode of their
// memfd, so a stale or recycled address is never taken for a known one.
//
// A child of fork() shares none of them with its parent. What is lent whole it sees as a private
// mapping of the memfd; the rest of such pages it has as of the fork; what is lent no more is made
// private at the next fork. A child that was made around the handlers of fork() misses what is lent
// whole.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/client/lent_ranges.h"
#include "libst/client/placements.h"
#include "libst/client/set_aside.h"
#include "libst/service/messages.h"
#include "libst/service/shared_memory.h"

namespace stp::client {

// The program's bytes are lent for as long as this lives.
class Lease {
 public:
  // Whoever makes one holds the pages' lock.
  Lease(LentRanges& lent, Bytes bytes) : bytes_(bytes) { lent.add(bytes); }
  Lease(Lease&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

 private:
  friend class SharedPages;
  Bytes bytes_;
};

struct Share {
  struct Part {
    std::shared_ptr<const service::SharedMemory> memory;
    std::uint64_t offset = 0, length = 0;  // whole pages of `memory`
  };
  std::vector<Part> parts;             // side by side, at most service::kMaxSegments
  std::vector<service::Piece> pieces;  // the user's memory: where it lies in the parts
  std::vector<Lease> leases;           // of what is the user's
};

class SharedPages {
 public:
  static SharedPages& instance();

  // At most service::kMaxPieces pieces, of which `own` is what the user lends. 0; -EFAULT where
  // nothing is mapped; -EOPNOTSUPP for pages that cannot be replaced without cutting them from what
  // the user mapped them to. Pages stay shared for as long as they are mapped; a memfd stays known
  // while somebody holds it.
  int share(std::span<const MutableBytes> memory, std::span<const MutableBytes> own, Share& out);
  // Memory that needs no replacing, in place of `pages`, all of it lent. nullptr: errno tells.
  std::shared_ptr<const service::SharedMemory> create(MutableBytes pages,
                                                      std::optional<Lease>& lease);
  // Ends the lease, and what is there with it: no fork finds the one without the other.
  void unmap(MutableBytes pages, Lease& lease);

 private:
  friend class Lease;
  // The child's view of what is lent whole.
  struct View {
    Span pages;
    int protection;
    std::shared_ptr<const service::SharedMemory> memory;
    std::uint64_t offset;
  };
  SharedPages();
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void leave_to_child();
  void leave_to_child(const MappedArea& area);
  void put_back();

  int add(Bytes memory, Share& out);
  // It is going to be mapped at `at`.
  std::shared_ptr<const service::SharedMemory> remember(
      std::shared_ptr<const service::SharedMemory> memory, const std::byte* at);
  // The memfd of ours that lies there and is still lent, if one does.
  std::shared_ptr<const service::SharedMemory> known(const MappedArea& area) const;
  void disown(MappedArea& area) const;
  int part_of(const MappedArea& area, Share::Part& out);
  int replace(const MappedArea& area, Share::Part& out);

  std::mutex mutex_;                                                           // held during a fork
  std::map<std::uint64_t, std::weak_ptr<const service::SharedMemory>> known_;  // by inode
  Placements placements_;
  LentRanges lent_;
  // During a fork:
  bool leaving_ = false;  // of a process whose pages these are: a child has only left-overs
  bool all_left_out_ = false;
  std::vector<View> views_;
  std::vector<SetAside> aside_;
  bool cut_off_ = false;  // some could not be put back, which nobody was told yet
};

}  // namespace stp::client
