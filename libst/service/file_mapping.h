// SPDX-License-Identifier: BSD-3-Clause
// A memory file that a program lends, as the daemon has mapped it: once, as a whole. Then it is
// sealed: from that time on nobody can take pages away, and nobody can map it for writing once
// more, the daemon included. So regions are further views of this mapping. It lasts as long as a
// region uses it. Mapping and sealing may wait for whoever works on the file: call these functions
// where that holds up nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "libst/service/page_pins.h"
#include "stp/types.h"

namespace stp::service {

// Looks, with pauses, until nobody works on a file. Who goes on and on is between two steps now and
// then: after a look that finds somebody, three in a row have to find nobody. False: that does not
// happen.
bool becomes_quiet(const std::function<bool()>& is_worked_on);

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
  int pin(const Account& payer, std::uint64_t offset, std::uint64_t length, PagePins& out) const {
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
  std::mutex mutex_;
  std::uint64_t whole_from_ = 0, whole_to_ = 0;  // no page is missing there
};

}  // namespace stp::service
