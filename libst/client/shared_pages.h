// SPDX-License-Identifier: BSD-3-Clause
// Makes memory that the user has allocated in any way visible to stpd: replaces the pages that
// cover it, in place, by pages of a sealed memfd with the same contents. Threads that write to them
// at that moment wait (WriteFreeze). Pages that are already shared are recognized by the inode of
// their memfd, so a stale or recycled address is never taken for a known one. Thread-safe.
//
// A child of fork() shares none of these pages with its parent. It has pages that are lent as a
// whole as a private mapping of the memfd, and partly lent pages as a copy from the time of the
// fork. Pages that are no longer lent become private at the next fork. A child that was made
// without the fork() handlers lacks the pages that are lent as a whole.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "libst/client/backend.h"
#include "libst/client/lent_ranges.h"
#include "libst/client/set_aside.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "stp/base/mutex.h"

namespace stp::client {

// Lends the program's bytes while it exists.
class Lease {
 public:
  // The caller holds the mutex of SharedPages.
  Lease(LentRanges& lent, Bytes bytes) : bytes_(bytes) { lent.add(bytes); }
  Lease(Lease&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease();

 private:
  friend class SharedPages;
  Bytes bytes_;
};

struct Share final : Hold {
  struct Part {
    std::shared_ptr<const ipc::SharedMemory> memory;
    std::uint64_t offset = 0, length = 0;  // whole pages of `memory`
    dev_t device = 0;                      // of `memory`, once the share has rested
    ino_t inode = 0;
  };
  ~Share() override;
  // While a share rests, a fork may end its leases. One that has several pieces never resumes.
  void rest() override;
  bool resume(std::span<const AreaAt> areas) override;

  std::vector<Part> parts;         // concatenated; at most ipc::kMaxSegments
  std::vector<ipc::Piece> pieces;  // the user's memory: its position in the parts
  std::vector<Lease> leases;       // for the bytes that the user lends
  Bytes pages;                     // around the last piece
  bool has_rested = false;
};

class SharedPages {
 public:
  static SharedPages& instance();

  // Shares at most ipc::kMaxPieces pieces, of which the user lends `own`. Returns 0; -EFAULT if
  // something is not mapped; -EOPNOTSUPP for pages that cannot be replaced without detaching them
  // from what the user mapped there. Pages stay shared as long as they are mapped; a memfd stays
  // known as long as somebody holds it.
  // `anew`: stpd has refused the memfds, because it used them before and has let go of them since.
  // Replaces the pages once more, except those that other shares hold.
  int share(std::span<const MutableBytes> memory, std::span<const MutableBytes> own, Share& out,
            bool anew = false);
  // Maps new memory at `pages` and lends all of it, so that share() need not replace it later.
  // nullptr: see errno.
  std::shared_ptr<const ipc::SharedMemory> create(MutableBytes pages, std::optional<Lease>& lease);
  // Ends the lease and unmaps the pages in one step: no fork sees only one of the two.
  void unmap(MutableBytes pages, Lease& lease);

 private:
  friend class Lease;
  friend struct Share;
  // Pages that are lent as a whole, as the child will map them.
  struct View {
    Span pages;
    int protection;
    std::shared_ptr<const ipc::SharedMemory> memory;
    std::uint64_t offset;
  };
  SharedPages();
  void before_fork() STP_THREAD_SAFETY(acquire_capability(mutex_));
  void after_fork_in_parent() STP_THREAD_SAFETY(release_capability(mutex_));
  void after_fork_in_child() STP_THREAD_SAFETY(release_capability(mutex_));
  void leave_to_child() STP_REQUIRES(mutex_);
  void leave_to_child(const MappedArea& area) STP_REQUIRES(mutex_);
  void make_private(Span pages, int protection, const SetAside::Place& place) STP_REQUIRES(mutex_);
  void put_back() STP_REQUIRES(mutex_);

  void rest(Share& share);
  bool resume(Share& share, std::span<const AreaAt> areas);
  bool leave_rest(const Share& share) STP_REQUIRES(mutex_);
  void end_leases(Share& share) STP_REQUIRES(mutex_);
  bool end_rests() STP_REQUIRES(mutex_);

  void give_up(std::span<const MutableBytes> memory) STP_REQUIRES(mutex_);
  int add_all(std::span<const MutableBytes> memory, Share& out) STP_REQUIRES(mutex_);
  int add(Bytes memory, Share& out) STP_REQUIRES(mutex_);
  // Records `memory`, which is about to be mapped at `at`.
  std::shared_ptr<const ipc::SharedMemory> remember(std::shared_ptr<const ipc::SharedMemory> memory,
                                                    const std::byte* at) STP_REQUIRES(mutex_);
  // Returns our memfd that is mapped there, if somebody still holds it.
  std::shared_ptr<const ipc::SharedMemory> known(const MappedArea& area) const STP_REQUIRES(mutex_);
  void disown(MappedArea& area) const STP_REQUIRES(mutex_);
  int part_of(const MappedArea& area, Share::Part& out) STP_REQUIRES(mutex_);
  int replace(const MappedArea& area, Share::Part& out) STP_REQUIRES(mutex_);

  Mutex mutex_{LockRank::kPages};  // held during a fork
  std::map<std::uint64_t, std::weak_ptr<const ipc::SharedMemory>> known_
      STP_GUARDED_BY(mutex_);  // by inode
  std::set<std::uint64_t> created_
      STP_GUARDED_BY(mutex_);  // those of them that create() has made: its caller holds them
  Placements placements_ STP_GUARDED_BY(mutex_);
  LentRanges lent_ STP_GUARDED_BY(mutex_);
  std::vector<Share*> resting_ STP_GUARDED_BY(mutex_);
  // During a fork:
  bool leaving_ STP_GUARDED_BY(mutex_) =
      false;  // this process owns the pages; false in a child, which owns none
  bool all_left_out_ STP_GUARDED_BY(mutex_) = false;
  std::vector<View> views_ STP_GUARDED_BY(mutex_);
  std::vector<SetAside> aside_ STP_GUARDED_BY(mutex_);
  bool cut_off_ STP_GUARDED_BY(mutex_) =
      false;  // some pages could not be put back; share() has not reported it yet
};

}  // namespace stp::client
