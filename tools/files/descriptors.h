// SPDX-License-Identifier: BSD-3-Clause
// How many descriptors the files of one sender may take at the receiver.
#pragma once

#include <algorithm>
#include <cstddef>

namespace stp::files {

struct Descriptors {
  std::size_t directories = 256;  // of a batch; two batches and a pack are under way at once
  std::size_t small_files = 256;  // of a pack that are written at once
  std::size_t open_files = 16;    // of a batch: large ones, whose temporaries are locked
  std::size_t compared = 8;       // files that are compared or written, with up to 3 each
  // Up to this many files of a batch are synchronized one by one. More are synchronized with their
  // whole file system, which is expensive if other programs have much to write there.
  std::size_t few = 8;
};

// So that `senders` at once stay within the limit of the process.
inline Descriptors descriptors_within(std::size_t limit, std::size_t senders) {
  constexpr std::size_t kOthers = 128;       // of the program itself and its link
  constexpr std::size_t kOfConnection = 24;  // of each sender: its link, directories to remove
  constexpr std::size_t kShares = 8;         // see below
  const auto each = limit > kOthers ? (limit - kOthers) / senders : 0;
  const auto share = (each > kOfConnection ? each - kOfConnection : 0) / kShares;
  const Descriptors most;
  const auto at_most = [share](std::size_t wanted) {
    return std::clamp<std::size_t>(share, 1, wanted);
  };
  // 3 shares of directories, 1 of small files, 2 of large and 1 of few files; 1 of compared ones.
  return {at_most(most.directories), at_most(most.small_files), at_most(most.open_files),
          std::clamp<std::size_t>(share / 3, 1, most.compared), at_most(most.few)};
}

}  // namespace stp::files
