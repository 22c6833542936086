// SPDX-License-Identifier: BSD-3-Clause
// Address vectors.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

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

TEST_F(FiAv, AnAddressIsCutWhereItHasNoRoom) {
  const auto given = address("10.9.0.7", 5000);
  std::array<char, sizeof given> found{};
  std::size_t length = 4;
  ASSERT_EQ(fi_av_lookup(av(), a_->insert(given), found.data(), &length), 0);
  EXPECT_EQ(length, sizeof given);
  EXPECT_EQ(std::memcmp(found.data(), &given, 4), 0);
  EXPECT_EQ(found[4], 0);
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

// Wrong ones take no place.
TEST_F(FiAv, AHundredThousandWrongAddressesLeaveNothing) {
  constexpr std::size_t kMany = 100'000;
  const std::vector<sockaddr_in> given(kMany, address("10.9.0.7", 0));
  std::vector<fi_addr_t> numbers(kMany);
  const auto before = a_->insert(address("10.9.0.7", 1));
  EXPECT_EQ(fi_av_insert(av(), given.data(), kMany, numbers.data(), 0, nullptr), 0);
  EXPECT_EQ(std::ranges::count(numbers, FI_ADDR_NOTAVAIL), static_cast<std::ptrdiff_t>(kMany));
  EXPECT_EQ(fi_send(a_->ep.get(), "x", 1, nullptr, numbers[0], nullptr), -FI_EINVAL);
  EXPECT_EQ(a_->insert(address("10.9.0.8", 1)), before + 1);
}

// They are removed in a time that grows with their number, be they one address or as many. It is
// another one's number then, wherever that is.
TEST_F(FiAv, AHundredThousandAddressesOfNobodyAreRemoved) {
  constexpr std::size_t kMany = 100'000;
  for (const auto alike : {false, true}) {
    std::vector<sockaddr_in> given(kMany, address("10.9.0.7", 1));
    if (!alike)
      for (std::uint32_t i = 0; i < kMany; ++i) given[i].sin_addr.s_addr = htonl(0x0a0a0000 + i);
    std::vector<fi_addr_t> numbers(kMany);
    ASSERT_EQ(fi_av_insert(av(), given.data(), kMany, numbers.data(), 0, nullptr),
              static_cast<int>(kMany));
    EXPECT_EQ(fi_av_remove(av(), numbers.data(), kMany, 0), 0);
    EXPECT_EQ(at(numbers[0]), "");
    EXPECT_EQ(at(numbers[kMany - 1]), "");
  }
}

// Whatever the type, numbers count up.
TEST_F(FiAv, MapsAndTablesNumberAlike) {
  for (const auto type : {FI_AV_MAP, FI_AV_TABLE, FI_AV_UNSPEC}) {
    fi_av_attr attr{};
    attr.type = type;
    const auto made =
        opened<fid_av>([&](auto** v) { return fi_av_open(a_->domain.get(), &attr, v, nullptr); });
    EXPECT_EQ(attr.type, type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE);
    for (fi_addr_t i = 0; i < 3; ++i) {
      const auto given = address("10.9.0.7", static_cast<std::uint16_t>(5000 + i));
      fi_addr_t number = FI_ADDR_NOTAVAIL;
      ASSERT_EQ(fi_av_insert(made.get(), &given, 1, &number, 0, nullptr), 1);
      EXPECT_EQ(number, i);
    }
  }
}

class FiAvEvent : public FiAv {
 protected:
  FiAvEvent() {
    fi_eq_attr eq_attr{};
    eq_attr.size = kEvents;
    eq_ = opened<fid_eq>(
        [&](auto** q) { return fi_eq_open(a_->fabric.get(), &eq_attr, q, nullptr); });
    fi_av_attr attr{};
    attr.flags = FI_EVENT;
    told_ =
        opened<fid_av>([&](auto** v) { return fi_av_open(a_->domain.get(), &attr, v, nullptr); });
  }
  // What the event queue tells next: how many have been inserted.
  std::uint64_t inserted() {
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    EXPECT_EQ(fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0),
              static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(event, static_cast<std::uint32_t>(FI_AV_COMPLETE));
    EXPECT_EQ(entry.fid, &told_->fid);
    EXPECT_EQ(entry.context, this);
    return entry.data;
  }
  // Which one it was not.
  std::uint64_t not_inserted() {
    fi_eq_err_entry error{};
    EXPECT_EQ(fi_eq_readerr(eq_.get(), &error, 0), static_cast<ssize_t>(sizeof error));
    EXPECT_EQ(error.err, FI_EINVAL);
    EXPECT_EQ(error.context, this);
    return error.data;
  }
  static constexpr std::size_t kEvents = 4;
  Fid<fid_eq> eq_;
  Fid<fid_av> told_;
};

TEST_F(FiAvEvent, AnEventTellsOfEachInsertion) {
  const std::array given{address("10.9.0.7", 5000), address("10.9.0.7", 0),
                         address("10.9.0.8", 5000)};
  std::array<fi_addr_t, 3> numbers{};
  EXPECT_EQ(fi_av_insert(told_.get(), given.data(), 3, numbers.data(), 0, this), -FI_ENOEQ);
  ASSERT_EQ(fi_av_bind(told_.get(), &eq_->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq_->fid), -FI_EBUSY);
  ASSERT_EQ(fi_av_insert(told_.get(), given.data(), 3, numbers.data(), 0, this), 0);
  EXPECT_EQ(not_inserted(), 1U);
  EXPECT_EQ(inserted(), 2U);
  EXPECT_EQ(numbers, (std::array<fi_addr_t, 3>{0, FI_ADDR_NOTAVAIL, 1}));
  ASSERT_EQ(fi_av_insertsvc(told_.get(), "127.0.0.1", "4711", numbers.data(), 0, this), 0);
  EXPECT_EQ(inserted(), 1U);
  std::array<int, 3> errors{};
  EXPECT_EQ(fi_av_insert(told_.get(), given.data(), 3, numbers.data(), FI_SYNC_ERR, errors.data()),
            -FI_EBADFLAGS);
  told_.reset();
}

// The event queue takes as many errors as it has places, and the number of those inserted.
TEST_F(FiAvEvent, ManyWrongAddressesDoNotFillTheEventQueue) {
  ASSERT_EQ(fi_av_bind(told_.get(), &eq_->fid, 0), 0);
  const std::vector<sockaddr_in> given(1000, address("10.9.0.7", 0));
  ASSERT_EQ(fi_av_insert(told_.get(), given.data(), given.size(), nullptr, 0, this), 0);
  for (std::uint64_t i = 0; i < kEvents; ++i) EXPECT_EQ(not_inserted(), i);
  EXPECT_EQ(inserted(), 0U);
  told_.reset();
}

TEST_F(FiAv, WhatIsNotOfferedIsRefused) {
  fid_av* made = nullptr;
  fi_av_attr attr{};
  attr.name = "shared";
  EXPECT_EQ(fi_av_open(a_->domain.get(), &attr, &made, nullptr), -FI_ENOSYS);
  attr.name = nullptr;
  attr.flags = FI_READ;
  EXPECT_EQ(fi_av_open(a_->domain.get(), &attr, &made, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_close(&a_->av->fid), -FI_EBUSY);
}

}  // namespace
}  // namespace stp::test::av_test
