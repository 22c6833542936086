// SPDX-License-Identifier: BSD-3-Clause
// XXH3-128 of a file's content, as `xxhsum -H2` prints it. It detects damage by memory, disk or a
// program error. It does not protect against an attacker on the wire.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "tools/files/note.h"

namespace stp::files {

class ContentDigest {
 public:
  ContentDigest() : state_(XXH3_createState()) {
    if (!state_ || XXH3_128bits_reset(state_.get()) != XXH_OK) throw std::bad_alloc();
  }
  void add(std::span<const std::byte> bytes) {
    if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  // So many zeros that were not sent. They count by their number, so that nobody has to make them.
  void add_hole(std::uint64_t length) {
    std::array<std::byte, 16> mark{std::byte{'h'}, std::byte{'o'}, std::byte{'l'}, std::byte{'e'}};
    put_big_endian(&mark[8], length);
    add(mark);
  }
  [[nodiscard]] Digest value() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return std::to_array(canonical.digest);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// The digest of content that is complete in memory.
inline Digest digest_of(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return std::to_array(canonical.digest);
}

}  // namespace stp::files
