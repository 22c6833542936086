// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/link_choice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_directory.h"

namespace stp::ipc {
namespace {

// Such as stp-recv, which listens again.
TEST(UsualLink, whoever_has_found_the_stpd_waits_for_it_while_it_is_started_again) {
  const test::TemporaryDirectory directory;
  const auto socket = directory.path() + "/stpd.sock";
  UsualLink link(socket);
  EXPECT_EQ(link.choose().link, "loop");
  std::ofstream(socket) << "";
  EXPECT_EQ(link.choose().link, "stpd:" + socket);
  std::filesystem::remove(socket);
  EXPECT_EQ(link.choose().link, "stpd:" + socket);
  EXPECT_EQ(UsualLink(socket).choose().link, "loop") << "another program";
}

}  // namespace
}  // namespace stp::ipc
