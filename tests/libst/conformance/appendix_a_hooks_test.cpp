// SPDX-License-Identifier: BSD-3-Clause
// The libst document, Appendix A: error handlers, and hooks for wrappers.
#include <string>
#include <vector>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

struct Told {
  std::string call;
  int result;
  std::string text;
};

// Records what a hook is called with. A hook applies to the whole process, so it is set only during
// a test.
class AppendixAHooks : public ConnectedTest {
 protected:
  void TearDown() override {
    st_set_error_handler(nullptr, nullptr);
    st_set_log(nullptr, nullptr);
  }
  static void note(void* context, const char* call, int result, const char* text) {
    static_cast<std::vector<Told>*>(context)->push_back({call, result, text});
  }
  int poll_wrongly() {
    timeval wrong{0, -1};
    st_header_t got;
    return st_rx(connected_, &got, nullptr, &wrong);
  }
  std::vector<Told> told_;
};
STP_BOTH_WAYS(AppendixAHooks);

TEST_P(AppendixAHooks, TheErrorHandlerHearsWhichCallFailedHowAndWhy) {
  st_set_error_handler(note, &told_);
  st_chandle_t none = nullptr;
  ASSERT_EQ(st_connect(client_, "no port", &none), -EINVAL);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].call, "st_connect");
  EXPECT_EQ(told_[0].result, -EINVAL);
  EXPECT_EQ(told_[0].text, st_strerror(-EINVAL));
  EXPECT_EQ(st_delete(nullptr), -EBADF);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].call, "st_delete");
  st_set_error_handler(nullptr, nullptr);
  EXPECT_EQ(st_delete(nullptr), -EBADF);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_P(AppendixAHooks, TheLogHearsOfControlCallsThatSucceedToo) {
  st_set_log(note, &told_);
  unsigned value = 0;
  ASSERT_EQ(st_getopt(client_, ST_OPT_RX_SLOTS, &value), 0);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].call, "st_getopt");
  EXPECT_EQ(told_[0].result, 0);
}

TEST_P(AppendixAHooks, CallsThatMoveFramesAreTellingOnlyWhenTheyFail) {
  st_set_log(note, &told_);
  st_set_error_handler(note, &told_);
  st_header_t got;
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(receive(accepted_, got), 0);
  ASSERT_EQ(poll(accepted_, got), -EWOULDBLOCK);
  ASSERT_EQ(st_flush(connected_), 0);
  EXPECT_TRUE(told_.empty()) << told_[0].call;
  ASSERT_EQ(poll_wrongly(), -EINVAL);
  ASSERT_EQ(told_.size(), 2u) << "one for each hook";
  EXPECT_EQ(told_[0].call, "st_rx");
}

TEST_P(AppendixAHooks, AHookMayCallLibstAndDoesNotDisturbWhatTheCallLeaves) {
  st_set_error_handler(
      [](void* context, const char* call, int, const char*) {
        st_chandle_t none = nullptr;
        EXPECT_EQ(st_connect(nullptr, ":1", &none), -EBADF);
        note(context, call, 0, "");
      },
      &told_);
  st_chandle_t none = nullptr;
  ASSERT_EQ(st_connect(client_, "no port", &none), -EINVAL);
  EXPECT_EQ(told_.size(), 1u) << "not called for what it calls itself";
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("no port"), std::string::npos);
}

}  // namespace
}  // namespace stp::test
