// SPDX-License-Identifier: BSD-3-Clause
// Memory that a client lends to the daemon for a region: ranges of the client's memfds (segments),
// mapped side by side, and the pieces of them that make up the region. The daemon seals the memfds
// and looks once whether all pages are there: from then on none can go.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::stpd {

// Keeps the kernel from moving memory that a program shares with the daemon. A program may ask for
// huge pages (MADV_COLLAPSE, Linux 6.1): the kernel then takes 512 pages out of all mappings,
// copies them, and whoever touches one meanwhile waits, for seconds if the file is mapped very
// often. It leaves a piece of a file alone in which somebody has pinned a page. So one page of each
// 2 MiB is pinned: as a registered buffer of an io_uring, which needs no descriptor of its own; or,
// if the memory is mapped for reading only, as the content of a pipe. Io_urings and pipes are open
// files of the daemon, and count as files of the user.

class PagePins {
 public:
  // What the kernel moves at once: so many bytes of a file, from a multiple of that number on.
  static constexpr std::size_t kPiece = std::size_t{2} << 20;

  PagePins() = default;
  ~PagePins() { release(); }
  PagePins(PagePins&& other) noexcept = default;
  PagePins(const PagePins&) = delete;
  PagePins& operator=(const PagePins&) = delete;

  // Whether programs can make this kernel move pages.
  static bool wanted();
  // Whether this system permits io_urings with registered buffers (Linux 5.19).
  static bool possible();
  // Pins pages of `mapped`, which begins at `offset` of its file and has all its pages. May wait
  // for whoever moves them at present, so call it where that holds up nobody; users do not wait for
  // each other. Returns 0; -EDQUOT: `payer` may not have the files that it takes, and nothing of
  // this object is pinned any more; or -ENOTSUP: the system permits no pins, or no more of them
  // (RLIMIT_MEMLOCK).
  int pin(const host::Account& payer, MutableBytes mapped, std::uint64_t offset, bool writable);

 private:
  class Ring;
  struct Slot {
    std::shared_ptr<Ring> ring;
    std::uint32_t number;
  };
  struct Pipe {
    host::Reservation file;
    os::UniqueFd end;
  };
  static int ring_with_room(const host::Account& payer, std::shared_ptr<Ring>& out);
  int pin_for_writing(const host::Account& payer, std::span<std::byte* const> pages);
  int pin_one(const host::Account& payer, std::byte* page);
  int pin_for_reading(const host::Account& payer, std::span<std::byte* const> pages);
  void release();

  std::vector<Slot> slots_;
  std::vector<Pipe> pipes_;
};

// Looks, with pauses, until nobody works on a file. Who goes on and on is between two steps now and
// then: after a look that finds somebody, three in a row have to find nobody. False: that does not
// happen.
bool becomes_quiet(const std::function<bool()>& is_worked_on);

// A memory file that a program lends, as the daemon has mapped it: once, as a whole. Then it is
// sealed: from that time on nobody can take pages away, and nobody can map it for writing once
// more, the daemon included. So regions are further views of this mapping. It lasts as long as a
// region uses it. Mapping and sealing may wait for whoever works on the file: call these functions
// where that holds up nobody.
class FileMapping {
 public:
  // Finds the mapping of the file or makes it. `most`: longer files are refused, unless the default
  // quota of mapped memory permits them. Returns 0; -EINVAL: too long, it can never be sealed, or
  // it is to be written and `fd` is not open for that; -EPERM: it was sealed before, so it can be
  // mapped no more; -EBUSY: somebody takes pages out of it without a pause; or another negative
  // errno.
  static int of(int fd, std::uint64_t most, bool for_writing, std::shared_ptr<FileMapping>& out);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  // Puts a view of `length` bytes of the file, from `offset` on, in the place of what is mapped at
  // `at`. `fd`: the file. Returns 0 or a negative errno.
  int place(std::byte* at, int fd, std::uint64_t offset, std::uint64_t length,
            bool for_writing) const;
  // Looks for missing pages, once for each part of the file. Returns 0; -EFAULT: there are some; or
  // another negative errno.
  int look(int fd, std::uint64_t offset, std::uint64_t length);
  // Pins pages of that part, which has all its pages. Returns what PagePins::pin() does.
  int pin(const host::Account& payer, std::uint64_t offset, std::uint64_t length,
          PagePins& out) const {
    return out.pin(payer, mapped_.subspan(offset, length), offset, writable_);
  }

 private:
  struct Registry;
  static Registry& registry();
  FileMapping(MutableBytes mapped, bool writable) : mapped_(mapped), writable_(writable) {}
  static int map(int fd, std::uint64_t size, int seals, bool for_writing,
                 std::shared_ptr<FileMapping>& out);

  const MutableBytes mapped_;
  const bool writable_;
  Mutex mutex_;
  std::uint64_t whole_from_ STP_GUARDED_BY(mutex_) = 0;
  std::uint64_t whole_to_ STP_GUARDED_BY(mutex_) = 0;  // no page is missing between them
};

class RegionMemory {
 public:
  // Checks the segments of a kMap `request` and computes how many bytes it would map. Returns 0,
  // -EINVAL, or -EDQUOT if they are more than `most`.
  static int measure(const ask::Map& request, std::size_t fd_count, std::uint64_t most,
                     std::uint64_t& bytes);
  // Maps a request that measure() has checked, with the same `most`. Returns 0; -EINVAL: the owner
  // could shrink the memory or keep it from being sealed, or the file is so long that a look for
  // missing pages would take too long; -EPERM: it was sealed earlier and can be mapped no more;
  // -EFAULT: the owner has not allocated all pages; or another negative errno. Waits for whoever
  // works on the files. The destructor unmaps and returns what is `held` to its budgets. `torn` is
  // set if the owner takes away pages in use.
  static int map(const ask::Map& request, std::span<const os::UniqueFd> fds, std::uint64_t most,
                 host::Reservation held, std::shared_ptr<ipc::Torn> torn,
                 std::shared_ptr<RegionMemory>& out);
  // Maps in the pages of the next `bytes`, so that the polling thread does not fault on them.
  // Returns 0 when all are mapped in; -EAGAIN: call again; or another negative errno.
  int populate(std::uint64_t bytes);
  // Call last, with the request that was mapped: the kernel does not move the pages any more. As
  // far as the system permits it (PagePins). Returns 0, or -EDQUOT: `payer` may not have the
  // files that it takes.
  int pin_pages(const host::Account& payer, const ask::Map& request);
  ~RegionMemory();
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  [[nodiscard]] const std::vector<MutableBytes>& pieces() const { return pieces_; }
  [[nodiscard]] std::size_t size() const { return mapped_.size(); }

 private:
  int place(std::byte* at, const ipc::Segment& segment, int fd, std::uint64_t most);
  RegionMemory(MutableBytes mapped, bool read_only) : mapped_(mapped), read_only_(read_only) {}
  host::Reservation held_;
  ipc::Guarded guarded_;
  std::vector<std::shared_ptr<FileMapping>> files_;  // by the number of the descriptor
  MutableBytes mapped_;                              // whole pages
  std::vector<MutableBytes> pieces_;
  PagePins pins_;
  const bool read_only_;
  std::size_t populated_ = 0;
};

}  // namespace stp::stpd
