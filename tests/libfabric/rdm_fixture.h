// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of FI_EP_RDM on the link `loop`: two of them, each with its own fabric.
#pragma once

#include <rdma/fi_tagged.h>

#include <cstring>

#include "tests/libfabric/fi_fixture.h"

namespace stp::test {

Info rdm_hints();
std::vector<char> pattern(std::size_t size, unsigned seed = 0);

// A completion, and who it is from.
struct Told : fi_cq_tagged_entry {
  fi_addr_t source = FI_ADDR_NOTAVAIL;
};

// An endpoint with all that it needs.
struct RdmNode {
  explicit RdmNode(const Info& info, std::uint64_t cq_flags = 0, fi_av_type type = FI_AV_MAP);

  [[nodiscard]] sockaddr_in name() const;
  fi_addr_t insert(const sockaddr_in& address) const;
  Fid<fid_mr> memory(void* data, std::size_t length, std::uint64_t access) const;
  // The next completion; `failed` where it is an error.
  Told completed(fid_cq* from);
  fi_cq_err_entry failed(fid_cq* from);
  // Nothing is told now.
  void expect_nothing(fid_cq* from);
  // As fi_cq_readfrom, with progress of the other nodes: all are this thread's.
  ssize_t read(fid_cq* from, Told& told);

  std::vector<RdmNode*> others;
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_cq> tx, rx;
  Fid<fid_av> av;
  Fid<fid_ep> ep;
};

class RdmTest : public testing::Test {
 protected:
  RdmTest() { make(); }
  // The two anew.
  void make(std::uint64_t cq_flags = 0, const std::function<void(fi_info&)>& change = {});
  // `a` sends one message to `b`, which has posted no receive, and gets told of it.
  void send_early(const std::string& bytes, std::uint64_t tag);
  Told receive(std::vector<char>& to, std::uint64_t tag, std::uint64_t ignore = 0);
  // Makes progress until `b` knows of a message with that tag.
  void await_message(std::uint64_t tag);

  Info info_;
  std::unique_ptr<RdmNode> a_, b_;
  fi_addr_t to_b_ = FI_ADDR_NOTAVAIL, to_a_ = FI_ADDR_NOTAVAIL;  // for the other one
};

}  // namespace stp::test
