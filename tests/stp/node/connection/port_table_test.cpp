// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/port_table.h"

#include <gtest/gtest.h>

#include "tests/stp/node/vc_fixture.h"

namespace stp::test {
namespace {

constexpr auto nobody = [](std::uint16_t) { return false; };

TEST(PortTable, an_id_finds_its_connection_and_never_the_next_one_of_its_port) {
  Vcs vcs;
  auto& table = vcs.table;
  const auto id = vcs.make(7).id;
  ASSERT_NE(table.find(id), nullptr);
  EXPECT_EQ(table.find(id), table.at(7));
  const auto gone = table.take(*table.at(7));
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.at(7), nullptr);
  const auto next = vcs.make(7).id;
  EXPECT_NE(next, id);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.count(), 1U);
}

// protocol: 5.3
TEST(PortTable, a_port_rests_before_it_is_chosen_again) {
  Vcs vcs;
  auto& table = vcs.table;
  EXPECT_EQ(table.choose(nobody), 1);
  vcs.make(1);
  EXPECT_EQ(table.choose(nobody), 2);
  const auto gone = table.take(*table.at(1));
  EXPECT_EQ(table.choose(nobody), 3);
  EXPECT_EQ(table.choose([](std::uint16_t port) { return port < 10; }), 10);
}

TEST(PortTable, there_are_ports_as_long_as_one_is_free_and_none_is_0) {
  Vcs vcs;
  auto& table = vcs.table;
  EXPECT_EQ(table.at(0), nullptr);
  for (std::uint32_t i = 0; i < wire::kMaxPort; ++i) {
    const auto port = table.choose(nobody);
    ASSERT_NE(port, 0);
    auto vc = std::make_unique<Vc>();
    vc->local_port = port;
    table.add(std::move(vc));
  }
  EXPECT_TRUE(table.full());
  EXPECT_EQ(table.choose(nobody), 0);
  const auto gone = table.take(*table.at(300));
  EXPECT_EQ(table.choose(nobody), 300);
}

TEST(PortTable, one_of_several_has_its_share_of_the_ports_and_all_of_it) {
  for (const unsigned count : {2U, 3U, 16U}) {
    std::size_t all = 0;
    for (unsigned index = 0; index < count; ++index) {
      PortTable table(PortShare{count, index});
      EXPECT_FALSE(table.is_free(static_cast<std::uint16_t>(index + 1)));
      std::size_t had = 0;
      for (std::uint16_t port = 0; (port = table.choose(nobody)) != 0; ++had) {
        ASSERT_EQ(port % count, index);
        auto vc = std::make_unique<Vc>();
        vc->local_port = port;
        table.add(std::move(vc));
      }
      EXPECT_TRUE(table.full());
      EXPECT_EQ(table.count(), had);
      all += had;
    }
    EXPECT_EQ(all, wire::kMaxPort);
  }
}

TEST(PortTable, is_walked_in_the_order_of_ports) {
  Vcs vcs;
  for (std::uint16_t const port : std::initializer_list<std::uint16_t>{60'000, 5, 300})
    if (vcs.table.is_free(port)) vcs.make(port);
  EXPECT_FALSE(vcs.table.is_free(300));
  EXPECT_EQ(vcs.table.after(0)->local_port, 5);
  EXPECT_EQ(vcs.table.after(5)->local_port, 300);
  EXPECT_EQ(vcs.table.after(300)->local_port, 60'000);
  EXPECT_EQ(vcs.table.after(60'000), nullptr);
  EXPECT_EQ(vcs.table.after(0xffff), nullptr);
}

TEST(PortTable, keeps_what_frames_still_read_from_until_the_last_of_them_has_gone) {
  Vcs vcs;
  auto& vc = vcs.make(9);
  const auto id = vc.id;
  vc.attached = 5;
  vcs.table.keep(vcs.table.take(vc));
  EXPECT_EQ(vcs.table.left_behind(id + 1), nullptr);
  EXPECT_EQ(vcs.table.left_behind(id), nullptr);
  EXPECT_EQ(vcs.table.left_behind(id, 3), nullptr);
  EXPECT_EQ(vcs.table.left_behind(id, 2), nullptr) << "there is one";
  const auto gone = vcs.table.left_behind(id);
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->id, id);
  EXPECT_EQ(vcs.table.left_behind(id), nullptr);
}

}  // namespace
}  // namespace stp::test
