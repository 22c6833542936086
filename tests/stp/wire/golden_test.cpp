// SPDX-License-Identifier: BSD-3-Clause
// The golden frames, from fields to bytes and from bytes to fields, whole and damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "stp/wire/ethernet.h"
#include "tests/stp/wire/frames.h"
#include "tests/stp/wire/golden_frames.h"

namespace stp::wire {
namespace {

class Golden : public testing::TestWithParam<GoldenFrame> {};

bool same(Bytes a, Bytes b) {
  return std::ranges::equal(a, b);
}

bool lies_within(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

std::size_t link_size(const GoldenFrame& golden) {
  return LinkHeader{{}, {}, golden.envelope.vlan, golden.snap}.size();
}

// protocol: 2.2, 3.1, 3.5, 3.10
TEST_P(Golden, FieldsBecomeTheseBytes) {
  const GoldenFrame& golden = GetParam();
  Buffer out(golden.frame.size() + kMaxHeadSize, std::byte{0xee});
  out.resize(emit(golden.envelope, golden.header, golden.payload, golden.append, out));
  EXPECT_EQ(out, golden.frame);
}

TEST_P(Golden, HeadAndPayloadInPiecesAreTheSameFrame) {
  const GoldenFrame& golden = GetParam();
  const std::size_t half = golden.payload.size() / 2;
  const std::array<Bytes, 3> pieces = {Bytes{golden.payload}.first(half),
                                       Bytes{golden.payload}.subspan(half), golden.append};
  Buffer head(kMaxHeadSize);
  head.resize(emit_head(golden.envelope, golden.header, pieces, head.data()));
  EXPECT_EQ(head.size(), head_size(golden.header, golden.payload.size() + golden.append.size(),
                                   golden.envelope.vlan.has_value()));
  EXPECT_TRUE(same(head, Bytes{golden.frame}.first(head.size())));
  EXPECT_EQ(head.size(), link_size(golden) + kHeaderSize);
}

TEST_P(Golden, BytesBecomeTheseFields) {
  const GoldenFrame& golden = GetParam();
  Frame out;
  ASSERT_EQ(parse(golden.frame, kMaxStu, out), DropReason::kNone);
  EXPECT_EQ(out.dst, golden.envelope.dst);
  EXPECT_EQ(out.src, golden.envelope.src);
  EXPECT_EQ(out.vlan, golden.envelope.vlan);
  EXPECT_EQ(out.snap, golden.snap);
  EXPECT_EQ(out.header, golden.header);
  const bool data = golden.header.op() == Op::kData;
  EXPECT_TRUE(same(data ? out.stu : out.option, golden.payload));
  EXPECT_TRUE(data ? out.option.empty() : out.stu.empty());
  EXPECT_TRUE(same(out.append, golden.append));
}

// Each length has a separate buffer, so that a sanitizer detects a read beyond the end.
// protocol: 12.1
TEST_P(Golden, CutAnywhereIsDroppedOrReadWithinItsBytes) {
  const GoldenFrame& golden = GetParam();
  for (std::size_t length = 0; length < golden.frame.size(); ++length) {
    const Buffer cut(golden.frame.begin(),
                     golden.frame.begin() + static_cast<std::ptrdiff_t>(length));
    Frame out;
    const DropReason why = parse(cut, kMaxStu, out);
    if (length < link_size(golden) + kHeaderSize) {
      EXPECT_TRUE(why == DropReason::kTruncated) << length << ": " << name_of(why);
    } else if (golden.snap) {
      EXPECT_EQ(why, DropReason::kTruncated) << length;
    }
    if (why != DropReason::kNone) continue;
    EXPECT_EQ(out.header, golden.header) << length;
    for (const Bytes part : {out.option, out.stu, out.append}) {
      EXPECT_TRUE(lies_within(part, cut)) << length;
    }
  }
}

TEST_P(Golden, AnyFlippedBitIsReadOrDroppedForAReasonOfForm) {
  const GoldenFrame& golden = GetParam();
  const std::size_t covered_from = link_size(golden);
  for (std::size_t bit = 0; bit < golden.frame.size() * 8; ++bit) {
    Buffer flipped = golden.frame;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    Frame out;
    const DropReason why = parse(flipped, kMaxStu, out);
    if (why != DropReason::kNone) {
      EXPECT_GE(why, DropReason::kNotStp) << bit;
      EXPECT_LE(why, DropReason::kBadChecksum) << bit;
    } else {
      EXPECT_TRUE(golden.header.cksum == 0 || bit / 8 < covered_from)
          << "a wrong Cksum went unseen at bit " << bit;
      EXPECT_TRUE(lies_within(out.stu, flipped) && lies_within(out.option, flipped)) << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Frame, Golden, testing::ValuesIn(golden_frames()),
                         [](const auto& instance) { return instance.param.name; });

TEST(GoldenSet, HoldsEveryOperationButRtr) {
  for (unsigned code = 0; code < 32; ++code) {
    const Op op = static_cast<Op>(code);
    const bool present = std::ranges::any_of(
        golden_frames(), [op](const GoldenFrame& golden) { return golden.header.op() == op; });
    EXPECT_EQ(present, short_name(op) != nullptr && op != Op::kRequestToReceive) << code;
  }
}

}  // namespace
}  // namespace stp::wire
