// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/interfaces.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace stp::port {
namespace {

// Without the C library the system call changes only this thread.
bool give_up_raw_sockets() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &head, data) != 0) return false;
  data[0].effective &= ~(1U << CAP_NET_RAW);
  return ::syscall(SYS_capset, &head, data) == 0;
}

TEST(PacketSockets, OneThatWasKeptIsUsedWithoutTheRightToOpenMore) {
  if (!may_open_packet_sockets()) GTEST_SKIP() << "only root may open packet sockets";
  std::string error;
  ASSERT_TRUE(keep_packet_socket(error)) << error;
  std::thread([] {
    ASSERT_TRUE(give_up_raw_sockets());
    EXPECT_TRUE(may_open_packet_sockets());
    const int kept = open_packet_socket();
    ASSERT_GE(kept, 0);
    EXPECT_FALSE(may_open_packet_sockets());
    EXPECT_EQ(open_packet_socket(), -1);
    EXPECT_EQ(errno, EPERM);
    close_packet_socket(kept);
    EXPECT_EQ(open_packet_socket(), kept) << "it can be used again";
    close_packet_socket(kept);
    std::string why;
    EXPECT_FALSE(keep_packet_socket(why));
    EXPECT_NE(why.find("CAP_NET_RAW"), std::string::npos) << why;
  }).join();
}

}  // namespace
}  // namespace stp::port
