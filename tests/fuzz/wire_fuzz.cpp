// SPDX-License-Identifier: BSD-3-Clause
// The codec: any bytes give a frame or a reason to drop them. A parsed frame can be built again and
// parses to the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "stp/wire/frame.h"

namespace stp::fuzz {
namespace {

bool same(Bytes a, Bytes b) {
  return std::ranges::equal(a, b);
}

void check(Bytes bytes, unsigned max_stu) {
  wire::Frame first, second;
  if (wire::parse(bytes, max_stu, first) != DropReason::kNone) return;
  std::vector<std::byte> again(bytes.size() + wire::kMaxHeadSize + wire::kMinPayload);
  const bool data = first.header.op() == wire::Op::kData;
  const wire::Envelope envelope{first.dst, first.src, first.vlan, first.header.cksum != 0};
  again.resize(
      wire::emit(envelope, first.header, data ? first.stu : first.option, first.append, again));
  EXPECT_EQ(wire::parse(again, max_stu, second), DropReason::kNone);
  EXPECT_EQ(first.header, second.header);
  EXPECT_EQ(first.dst, second.dst);
  EXPECT_EQ(first.src, second.src);
  EXPECT_EQ(first.vlan, second.vlan);
  EXPECT_TRUE(same(first.option, second.option));
  EXPECT_TRUE(same(first.stu, second.stu));
  EXPECT_TRUE(same(first.append, second.append));
}

}  // namespace
}  // namespace stp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const auto max_stu = stp::wire::kMinMaxStu + data[0] % 9;
  // A separate copy, so that a read beyond the end is detected.
  const std::vector<std::byte> frame(reinterpret_cast<const std::byte*>(data) + 1,
                                     reinterpret_cast<const std::byte*>(data) + size);
  stp::fuzz::check(frame, max_stu);
  return 0;
}
