// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/options.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "libst/client/error.h"
#include "libst/include/stp/st.h"
#include "libst/ipc/requests.h"
#include "stp/channel/layout.h"
#include "stp/node/node.h"
#include "stp/wire/layout.h"

namespace stp::client {
namespace {

using ipc::VcFacts;
using ipc::WireConfig;
using wire::kMaxBufsize;
using wire::kMaxMaxStu;
using wire::kMinBufsize;
using wire::kMinMaxStu;

constexpr OptionRule kRules[] = {
    {ST_OPT_BUFSIZE_LOCAL, &WireConfig::bufsize, &VcFacts::local_bufsize, kMinBufsize, kMaxBufsize},
    {ST_OPT_BUFSIZE_REMOTE, nullptr, &VcFacts::remote_bufsize},
    {ST_OPT_MAXSTU_LOCAL, &WireConfig::max_stu, &VcFacts::local_max_stu, kMinMaxStu, kMaxMaxStu},
    {ST_OPT_MAXSTU_REMOTE, nullptr, &VcFacts::remote_max_stu},
    {ST_OPT_KEY_LOCAL, &WireConfig::key, &VcFacts::local_key, 0, UINT32_MAX, true},
    {ST_OPT_KEY_REMOTE, nullptr, &VcFacts::remote_key},
    {ST_OPT_PORT_LOCAL, &WireConfig::port, &VcFacts::local_port, 0, wire::kMaxPort},
    {ST_OPT_PORT_REMOTE, nullptr, &VcFacts::remote_port},
    {ST_OPT_RX_BUFX_BASE, &WireConfig::rx_bufx_base, nullptr},
    {ST_OPT_RX_BUFX_COUNT, &WireConfig::rx_bufx_count, nullptr},
    {ST_OPT_RX_SLOTS, &WireConfig::slots, &VcFacts::local_slots, 1, kMaxSlots},
    {ST_OPT_TX_BUFX_BASE, &WireConfig::tx_bufx_base, nullptr},
    {ST_OPT_TX_BUFX_COUNT, &WireConfig::tx_bufx_count, nullptr},
    {ST_OPT_TX_CREDITS, &WireConfig::credits, nullptr, 1, kMaxCredits},
    {ST_OPT_CHECKSUM, &WireConfig::checksum, nullptr, 0, 1},
    {ST_OPT_KEEP_ALIVE, &WireConfig::keep_alive, nullptr, 0, 1},
    {ST_OPT_RECOVER, &WireConfig::recover, nullptr, 0, 1},
    {ST_OPT_INSPECT, &WireConfig::inspect, nullptr, 0, 1},
    {ST_OPT_CONNECT_PATIENCE, &WireConfig::connect_patience, nullptr, 0, ipc::kLongestPatience},
};

}  // namespace

const OptionRule* find_option(int option) {
  const auto* const rule =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [option](const OptionRule& r) { return r.option == option; });
  return rule == std::end(kRules) ? nullptr : rule;
}

int check_option(const OptionRule& rule, std::uint32_t value) {
  if (rule.remote()) return fail(-EPERM, "the option is read-only: the remote side sets it");
  if (rule.root_only && ::geteuid() != 0) return fail(-EPERM, "only root may set a Key");
  if (value < rule.least || value > rule.most)
    return fail(-EINVAL, std::to_string(value) + " is not in " + std::to_string(rule.least) + ".." +
                             std::to_string(rule.most));
  return 0;
}

}  // namespace stp::client
