// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace stp::stpctl {
namespace {

TEST(JsonText, HasItsCommasBetweenValuesAndNowhereElse) {
  Json json;
  json.object().value("a", 1).array("b");
  json.object().end().object().value("c", true).end().end();
  json.object("d").end().null("e").end();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[{},{"c":true}],"d":{},"e":null})");
}

TEST(JsonText, EscapesWhatWouldEndAStringOrIsNoCharacter) {
  Json json;
  json.object().value("a\"b", "c\\d\n\x01").end();
  EXPECT_EQ(json.text(), R"({"a\"b":"c\\d\u000a\u0001"})");
}

TEST(JsonText, NumbersKeepAllTheirDigitsAndInfinityIsNone) {
  Json json;
  json.object().value("most", ~std::uint64_t{0}).value("least", std::int64_t{-5});
  json.value("part", 0.25).value("endless", std::numeric_limits<double>::infinity()).end();
  EXPECT_EQ(json.text(), R"({"most":18446744073709551615,"least":-5,"part":0.250,"endless":null})");
}

}  // namespace
}  // namespace stp::stpctl
