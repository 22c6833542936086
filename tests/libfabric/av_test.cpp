// SPDX-License-Identifier: BSD-3-Clause
// Address vectors.
#include <arpa/inet.h>

#include <array>

#include "tests/libfabric/rdm_fixture.h"

namespace stp::test::av_test {
namespace {

sockaddr_in address(const char* host, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, host, &made.sin_addr), 1);
  return made;
}

class FiAv : public RdmTest {
 protected:
  fid_av* av() const { return a_->av.get(); }
  // The address of that number; empty: there is none.
  std::string at(fi_addr_t number) const {
    sockaddr_in found{};
    auto length = sizeof found;
    if (fi_av_lookup(av(), number, &found, &length) != 0) return {};
    EXPECT_EQ(length, sizeof found);
    std::array<char, 64> text{};
    auto room = text.size();
    EXPECT_NE(fi_av_straddr(av(), &found, text.data(), &room), nullptr);
    EXPECT_EQ(room, std::strlen(text.data()) + 1);
    return text.data();
  }
};

TEST_F(FiAv, InsertedAddressesAreFoundByTheirNumbers) {
  const std::array given{address("10.9.0.7", 5000), address("10.9.0.8", 5001)};
  std::array<fi_addr_t, 2> numbers{};
  ASSERT_EQ(fi_av_insert(av(), given.data(), given.size(), numbers.data(), 0, nullptr), 2);
  EXPECT_EQ(numbers[1], numbers[0] + 1);  // as a table has it
  EXPECT_EQ(at(numbers[0]), "fi_sockaddr_in://10.9.0.7:5000");
  EXPECT_EQ(at(numbers[1]), "fi_sockaddr_in://10.9.0.8:5001");
  EXPECT_EQ(at(1000), "");
}

TEST_F(FiAv, WhatIsNoAddressIsNotInserted) {
  auto given = std::array{address("10.9.0.7", 5000), address("10.9.0.7", 0),
                          address("0.0.0.0", 5000), address("10.9.0.9", 5000)};
  given[3].sin_family = AF_INET6;
  std::array<fi_addr_t, 4> numbers{};
  std::array<int, 4> errors{-1, -1, -1, -1};
  EXPECT_EQ(
      fi_av_insert(av(), given.data(), given.size(), numbers.data(), FI_SYNC_ERR, errors.data()),
      1);
  EXPECT_EQ(errors, (std::array{0, FI_EINVAL, FI_EINVAL, FI_EINVAL}));
  EXPECT_EQ(numbers[1], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(fi_av_insert(av(), given.data(), 1, numbers.data(), FI_EVENT, nullptr), -FI_EBADFLAGS);
}

TEST_F(FiAv, NamesOfServicesAreInserted) {
  std::array<fi_addr_t, 4> numbers{};
  ASSERT_EQ(fi_av_insertsvc(av(), "127.0.0.1", "4711", numbers.data(), 0, nullptr), 1);
  EXPECT_EQ(at(numbers[0]), "fi_sockaddr_in://127.0.0.1:4711");
  EXPECT_EQ(fi_av_insertsvc(av(), "127.0.0.1", "http", numbers.data(), 0, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_av_insertsym(av(), "10.9.0.1", 2, "50", 2, numbers.data(), 0, nullptr), 4);
  EXPECT_EQ(at(numbers[1]), "fi_sockaddr_in://10.9.0.1:51");
  EXPECT_EQ(at(numbers[2]), "fi_sockaddr_in://10.9.0.2:50");
}

TEST_F(FiAv, ARemovedAddressIsNoneAnyMore) {
  const auto given = address("10.9.0.7", 5000);
  auto first = a_->insert(given);
  auto second = a_->insert(given);
  EXPECT_NE(first, second);
  ASSERT_EQ(fi_av_remove(av(), &first, 1, 0), 0);
  EXPECT_EQ(at(first), "");
  EXPECT_EQ(at(second), "fi_sockaddr_in://10.9.0.7:5000");
  EXPECT_EQ(fi_av_remove(av(), &first, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_send(a_->ep.get(), "x", 1, nullptr, first, nullptr), -FI_EINVAL);
  EXPECT_EQ(a_->insert(address("10.9.0.9", 1)), first);  // the place is free
}

TEST_F(FiAv, WhatIsNotOfferedIsRefused) {
  fid_av* made = nullptr;
  fi_av_attr attr{};
  attr.name = "shared";
  EXPECT_EQ(fi_av_open(a_->domain.get(), &attr, &made, nullptr), -FI_ENOSYS);
  attr.name = nullptr;
  attr.flags = FI_EVENT;
  EXPECT_EQ(fi_av_open(a_->domain.get(), &attr, &made, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&a_->av->fid), -FI_EBUSY);
}

}  // namespace
}  // namespace stp::test::av_test
