// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/header.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/stp/wire/frames.h"

namespace stp::wire {
namespace {

const Header kDistinct = {.op_flags = 0x0102,
                          .param = 0x0304,
                          .d_port = 0x0506,
                          .s_port = 0x0708,
                          .d_key = 0x090a0b0c,
                          .cksum = 0x0d0e,
                          .mx = 0x0f10,
                          .bufx = 0x11121314,
                          .offset = 0x15161718,
                          .sync = 0x191a1b1c,
                          .b_num = 0x1d1e1f20,
                          .d_id = 0x21222324,
                          .s_id = 0x25262728};

// protocol: 2.1, 3.1
TEST(Header, EveryFieldStandsInWireOrderBigEndian) {
  Buffer wire(kHeaderSize);
  encode(kDistinct, wire.data());
  for (std::size_t i = 0; i < kHeaderSize; ++i) {
    EXPECT_EQ(wire[i], static_cast<std::byte>(i + 1)) << "byte " << i;
  }
}

TEST(Header, DecodingUndoesEncodingAtAnyAlignment) {
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Buffer wire(shift + kHeaderSize);
    encode(kDistinct, wire.data() + shift);
    EXPECT_EQ(decode(wire.data() + shift), kDistinct) << shift;
  }
}

// protocol: 3.2
TEST(Header, TLenIsSixtyFourBitsHighHalfFirst) {
  Header header;
  header.set_t_len(0x123456789);
  EXPECT_EQ(header.sync, 1u);
  EXPECT_EQ(header.b_num, 0x23456789u);
  EXPECT_EQ(header.t_len(), 0x123456789u);
}

struct Expected {
  const char* name;
  bool slot;
};
const std::map<unsigned, Expected> kExpectedOperations = {
    {0x01, {"RC", false}}, {0x02, {"CA", false}},  {0x03, {"RD", false}}, {0x04, {"DA", false}},
    {0x05, {"DC", false}}, {0x10, {"NOP", true}},  {0x13, {"RMR", true}}, {0x14, {"MRA", true}},
    {0x15, {"GET", true}}, {0x16, {"RTS", true}},  {0x17, {"RA", true}},  {0x18, {"RTR", true}},
    {0x1a, {"CTS", true}}, {0x1b, {"DATA", true}}, {0x1c, {"RS", false}}, {0x1d, {"RSR", false}},
    {0x1e, {"END", true}}, {0x1f, {"EA", true}},
};

// protocol: 3.4
TEST(Header, OperationsHaveTheirShortNamesAndOtherCodesNone) {
  for (unsigned code = 0; code < 256; ++code) {
    const char* name = short_name(static_cast<Op>(code));
    const auto it = kExpectedOperations.find(code);
    if (it == kExpectedOperations.end()) {
      EXPECT_EQ(name, nullptr) << code;
    } else {
      ASSERT_NE(name, nullptr) << code;
      EXPECT_EQ(std::string(name), it->second.name) << code;
    }
  }
}

// protocol: 6.2
TEST(Header, SlotsAreConsumedByAllButConnectionAndStateOperations) {
  for (const auto& [code, expected] : kExpectedOperations) {
    const Header header = good_header(static_cast<Op>(code));
    EXPECT_EQ(consumes_slot(header), expected.slot) << expected.name;
  }
}

// protocol: 6.2
TEST(Header, SilentSavesTheSlotOfDataAndOfNothingElse) {
  EXPECT_FALSE(consumes_slot(good_header(Op::kData, flag::kSilent | flag::kLast)));
  EXPECT_TRUE(consumes_slot(good_header(Op::kRequestToSend, flag::kSilent)));
}

}  // namespace
}  // namespace stp::wire
