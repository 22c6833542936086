// SPDX-License-Identifier: BSD-3-Clause
// The registry of uDAPL 1.2: dat.conf, providers that register themselves, and invalid handles.
#include <dat/dat_registry.h>

#include <array>
#include <cstring>
#include <set>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

// A provider of one IA, whose objects consist of the first word only.
struct Foreign {
  static inline const DAT_PROVIDER* object = nullptr;
  static inline int closed = 0;
  static DAT_RETURN open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE* ia) {
    *ia = &object;
    return DAT_SUCCESS;
  }
  static DAT_RETURN close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS) {
    ++closed;
    return DAT_SUCCESS;
  }
  Foreign() {
    std::strcpy(info.ia_name, "foreign");
    provider.ia_open_func = open;
    provider.ia_close_func = close;
    object = &provider;
  }
  DAT_PROVIDER provider{};
  DAT_PROVIDER_INFO info{{}, 1, 2, DAT_FALSE};
};

class DatRegistry : public testing::Test {
 protected:
  DatRegistry() : link_("loop") { use_conf(); }

  static std::string open(std::string name, DAT_UINT32 minor = 2, DAT_BOOLEAN safe = DAT_FALSE,
                          DAT_UINT32 major = 1) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    const auto result = dat_ia_openv(name.data(), 8, &async, &ia, major, minor, safe);
    if (result == DAT_SUCCESS) {
      EXPECT_EQ(name_of(dat_ia_close(ia, DAT_CLOSE_DEFAULT)), "DAT_SUCCESS");
    }
    return name_of(result);
  }
  static std::multiset<std::string> listed() {
    std::array<DAT_PROVIDER_INFO, 16> info{};
    std::array<DAT_PROVIDER_INFO*, 16> places{};
    for (std::size_t i = 0; i < info.size(); ++i) places[i] = &info[i];
    DAT_COUNT number = 0;
    EXPECT_EQ(name_of(dat_registry_list_providers(16, &number, places.data())), "DAT_SUCCESS");
    std::multiset<std::string> names;
    for (DAT_COUNT i = 0; i < number; ++i) names.insert(info[static_cast<std::size_t>(i)].ia_name);
    return names;
  }

 private:
  UseLink link_;
};

using Names = std::multiset<std::string>;

TEST_F(DatRegistry, ListsTheLinesOfDatConfThatAreForThisInterface) {
  EXPECT_EQ(listed(), (Names{"gone", "later", "nolink", "stp safe", "stp0", "stp0"}));
}

TEST_F(DatRegistry, AListThatIsTooSmallFailsAndTellsTheNumber) {
  DAT_COUNT number = 0;
  DAT_PROVIDER_INFO info, *places[] = {&info};
  EXPECT_EQ(name_of(dat_registry_list_providers(1, &number, places)), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(number, 6);
  EXPECT_EQ(name_of(dat_registry_list_providers(6, &number, nullptr)), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_registry_list_providers(6, nullptr, places)), "DAT_INVALID_PARAMETER");
}

TEST_F(DatRegistry, OpensWhatDatConfNamesInTheVersionThatIsAskedForOrALaterOne) {
  EXPECT_EQ(open("stp0"), "DAT_SUCCESS");
  EXPECT_EQ(open("stp0", 0), "DAT_SUCCESS");
  EXPECT_EQ(open("stp0", 3), "DAT_PROVIDER_NOT_FOUND");
  EXPECT_EQ(open("later", 3), "DAT_SUCCESS");
  EXPECT_EQ(open("stp0", 2, DAT_FALSE, 2), "DAT_PROVIDER_NOT_FOUND");
  EXPECT_EQ(open("two", 0, DAT_FALSE, 2), "DAT_PROVIDER_NOT_FOUND");
}

TEST_F(DatRegistry, ASaferProviderServesAProgramThatNeedsNoSafetyButNotTheOtherWayRound) {
  EXPECT_EQ(open("stp safe", 2, DAT_FALSE), "DAT_SUCCESS");
  EXPECT_EQ(open("stp safe", 2, DAT_TRUE), "DAT_SUCCESS");
  EXPECT_EQ(open("stp0", 2, DAT_TRUE), "DAT_SUCCESS");
  EXPECT_EQ(open("nolink", 2, DAT_TRUE), "DAT_PROVIDER_NOT_FOUND");
}

TEST_F(DatRegistry, ANameThatIsAwareOfRelaxedOrderingIsTheOneBehindIt) {
  EXPECT_EQ(open("RO_AWARE_stp0"), "DAT_SUCCESS");
}

TEST_F(DatRegistry, WhatCannotBeOpenedSaysWhy) {
  EXPECT_EQ(open("nobody"), "DAT_PROVIDER_NOT_FOUND");
  EXPECT_EQ(open("gone"), "DAT_PROVIDER_NOT_FOUND");
  EXPECT_EQ(open("nolink"), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(open(std::string(300, 'x')), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(dat_ia_openv(nullptr, 8, nullptr, nullptr, 1, 2, DAT_FALSE), DAT_INVALID_PARAMETER);
}

TEST_F(DatRegistry, AProviderThatRegistersItselfIsListedOpenedAndRemoved) {
  Foreign foreign;
  ASSERT_EQ(dat_registry_add_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  EXPECT_EQ(listed().count("foreign"), 1U);
  EXPECT_EQ(open("foreign"), "DAT_SUCCESS");
  EXPECT_EQ(Foreign::closed, 1);
  EXPECT_EQ(dat_registry_remove_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  EXPECT_EQ(listed().count("foreign"), 0U);
  EXPECT_EQ(open("foreign"), "DAT_PROVIDER_NOT_FOUND");
  EXPECT_EQ(dat_ia_close(&Foreign::object, DAT_CLOSE_DEFAULT), DAT_INVALID_HANDLE);
}

TEST_F(DatRegistry, ACallThatAProviderDoesNotHaveIsNotImplemented) {
  Foreign foreign;
  ASSERT_EQ(dat_registry_add_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_evd_enable(&Foreign::object)), "DAT_NOT_IMPLEMENTED");
  EXPECT_EQ(dat_registry_remove_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
}

TEST_F(DatRegistry, ANameIsRegisteredOnce) {
  Foreign foreign;
  ASSERT_EQ(dat_registry_add_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_registry_add_provider(&foreign.provider, &foreign.info)),
            "DAT_PROVIDER_ALREADY_REGISTERED");
  EXPECT_EQ(dat_registry_add_provider(nullptr, &foreign.info), DAT_INVALID_PARAMETER);
  EXPECT_EQ(dat_registry_add_provider(&foreign.provider, nullptr), DAT_INVALID_PARAMETER);
  EXPECT_EQ(dat_registry_remove_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
}

TEST_F(DatRegistry, AProviderIsNotRemovedWhileAnIaOfItIsOpen) {
  Foreign foreign;
  ASSERT_EQ(dat_registry_add_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  char name[] = "foreign";
  ASSERT_EQ(dat_ia_open(name, 8, &async, &ia), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_registry_remove_provider(&foreign.provider, &foreign.info)),
            "DAT_PROVIDER_IN_USE");
  EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
  EXPECT_EQ(dat_registry_remove_provider(&foreign.provider, &foreign.info), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_registry_remove_provider(&foreign.provider, &foreign.info)),
            "DAT_INVALID_PARAMETER");
}

TEST_F(DatRegistry, MoreProvidersThanThereArePlacesAreInsufficientResources) {
  std::vector<Foreign> many(129);
  std::size_t added = 0;
  auto result = DAT_RETURN{DAT_SUCCESS};
  for (; added < many.size() && result == DAT_SUCCESS; ++added) {
    std::strcpy(many[added].info.ia_name, std::to_string(added).c_str());
    result = dat_registry_add_provider(&many[added].provider, &many[added].info);
  }
  EXPECT_EQ(name_of(result), "DAT_INSUFFICIENT_RESOURCES");
  for (std::size_t i = 0; i + 1 < added; ++i)
    EXPECT_EQ(dat_registry_remove_provider(&many[i].provider, &many[i].info), DAT_SUCCESS);
}

TEST_F(DatRegistry, AHandleThatPointsAnywhereIsInvalidAndNoCrash) {
  EXPECT_EQ(open("stp0"), "DAT_SUCCESS");
  long word = 17;
  const void* itself = &itself;
  const auto anywhere = {DAT_HANDLE_NULL,
                         DAT_HANDLE{&word},
                         DAT_HANDLE{&itself},
                         reinterpret_cast<DAT_HANDLE>(0x10),
                         reinterpret_cast<DAT_HANDLE>(0x11),
                         reinterpret_cast<DAT_HANDLE>(0xdead'beef'0000),
                         reinterpret_cast<DAT_HANDLE>(~0UL - 7)};
  for (auto* const handle : anywhere) {
    EXPECT_EQ(name_of(dat_ep_free(handle)), "DAT_INVALID_HANDLE") << handle;
    DAT_HANDLE_TYPE type;
    EXPECT_EQ(name_of(dat_get_handle_type(handle, &type)), "DAT_INVALID_HANDLE") << handle;
  }
}

TEST_F(DatRegistry, StrerrorNamesTypeAndSubtype) {
  const char *major = nullptr, *minor = nullptr;
  ASSERT_EQ(dat_strerror(DAT_SUCCESS, &major, &minor), DAT_SUCCESS);
  EXPECT_STREQ(major, "DAT_SUCCESS");
  ASSERT_EQ(dat_strerror(DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP), &major, &minor),
            DAT_SUCCESS);
  EXPECT_STREQ(major, "DAT_INVALID_HANDLE");
  EXPECT_STREQ(minor, "DAT_INVALID_HANDLE_EP");
  EXPECT_EQ(dat_strerror(0x00ff0000, &major, &minor), DAT_INVALID_PARAMETER);
  EXPECT_EQ(dat_strerror(DAT_INVALID_HANDLE | 0xfff0, &major, &minor), DAT_INVALID_PARAMETER);
}

}  // namespace
}  // namespace stp::test
