// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_file.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace stp::files {
namespace {

class IncomingFileTest : public ::testing::Test {
 protected:
  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  static Digest digest_of(const std::string& text) {
    ContentDigest digest;
    digest.add(bytes(text));
    return digest.value();
  }
  Reason announce(const std::string& name, std::uint64_t size) {
    auto const metadata = encode(Metadata{size, 0644, name});
    return file_.announce(std::as_bytes(std::span(metadata))).reason;
  }

  test::TemporaryDirectory directory_;
  std::string out_ = directory_.path();
  Progress progress_{"test", true};
  IncomingFile file_{out_, progress_};
};

TEST_F(IncomingFileTest, a_file_with_the_right_digest_gets_its_name) {
  ASSERT_EQ(announce("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hel")).reason, Reason::kNone);
  ASSERT_EQ(file_.append(bytes("lo")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hello")).reason, Reason::kNone);
  EXPECT_EQ(directory_.content("file"), "hello");
}

TEST_F(IncomingFileTest, an_empty_file_is_a_file) {
  ASSERT_EQ(announce("file", 0), Reason::kNone);
  ASSERT_EQ(file_.append({}).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("")).reason, Reason::kNone);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"file"});
}

TEST_F(IncomingFileTest, a_wrong_digest_or_a_missing_byte_leaves_nothing) {
  ASSERT_EQ(announce("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hellO")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hello")).reason, Reason::kDigest);
  ASSERT_EQ(announce("file", 5), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("hell")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("hell")).reason, Reason::kDigest);
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFileTest, names_and_sizes_that_cannot_be_are_refused_at_once) {
  EXPECT_EQ(announce("..", 5), Reason::kName);
  EXPECT_EQ(announce("a\nb", 5), Reason::kName);
  EXPECT_EQ(announce("file", std::uint64_t{1} << 62), Reason::kNoSpace);
  EXPECT_EQ(file_.announce(bytes("garbage")).reason, Reason::kProtocol);
  EXPECT_FALSE(file_.under_way());
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(IncomingFileTest, a_new_announcement_discards_what_was_under_way) {
  ASSERT_EQ(announce("one", 5), Reason::kNone);
  ASSERT_EQ(announce("two", 1), Reason::kNone);
  ASSERT_EQ(file_.append(bytes("2")).reason, Reason::kNone);
  EXPECT_EQ(file_.commit(digest_of("2")).reason, Reason::kNone);
  EXPECT_EQ(directory_.names(), std::vector<std::string>{"two"});
}

TEST(ContentDigest, is_the_published_one) {
  // XXH3-128 of no bytes, as its reference implementation states it.
  Digest const empty{0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
  EXPECT_EQ(ContentDigest().value(), empty);
}

}  // namespace
}  // namespace stp::files
