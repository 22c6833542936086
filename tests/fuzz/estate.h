// SPDX-License-Identifier: BSD-3-Clause
// A user's memory. Peers may write only the middle, which requests grant. Around it are buffers
// that are mapped but never granted, and guards that are not mapped.
//
//   | guard | mapped: | never granted | granted | never granted | | guard |
#pragma once

#include "stp/wire/tiling.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::fuzz {

class Estate {
 public:
  static constexpr unsigned kBufsize = 10;
  static constexpr std::uint32_t kFirst = 0x100;  // Bufx of the first mapped buffer, both ways
  static constexpr std::uint32_t kGranted = 4, kGrantedCount = 8;
  static constexpr std::uint64_t kGrantedBytes = std::uint64_t{kGrantedCount} << kBufsize;

  // Maps it on an endpoint whose Bufsize is kBufsize.
  void map(Node& node, EndpointId endpoint) {
    std::memset(landing_.data(), kCanary, landing_.size());
    source_.fill_pattern();
    const auto in = landing_.all().subspan(kMappedAt, kMappedBytes), out = source_.all();
    EXPECT_EQ(node.map(endpoint, Direction::kReceive, kFirst, {&in, 1}, landing_region_), 0);
    EXPECT_EQ(node.map(endpoint, Direction::kTransmit, kFirst, {&out, 1}, source_region_), 0);
    EXPECT_EQ(node.alloc_mx(landing_region_, kNoneId, permit::kAll, mx_), 0);
  }
  // For a connectionless endpoint, to which everybody may write: its Mx covers only the middle.
  void map_middle(Node& node, EndpointId endpoint) {
    std::memset(landing_.data(), kCanary, landing_.size());
    source_.fill_pattern();
    const auto in =
        landing_.all().subspan(kMappedAt + (std::size_t{kGranted} << kBufsize), kGrantedBytes);
    const auto out = source_.all();
    EXPECT_EQ(node.map(endpoint, Direction::kReceive, kFirst + kGranted, {&in, 1}, landing_region_),
              0);
    EXPECT_EQ(node.map(endpoint, Direction::kTransmit, kFirst, {&out, 1}, source_region_), 0);
    EXPECT_EQ(node.alloc_mx(landing_region_, kNoneId, permit::kAll, mx_), 0);
  }
  void unmap(Node& node) const {
    EXPECT_EQ(node.unmap(landing_region_), 0);
    EXPECT_EQ(node.unmap(source_region_), 0);
  }
  // Whether every byte outside the granted middle is unchanged.
  [[nodiscard]] bool intact() const {
    const auto granted_at = kMappedAt + (std::size_t{kGranted} << kBufsize);
    return canaries(0, granted_at) && canaries(granted_at + kGrantedBytes, landing_.size()) &&
           source_as_it_was();
  }
  [[nodiscard]] std::uint16_t mx() const { return mx_; }
  // The address of byte `at` of the granted middle, or of the source.
  static Address granted(std::uint64_t at) {
    return Address::from_linear((std::uint64_t{kFirst + kGranted} << kBufsize) + at, kBufsize);
  }
  static Address source(std::uint64_t at) {
    return Address::from_linear((std::uint64_t{kFirst} << kBufsize) + at, kBufsize);
  }

 private:
  static constexpr int kCanary = 0xa5;
  static constexpr std::size_t kGuard = 4, kMapped = 16;
  static constexpr std::size_t kMappedAt = kGuard << kBufsize;
  static constexpr std::size_t kMappedBytes = kMapped << kBufsize;

  [[nodiscard]] bool canaries(std::size_t from, std::size_t to) const {
    for (auto i = from; i < to; ++i)
      if (landing_.data()[i] != std::byte{kCanary}) return false;
    return true;
  }
  [[nodiscard]] bool source_as_it_was() const {
    static const auto* const expected = [] {
      auto* const pattern = new test::Buffers(kBufsize, kMapped);
      pattern->fill_pattern();
      return pattern;
    }();
    return std::memcmp(source_.data(), expected->data(), source_.size()) == 0;
  }

  test::Buffers landing_{kBufsize, kGuard + kMapped + kGuard}, source_{kBufsize, kMapped};
  RegionId landing_region_ = kNoneId, source_region_ = kNoneId;
  std::uint16_t mx_ = 0;
};

}  // namespace stp::fuzz
