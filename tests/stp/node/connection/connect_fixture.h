// SPDX-License-Identifier: BSD-3-Clause
// Two Nodes that connect and disconnect over a wire that may lose frames.
#pragma once

#include "tests/stp/node/two_nodes.h"

namespace stp::test {

using wire::Op;

class Connect : public TwoNodes {
 protected:
  VcInfo info(Host& host, const Connection& c) {
    VcInfo out{};
    EXPECT_EQ(host.node.vc_info(c.id, out), 0);
    return out;
  }
  // A wire that loses the first `count` frames of one operation.
  void lose(Op op, unsigned count) {
    wire = [=, left = count](const Frame& f, bool) mutable -> unsigned {
      if (left == 0 || parsed(f).header.op() != op) return 1;
      --left;
      return 0;
    };
  }
  [[nodiscard]] std::size_t sent(Op op) const {
    std::size_t n = 0;
    for (const auto& f : seen) n += parsed(f).header.op() == op;
    return n;
  }
};

}  // namespace stp::test
