// SPDX-License-Identifier: BSD-3-Clause
// A requester that has to prove that an answer has reached it (protocol, 5.37).
#include "stp/wire/operations.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

// A connects. B answers, but keeps no connection.
class Asked : public TwoNodes {
 protected:
  static constexpr std::uint32_t kUport = 3'000, kSizes = 0x00400602;

  void SetUp() override {
    endpoint_a = a.open();
    begin_connect();
    const auto request = parsed(*take(a)).header;
    key_ = wire::decode_as<wire::RequestConnection>(request).i_key;
    port_ = request.s_port;
    from_b(wire::ConnectionAnswer{.r_slots = 64, .r_bufsize = 14, .r_key = 777, .r_max_stu = 10});
    ask();
  }
  template <typename Operation>
  void from_b(const Operation& operation) {
    auto h = wire::to_header(operation);
    h.d_port = port_;
    h.s_port = 9;
    h.d_key = key_;
    inject(a, kMacB, h);
  }
  void ask() {
    from_b(wire::RequestState{.sync = key_, .b_num = wire::kNoId, .r_id = kUport, .i_id = kSizes});
  }
  // How often the requester proves itself in that time.
  unsigned proofs_in(Time span) {
    unsigned count = 0;
    for (const auto until = now + span; now < until; now += kMillisecond) {
      a.node.expire(now);
      while (const auto frame = take(a)) {
        const auto h = parsed(*frame).header;
        if (h.op() != wire::Op::kRequestStateResponse) continue;
        const auto rsr = wire::decode_as<wire::RequestStateResponse>(h);
        count += rsr.sync == key_ && rsr.i_id == kSizes && rsr.r_id == kUport ? 1 : 0;
      }
    }
    return count;
  }

  std::uint32_t key_ = 0;
  std::uint16_t port_ = 0;
};

// protocol: 5.37
TEST_F(Asked, proves_itself_again_while_it_hears_nothing) {
  EXPECT_EQ(proofs_in(9 * kMillisecond), 1U);
  EXPECT_EQ(proofs_in(kSecond), 5U);
  EXPECT_EQ(proofs_in(kSecond / 2), 0U);
  EXPECT_GE(proofs_in(4 * kSecond), 3U) << "before each RS of its own";
}

// protocol: 5.37
TEST_F(Asked, proves_itself_no_more_once_it_hears_anything) {
  EXPECT_EQ(proofs_in(35 * kMillisecond), 3U);
  from_b(wire::NoOperation{});
  EXPECT_EQ(proofs_in(8 * kSecond), 0U);
}

// protocol: 5.37
TEST_F(Asked, answers_each_question_and_repeats_no_more_often_for_many) {
  for (int i = 0; i < 10; ++i) ask();
  EXPECT_EQ(proofs_in(kSecond), 11U + 5U);
}

}  // namespace
}  // namespace stp::test
