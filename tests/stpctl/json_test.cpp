// SPDX-License-Identifier: BSD-3-Clause
#include "tools/json/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
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

// The values stay what they are, but for bytes that are no text.
TEST(JsonText, HasNothingThatControlsATerminal) {
  ::setenv("LC_ALL", "C.UTF-8", 1);
  Json json;
  json.array()
      .value("",
             "\x7f\xc2\x9b"
             "1m \xe2\x80\xae \xc3\xa4 \xf0\x9f\x98\x80 \x9b")
      .end();
  EXPECT_EQ(json.text(), "[\"\\u007f\\u009b1m \\u202e \xc3\xa4 \xf0\x9f\x98\x80 \\ufffd\"]");
  ::setenv("LC_ALL", "C", 1);
  Json ascii;
  ascii.array().value("", "\xc3\xa4\xf0\x9f\x98\x80").end();
  EXPECT_EQ(ascii.text(), "[\"\\u00e4\\ud83d\\ude00\"]");
  ::unsetenv("LC_ALL");
}

TEST(JsonText, NumbersKeepAllTheirDigitsAndInfinityIsNone) {
  Json json;
  json.object().value("most", ~std::uint64_t{0}).value("least", std::int64_t{-5});
  json.value("part", 0.25).value("endless", std::numeric_limits<double>::infinity()).end();
  EXPECT_EQ(json.text(), R"({"most":18446744073709551615,"least":-5,"part":0.250,"endless":null})");
}

}  // namespace
}  // namespace stp::stpctl
