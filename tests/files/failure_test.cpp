// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/files/limited_descriptors.h"
#include "tools/files/channel.h"

namespace stp::files {
namespace {

// Only the library's text tells that it was a thread that was not to be had.
TEST(Failure, a_link_that_cannot_be_opened_now_has_the_hint_at_another_one) {
  const std::string text = link_failure(-EAGAIN).what();
  EXPECT_NE(text.find("--link names another one"), std::string::npos) << text;
}

// A link over UDP is not there then, which the error says; the reason stands in the text alone.
TEST(Failure, a_link_that_finds_no_descriptor_has_the_hint_at_the_limit) {
  ::setenv("STP_LINK", "udp:127.0.0.1,port=0", 1);
  std::string text;
  {
    const test::LimitedDescriptors few(0);
    try {
      const FileLink link;
    } catch (const LinkFailure& failure) {
      text = failure.what();
    }
  }
  EXPECT_NE(text.find(std::strerror(EMFILE)), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; raise ulimit -n")) << text;
}

TEST(Failure, a_peer_that_goes_before_it_has_answered_has_ended) {
  const std::string text = connect_failure(-ENOTCONN, "beta:3000", "").what();
  EXPECT_EQ(text, "the program on beta:3000 has ended; start stp-recv --listen there");
}

TEST(Failure, a_host_that_falls_silent_before_its_program_accepts_is_not_said_to_answer) {
  const std::string silent = unaccepted_failure("beta:3000", false, "").what();
  EXPECT_EQ(silent,
            "beta:3000 no longer answers; the link or its host is down; over UDP, a firewall may "
            "keep its port out");
  const std::string told = unaccepted_failure("beta:3000", false, "no route leads there").what();
  EXPECT_EQ(told, "beta:3000 no longer answers; no route leads there");
  const std::string busy = unaccepted_failure("beta:3000", true, "no route leads there").what();
  EXPECT_TRUE(busy.starts_with("beta:3000 does not accept: its host answers")) << busy;
}

}  // namespace
}  // namespace stp::files
