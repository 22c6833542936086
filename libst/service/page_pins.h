// SPDX-License-Identifier: BSD-3-Clause
// Keeps the kernel from moving memory that a program shares with the daemon. A program may ask for
// huge pages (MADV_COLLAPSE, Linux 6.1): the kernel then takes 512 pages out of all mappings,
// copies them, and whoever touches one meanwhile waits, for seconds if the file is mapped very
// often. It leaves a piece of a file alone in which somebody has pinned a page. So one page of each
// 2 MiB is pinned: as a registered buffer of an io_uring, which needs no descriptor of its own; or,
// if the memory is mapped for reading only, as the content of a pipe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libst/os/unique_fd.h"
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
  // each other. Returns false if the system permits no pins, or no more of them (RLIMIT_MEMLOCK).
  bool pin(uid_t user, MutableBytes mapped, std::uint64_t offset, bool writable);

 private:
  class Ring;
  struct Slot {
    std::shared_ptr<Ring> ring;
    std::uint32_t number;
  };
  static std::shared_ptr<Ring> ring_with_room(uid_t user);
  bool pin_one(uid_t user, std::byte* page);
  bool pin_for_reading(std::span<std::byte* const> pages);
  void release();

  std::vector<Slot> slots_;
  std::vector<UniqueFd> pipes_;
};

}  // namespace stp::service
