// SPDX-License-Identifier: BSD-3-Clause
// Makes memory that the user allocated in whatever way visible to stpd: the pages that cover it are
// replaced, in place, by pages of a sealed memfd with the same contents. Other threads must not
// write to those pages meanwhile. Pages that are shared already are found again by the inode of
// their memfd, so a stale or recycled address is never taken for a known one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/service/messages.h"
#include "libst/service/shared_memory.h"

namespace stp::client {

struct Share {
  struct Part {
    std::shared_ptr<const service::SharedMemory> memory;
    std::uint64_t offset = 0, length = 0;  // whole pages of `memory`
  };
  std::vector<Part> parts;             // side by side, at most service::kMaxSegments
  std::vector<service::Piece> pieces;  // the user's memory: where it lies in the parts
};

class SharedPages {
 public:
  static SharedPages& instance();

  // At most service::kMaxPieces pieces. 0; -EFAULT where nothing is mapped; -EOPNOTSUPP for pages
  // that cannot be replaced without cutting them from what the user mapped them to. Pages stay
  // shared for as long as they are mapped; a memfd stays known while somebody holds it.
  int share(std::span<const MutableBytes> memory, Share& out);
  // Memory of `size` bytes that needs no replacing. nullptr: errno tells.
  std::shared_ptr<const service::SharedMemory> create(std::size_t size);

 private:
  int add(Bytes memory, Share& out);
  std::shared_ptr<const service::SharedMemory> remember(
      std::shared_ptr<const service::SharedMemory> memory);
  // The memfd of ours that lies there and is still lent, if one does.
  std::shared_ptr<const service::SharedMemory> known(const MappedArea& area) const;
  void disown(MappedArea& area) const;
  int part_of(const MappedArea& area, Share::Part& out);
  int replace(const MappedArea& area, Share::Part& out);

  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<const service::SharedMemory>> known_;  // by inode
};

}  // namespace stp::client
