// SPDX-License-Identifier: BSD-3-Clause
// Users send only what is theirs to send (docs/protocol.md, section 7).
#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

class RequestChecksTest : public Writing {
 protected:
  wire::Header permission;

  void SetUp() override {
    Writing::SetUp();
    permission = grant(3 * kStu);
  }
};

// protocol: 7.8, 12.4
TEST_F(RequestChecksTest, no_request_of_a_user_can_grant_what_is_not_its_own) {
  const auto refused = [&](SendEntry e) {
    const auto before = cb.user.refused();
    put(b, cb, e);
    settle();
    EXPECT_EQ(cb.user.refused(), before + 1);
    EXPECT_FALSE(get(ca));
  };
  auto e = cts();
  e.header.mx = 500;
  refused(e);
  refused(cts(0, kTargetBufx + kBuffers));
  refused(cts(0, kTargetBufx, 1U << kBufsize));
  refused(cts(0, kTargetBufx, 0, 32));
  refused(cts(0, kTargetBufx, 0, 7));
  auto longer = cts(0, kTargetBufx, 0, kBlocksize + 1);  // longer than the RTS
  longer.header.s_id = kRId + 1;
  refused(longer);
  refused(control(wire::Op::kRequestDisconnect));
  refused(control(wire::Op::kConnectionAnswer));
  e = control(static_cast<wire::Op>(0x19));
  refused(e);
}

TEST_F(RequestChecksTest, a_user_can_send_only_memory_that_is_mapped) {
  const auto refused = [&](SendEntry e) {
    const auto before = ca.user.refused();
    put(a, ca, e);
    settle();
    EXPECT_EQ(ca.user.refused(), before + 1);
    EXPECT_TRUE(untouched());
  };
  auto e = data(permission, kStu);
  e.bufx = kSourceBufx - 1;
  refused(e);
  e = data(permission, kStu);
  e.offset = kStu;
  refused(e);
  e = data(permission, kStu);
  e.bufx = kSourceBufx + kBuffers - 1;
  e.offset = 1;
  refused(e);
  e = data(permission, kStu);
  e.length = 0xffffffff;
  refused(e);
}

}  // namespace
}  // namespace stp::test
