// SPDX-License-Identifier: BSD-3-Clause
// Event queues, and counters.
#include <poll.h>

#include <cstring>

#include "tests/libfabric/fi_fixture.h"

namespace stp::test::eq_test {
namespace {

using FiEq = FiTest;

TEST_F(FiEq, WhatIsWrittenIsPeekedAtAndRead) {
  auto* const eq = server_->eq.get();
  fi_eq_entry entry{};
  entry.data = 77;
  ASSERT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0),
            static_cast<ssize_t>(sizeof entry));
  std::uint32_t event = 99;
  fi_eq_entry read{};
  EXPECT_EQ(fi_eq_read(eq, &event, &read, sizeof read - 1, 0), -FI_ETOOSMALL);
  for (const auto flags : {static_cast<std::uint64_t>(FI_PEEK), std::uint64_t{0}}) {
    EXPECT_EQ(fi_eq_read(eq, &event, &read, sizeof read, flags), static_cast<ssize_t>(sizeof read));
    EXPECT_EQ(event, static_cast<std::uint32_t>(FI_NOTIFY));
    EXPECT_EQ(read.data, 77U);
  }
  EXPECT_EQ(fi_eq_read(eq, &event, &read, sizeof read, 0), -FI_EAGAIN);
}

TEST_F(FiEq, ItsDescriptorIsReadableWhileItHasEvents) {
  auto* const eq = server_->eq.get();
  int fd = -1;
  ASSERT_EQ(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
  fid* objects[] = {&eq->fid};
  ASSERT_EQ(fi_trywait(server_->fabric.get(), objects, 1), 0);
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
  fi_eq_entry entry{};
  ASSERT_GT(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0), 0);
  EXPECT_EQ(::poll(&readable, 1, kPatience), 1);
  EXPECT_EQ(fi_trywait(server_->fabric.get(), objects, 1), -FI_EAGAIN);
}

TEST_F(FiEq, WaitingEndsInTime) {
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  EXPECT_EQ(fi_eq_sread(server_->eq.get(), &event, &entry, sizeof entry, 10, 0), -FI_EAGAIN);
  fi_cq_data_entry completion{};
  EXPECT_EQ(fi_cq_sread(server_->tx.get(), &completion, 1, nullptr, 10), -FI_EAGAIN);
}

TEST_F(FiEq, ACounterCountsWhatItIsBoundTo) {
  fi_cntr_attr attr{};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(client_->domain.get(), &attr, &made, nullptr), 0);
  const Fid<fid_cntr> counter(made);
  EXPECT_EQ(fi_cntr_add(made, 2), 0);
  EXPECT_EQ(fi_cntr_read(made), 2U);
  EXPECT_EQ(fi_cntr_set(made, 0), 0);
  EXPECT_EQ(fi_cntr_seterr(made, 3), 0);
  EXPECT_EQ(fi_cntr_readerr(made), 3U);
  EXPECT_EQ(fi_cntr_seterr(made, 0), 0);
  listen();
  const auto to = destination();
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(client_->domain.get(), to.get(), &ep, nullptr), 0);
  connected_.reset(ep);
  ASSERT_EQ(fi_ep_bind(ep, &client_->eq->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &client_->tx->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(ep, &made->fid, FI_SEND), 0);
  EXPECT_EQ(fi_close(&made->fid), -FI_EBUSY);
  ASSERT_EQ(fi_enable(ep), 0);
  ASSERT_EQ(fi_connect(ep, to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  accepted_ = server_->endpoint(asked.get());
  ASSERT_EQ(fi_accept(accepted_.get(), nullptr, 0), 0);
  ASSERT_EQ(client_->event(), FI_CONNECTED);
  ASSERT_EQ(fi_inject(ep, "x", 1, 0), 0);
  EXPECT_EQ(fi_cntr_wait(made, 1, kPatience), 0);
  EXPECT_EQ(fi_cntr_wait(made, 2, 10), -FI_ETIMEDOUT);
  connected_.reset();
}

}  // namespace
}  // namespace stp::test::eq_test
