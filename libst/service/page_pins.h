// SPDX-License-Identifier: BSD-3-Clause
// Keeps the kernel from moving memory that a program shares with the daemon. A program may ask for
// huge pages (MADV_COLLAPSE, Linux 6.1): the kernel then takes 512 pages out of all mappings,
// copies them, and whoever touches one meanwhile waits, for seconds if the file is mapped very
// often. It leaves a piece of a file alone in which somebody has pinned a page. So one page of each
// 2 MiB is pinned: as a registered buffer of an io_uring, which needs no descriptor of its own; or,
// if the memory is mapped for reading only, as the content of a pipe. Io_urings and pipes are open
// files of the daemon, and count as files of the user.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/budget.h"
#include "stp/types.h"

namespace stp::service {

class PagePins {
 public:
  // What the kernel moves at once: so many bytes of a file, from a multiple of that number on.
  static constexpr std::size_t kPiece = std::size_t{2} << 20;

  PagePins() = default;
  ~PagePins() { release(); }
  PagePins(PagePins&& other) noexcept = default;
  PagePins& operator=(PagePins&& other) noexcept;
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
  int pin(const Account& payer, MutableBytes mapped, std::uint64_t offset, bool writable);

 private:
  class Ring;
  struct Slot {
    std::shared_ptr<Ring> ring;
    std::uint32_t number;
  };
  struct Pipe {
    Reservation file;
    UniqueFd end;
  };
  static int ring_with_room(const Account& payer, std::shared_ptr<Ring>& out);
  int pin_for_writing(const Account& payer, std::span<std::byte* const> pages);
  int pin_one(const Account& payer, std::byte* page);
  int pin_for_reading(const Account& payer, std::span<std::byte* const> pages);
  void release();

  std::vector<Slot> slots_;
  std::vector<Pipe> pipes_;
};

}  // namespace stp::service
