// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/completions.h"

#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

class CompletionsTest : public Parts {
 protected:
  void add_once_taken(Context context) {
    Completion c{};
    c.context = context;
    completions.add_once_taken(c);
  }
  std::vector<Context> ready() {
    std::vector<Context> all;
    while (const auto c = completion()) all.push_back(c->context);
    return all;
  }
};

TEST_F(CompletionsTest, come_in_order) {
  completions.add(Kind::kPut, 1, 0, 100).tag = 7;
  completions.add(Kind::kGet, 2, -ETIMEDOUT);
  const auto first = completion();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, Kind::kPut);
  EXPECT_EQ(first->context, 1U);
  EXPECT_EQ(first->length, 100U);
  EXPECT_EQ(first->tag, 7U);
  EXPECT_EQ(completion()->status, -ETIMEDOUT);
  EXPECT_FALSE(completions.has_ready());
}

TEST_F(CompletionsTest,
       that_return_memory_wait_until_the_node_has_taken_what_was_requested_before) {
  outbox.add(wire::to_header(wire::End{.i_id = 1}));
  add_once_taken(1);
  outbox.add(wire::to_header(wire::End{.i_id = 2}));
  add_once_taken(2);
  EXPECT_EQ(completions.held(), 2U);
  next();
  completions.release();
  EXPECT_EQ(ready(), std::vector<Context>{}) << "it was handed out, not taken";
  outbox.taken(1);
  completions.release();
  EXPECT_EQ(ready(), std::vector<Context>{1});
  node_takes();
  EXPECT_EQ(ready(), std::vector<Context>{2});
  EXPECT_EQ(completions.held(), 0U);
}

TEST_F(CompletionsTest, wait_for_nothing_if_the_node_has_taken_everything) {
  outbox.add(wire::to_header(wire::End{}));
  node_takes();
  add_once_taken(1);
  EXPECT_EQ(ready(), std::vector<Context>{1});
}

TEST_F(CompletionsTest, are_all_ready_when_the_connection_has_ended) {
  outbox.add(wire::to_header(wire::End{}));
  add_once_taken(1);
  completions.release_all();
  EXPECT_EQ(ready(), std::vector<Context>{1});
}

}  // namespace
}  // namespace stp::test
