// SPDX-License-Identifier: BSD-3-Clause
// The limits that an IA reports are those that docs/udapl.md lists.
#include <sys/mman.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

constexpr std::uint64_t kMaxRegistered = std::uint64_t{1} << 34;

using Limits = std::map<std::string, std::uint64_t>;

// Reads the page's table: lines like | `one`, `another` | 1,024 | ... |
Limits listed() {
  std::ifstream page(STP_UDAPL_PAGE);
  Limits found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Limits of an IA";
    if (!inside || !line.starts_with("| `")) continue;
    const auto bar = line.find('|', 1);
    auto number = line.substr(bar + 1, line.find('|', bar + 1) - bar - 1);
    std::erase(number, ',');
    for (auto at = line.find('`'); at < bar; at = line.find('`', at + 1)) {
      const auto end = line.find('`', at + 1);
      found[line.substr(at + 1, end - at - 1)] = std::stoull(number);
      at = end;
    }
  }
  return found;
}

class FrontIaLimits : public LibstTest {
 protected:
  FrontIaLimits() {
    EXPECT_EQ(name_of(dat_ia_query(side.ia, nullptr, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL,
                                   &provider)),
              "DAT_SUCCESS");
  }
  [[nodiscard]] Limits told() const {
    Limits told;
    const auto add = [&](const char* name, auto value) {
      told[name] = static_cast<std::uint64_t>(value);
    };
#define LIMIT(from, name) add(#name, (from).name)
    LIMIT(ia, max_eps);
    LIMIT(ia, max_dto_per_ep);
    LIMIT(ia, max_evd_qlen);
    LIMIT(ia, max_iov_segments_per_dto);
    LIMIT(ia, max_iov_segments_per_rdma_read);
    LIMIT(ia, max_iov_segments_per_rdma_write);
    // The field of 2.0 has 32 bits: as much of the limit as fits.
    const auto block = static_cast<std::uint64_t>(ia.max_lmr_block_size);
    add("max_lmr_block_size", block == UINT32_MAX ? kMaxRegistered : block);
    LIMIT(ia, max_lmr_virtual_address);
    LIMIT(ia, max_rmr_target_address);
    LIMIT(ia, max_message_size);
    LIMIT(ia, max_rdma_size);
    LIMIT(provider, max_private_data_size);
    LIMIT(ia, max_rdma_read_per_ep_in);
    LIMIT(ia, max_rdma_read_per_ep_out);
    LIMIT(ia, max_rdma_read_in);
    LIMIT(ia, max_rdma_read_out);
    LIMIT(ia, max_recv_per_srq);
    LIMIT(ia, max_ep_per_srq);
    LIMIT(ia, max_evds);
    LIMIT(ia, max_lmrs);
    LIMIT(ia, max_pzs);
    LIMIT(ia, max_rmrs);
    LIMIT(ia, max_srqs);
#undef LIMIT
    return told;
  }

  Side side;
  DAT_IA_ATTR ia{};
  DAT_PROVIDER_ATTR provider{};
};
STP_BOTH_WAYS(FrontIaLimits);

TEST_P(FrontIaLimits, ThePageListsWhatTheIaTells) {
  EXPECT_EQ(listed(), told());
}

TEST_P(FrontIaLimits, AnEpHasAsManyOperationsAsTheIaTellsAndNoMore) {
  side.attr.max_recv_dtos = side.attr.max_request_dtos = ia.max_dto_per_ep;
  const auto ep = side.make_ep();
  DAT_EP_PARAM param{};
  ASSERT_EQ(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.ep_attr.max_recv_dtos, ia.max_dto_per_ep);
  side.attr.max_recv_dtos = ia.max_dto_per_ep + 1;
  DAT_EP_HANDLE none = DAT_HANDLE_NULL;
  EXPECT_EQ(name_of(dat_ep_create(side.ia, side.pz, side.recv, side.request, side.connect,
                                  &side.attr, &none)),
            "DAT_INVALID_PARAMETER");
}

TEST_P(FrontIaLimits, AnEvdHasTheLongestLengthThatTheIaTellsAndNoMore) {
  side.evd(ia.max_evd_qlen, DAT_EVD_SOFTWARE_FLAG);
  DAT_EVD_HANDLE none = DAT_HANDLE_NULL;
  EXPECT_EQ(name_of(dat_evd_create(side.ia, ia.max_evd_qlen + 1, DAT_HANDLE_NULL,
                                   DAT_EVD_SOFTWARE_FLAG, &none)),
            "DAT_INSUFFICIENT_RESOURCES");
}

TEST_P(FrontIaLimits, MoreMemoryThanTheIaTellsIsInsufficientResources) {
  const auto length = std::size_t{kMaxRegistered} + 1;
  auto* const memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  DAT_REGION_DESCRIPTION region{};
  region.for_va = memory;
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context = 0;
  EXPECT_EQ(name_of(create_lmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, length, side.pz,
                               DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, nullptr)),
            "DAT_INSUFFICIENT_RESOURCES");
  ::munmap(memory, length);
}

TEST_P(FrontIaLimits, MemoryOfNoBytesIsALengthError) {
  for (auto* const start : {static_cast<void*>(side.buffer.data()), static_cast<void*>(nullptr)}) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = start;
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    EXPECT_EQ(name_of(create_lmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, 0, side.pz,
                                 DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, nullptr)),
              "DAT_LENGTH_ERROR");
  }
}

}  // namespace
}  // namespace stp::test
