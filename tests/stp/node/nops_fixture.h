// SPDX-License-Identifier: BSD-3-Clause
// Two Nodes whose users send NOPs, each with a number, to see what leaves and what arrives.
#pragma once

#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Nops : public TwoNodes {
 protected:
  using TwoNodes::TwoNodes;

  SendEntry nop(std::uint32_t number) {
    auto e = control(wire::Op::kNoOperation);
    e.header.s_id = number;
    return e;
  }
};

}  // namespace stp::test
