// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/allowances.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "libst/ipc/shared_memory.h"
#include "libst/os/file_limit.h"
#include "libst/service/identity.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

// Reserved for the process: stacks, the heap's arenas, what DPDK maps later.
constexpr std::uint64_t kOwnMappings = 2'048;
// Reserved for descriptors that are attached to requests, and for a few files of the process. Fewer
// where few files may be open at all.
constexpr std::uint64_t kOwnFiles = 64, kOwnPart = 16;
// The kernel's default, for systems where vm.max_map_count cannot be read.
constexpr std::uint64_t kUsualMappings = 65'530;

std::uint64_t left(std::uint64_t most, std::uint64_t taken) {
  return most - std::min(most, taken);
}

}  // namespace

std::uint64_t most_mappings() {
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most == 0 ? kUsualMappings : most;
}

std::uint64_t free_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t now = 0;
  for (std::string line; std::getline(maps, line);) ++now;
  return left(most_mappings(), now + kOwnMappings);
}

std::uint64_t free_files() {
  std::error_code ignored;
  std::filesystem::directory_iterator const files("/proc/self/fd", ignored);
  const auto now = ignored ? 0 : std::distance(begin(files), end(files));
  const auto most = static_cast<std::uint64_t>(first_reserved_file());
  return left(most, static_cast<std::uint64_t>(now) + std::min(kOwnFiles, most / kOwnPart));
}

namespace {

constexpr char kForms[] =
    "write all:PORTS, user:NAME:PORTS or group:NAME:PORTS, where PORTS is one port, as 3000, or a "
    "range, as 3000-3999, up to 4294967295";

bool parse_number(std::string_view text, std::uint32_t& out) {
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, out);
  return failure == std::errc() && stop == end;
}

bool parse_ports(std::string_view text, PortRule& out) {
  const auto dash = text.find('-');
  if (!parse_number(text.substr(0, dash), out.first)) return false;
  out.last = out.first;
  if (dash != std::string_view::npos && !parse_number(text.substr(dash + 1), out.last))
    return false;
  return out.first <= out.last;
}

bool applies(const PortRule& rule, uid_t uid, std::span<const gid_t> groups) {
  switch (rule.who) {
    case PortRule::Who::kAll:
      return true;
    case PortRule::Who::kUser:
      return rule.id == uid;
    case PortRule::Who::kGroup:
      return std::find(groups.begin(), groups.end(), rule.id) != groups.end();
  }
  return false;
}

}  // namespace

bool PortRules::permit(std::uint32_t port, uid_t uid, std::span<const gid_t> groups) const {
  if (rules_.empty() || uid == 0 || uid == ::geteuid()) return true;
  return std::any_of(rules_.begin(), rules_.end(), [&](const PortRule& rule) {
    return rule.first <= port && port <= rule.last && applies(rule, uid, groups);
  });
}

std::optional<PortRule> PortRules::parse(const std::string& text, std::string& error) {
  const auto fail = [&](const std::string& what) {
    error = "'" + text + "': " + what;
    return std::nullopt;
  };
  PortRule rule;
  const auto first = text.find(':'), last = text.rfind(':');
  if (first == std::string::npos || !parse_ports(std::string_view(text).substr(last + 1), rule))
    return fail(kForms);
  const auto kind = text.substr(0, first);
  const auto name = first == last ? std::string() : text.substr(first + 1, last - first - 1);
  if (kind == "all" && first == last) return rule;
  std::optional<std::uint32_t> id;
  if (kind == "user" && !name.empty()) {
    rule.who = PortRule::Who::kUser;
    id = find_user(name);
  } else if (kind == "group" && !name.empty()) {
    rule.who = PortRule::Who::kGroup;
    id = find_group(name);
  } else {
    return fail(kForms);
  }
  if (!id) return fail("there is no " + kind + " '" + name + "' on this machine");
  rule.id = *id;
  return rule;
}

Allowances::Allowances(std::shared_ptr<Budgets> of_link, unsigned shard, unsigned shards)
    : shard_(shard),
      shards_(shards),
      budgets_(of_link ? std::move(of_link) : std::make_shared<Budgets>()) {
  STP_ASSERT(shard < shards, "a shard is one of its link's");
  set_quotas({});
}

void Allowances::set_quotas(const Quotas& quotas) {
  quotas_ = quotas;
  const auto memory =
      static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L)) * page_size();
  budgets_->set_share(quotas.user_share);
  for (const auto& rule : kResourceRules)
    if (rule.by != TotalBy::kProcess)
      budgets_->set_total(rule.resource, quotas.totals.of(rule.resource, memory));
  budgets_->set_total(Resource::kClients, quotas.clients);
  own_ports_->set_share(quotas.user_share);
  if (shards_ > 1)
    own_ports_->set_total(Resource::kConnections,
                          quotas.totals.of(Resource::kConnections, memory) / shards_);
}

void Allowances::set_process_totals(std::uint64_t mappings, std::uint64_t files) {
  budgets_->set_total(Resource::kMappings, mappings);
  budgets_->set_total(Resource::kFiles, files);
}

Payer Allowances::payer(uid_t user) {
  const bool trusted = user == 0 || user == ::geteuid() || user == kUnknownUser;
  return {budgets_->account(user, trusted), own_ports_->account(user, trusted)};
}

int Allowances::reserve(const Payer& payer, Resource resource, std::uint64_t amount,
                        Reservation& out) {
  if (payer.account.reserve(resource, amount, out)) return 0;
  if (answering_) why_ = payer.account.refusal(resource);
  return -EDQUOT;
}

int Allowances::reserve_port(const Payer& payer, Reservation& out) {
  if (payer.ports.reserve(Resource::kConnections, 1, out)) return 0;
  if (answering_)
    why_ =
        "shard " + std::to_string(shard_ + 1) + ": " + payer.ports.refusal(Resource::kConnections);
  return -EDQUOT;
}

int Allowances::over_quota(const char* option, std::uint64_t value) {
  if (answering_)
    why_ = std::string("this program has all that --") + option + ' ' + std::to_string(value) +
           " of stpd allows: raise it, then SIGHUP";
  return -EDQUOT;
}

int Allowances::forbidden(std::string why) {
  if (answering_) why_ = std::move(why);
  return -EACCES;
}

int Allowances::over_tables(std::uint64_t taken) {
  if (answering_)
    why_ = "the Bufx tables of this program take " + std::to_string(taken) + " of at most " +
           std::to_string(limits::kTableBytes) + " bytes: map fewer buffers";
  return -EDQUOT;
}

}  // namespace stp::service
