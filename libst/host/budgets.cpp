// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/budgets.h"

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
#include "libst/ipc/socket.h"
#include "libst/os/file_limit.h"
#include "libst/os/memory_limit.h"
#include "stp/base/assert.h"

namespace stp::host {

namespace {

// Every user may hold 1/kLeastPart of the total while that much is left.
constexpr std::uint64_t kLeastPart = 256;

std::size_t index_of(Resource resource) {
  return static_cast<std::size_t>(resource);
}

}  // namespace

std::uint64_t share_of(std::uint64_t total, std::uint64_t others, std::size_t users,
                       unsigned percent, std::uint64_t least) {
  __extension__ using Wide = unsigned __int128;
  if (total == kNoBound) return kNoBound;
  const auto left = total - std::min(total, others);
  const auto parts = 100 + std::uint64_t{percent} * (std::max<std::size_t>(users, 1) - 1);
  const auto share = static_cast<std::uint64_t>(Wide{left} * percent / parts);
  return std::min(left, std::max({share, total / kLeastPart, least}));
}

// ---- Budgets

void Budgets::set_total(Resource resource, std::uint64_t total) {
  const Lock guard(mutex_);
  wholes_[index_of(resource)].total = total;
}

void Budgets::set_share(unsigned percent) {
  const Lock guard(mutex_);
  percent_ = percent;
}

Account Budgets::account(uid_t uid, bool trusted) {
  Account made;
  made.budgets_ = shared_from_this();
  const Lock guard(mutex_);
  const auto [at, is_new] = users_.try_emplace(uid);
  auto& user = at->second;
  if (is_new) user.uid = uid;  // read without the mutex (Account::uid)
  user.trusted = trusted;
  ++user.holders;
  made.user_ = &user;
  return made;
}

std::uint64_t Budgets::most_of(const User& user, std::size_t resource) const {
  const auto& whole = wholes_[resource];
  const auto own = user.used[resource];
  STP_ASSERT(own <= whole.used, "what a user has is a part of the whole");
  const auto others = whole.used - own;
  if (whole.total == kNoBound) return kNoBound;
  if (user.trusted) return whole.total - std::min(whole.total, others);
  const auto least = resource == index_of(Resource::kFiles) ? kFilesOfAProgram : 1;
  return share_of(whole.total, others, whole.users + (own == 0 ? 1 : 0), percent_, least);
}

// `first`: of its reservation.
bool Budgets::take(User& user, Resource resource, std::uint64_t amount, bool first) {
  const Lock guard(mutex_);
  const auto at = index_of(resource);
  auto& own = user.used[at];
  const auto most = most_of(user, at);
  if (own > most || amount > most - own) return false;
  if (own == 0 && amount != 0) ++wholes_[at].users;
  own += amount;
  wholes_[at].used += amount;
  if (first) ++user.holders;
  STP_ASSERT(own <= wholes_[at].used && wholes_[at].users <= users_.size(),
             "what a user has is a part of the whole, and its holders are users");
  return true;
}

// `whole`: the reservation ends. Otherwise it only shrinks.
void Budgets::give(User& user, const Amounts& amounts, bool whole) {
  const Lock guard(mutex_);
  STP_ASSERT(user.holders > 0, "a user that returns some has a reservation");
  for (std::size_t at = 0; at < kResources; ++at) {
    const auto amount = amounts[at];
    if (amount == 0) continue;
    STP_ASSERT(amount <= user.used[at] && amount <= wholes_[at].used,
               "what is given back was taken");
    STP_ASSERT(wholes_[at].users > 0, "a user that returns some was counted");
    user.used[at] -= amount;
    wholes_[at].used -= amount;
    if (user.used[at] == 0) --wholes_[at].users;
  }
  if (!whole) return;
  --user.holders;
  forget_if_empty(user);
}

void Budgets::close(User& user) {
  const Lock guard(mutex_);
  STP_ASSERT(user.holders > 0, "an account that closes was open");
  --user.holders;
  forget_if_empty(user);
}

void Budgets::forget_if_empty(User& user) {
  if (user.holders != 0) return;
  STP_ASSERT(std::ranges::all_of(user.used, [](auto used) { return used == 0; }),
             "a user without accounts and reservations holds nothing");
  users_.erase(user.uid);
}

std::string Budgets::refusal(const User& user, Resource resource) const {
  const Lock guard(mutex_);
  const auto at = index_of(resource);
  const auto& name = describe(resource);
  const auto share = std::string(name.remedy) == "--user-share" ? "" : " or --user-share";
  return "uid " + std::to_string(user.uid) + " has " + std::to_string(user.used[at]) + " of " +
         std::to_string(wholes_[at].total) + ' ' + name.plural +
         ", more exceeds its limit: raise " + name.remedy + share;
}

std::optional<Budgets::Usage> Budgets::after(std::optional<uid_t> uid) const {
  const Lock guard(mutex_);
  const auto at = uid ? users_.upper_bound(*uid) : users_.begin();
  if (at == users_.end()) return std::nullopt;
  const auto& user = at->second;
  Usage usage{.uid = user.uid, .trusted = user.trusted, .used = user.used, .most = {}};
  for (std::size_t i = 0; i < kResources; ++i) usage.most[i] = most_of(user, i);
  return usage;
}

// ---- Reservation

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  reset();
  budgets_ = std::move(other.budgets_);
  user_ = std::exchange(other.user_, nullptr);
  amounts_ = std::exchange(other.amounts_, {});
  return *this;
}

void Reservation::reset() {
  if (user_ != nullptr) budgets_->give(*std::exchange(user_, nullptr), amounts_, true);
  amounts_ = {};
  budgets_.reset();
}

void Reservation::shrink(Resource resource, std::uint64_t amount) {
  auto& has = amounts_[index_of(resource)];
  if (user_ == nullptr || amount >= has) return;
  Amounts more{};
  more[index_of(resource)] = has - amount;
  budgets_->give(*user_, more, false);
  has = amount;
}

// Afterwards one reservation counts as a holder of the user, not two.
void Reservation::join(Reservation&& other) {
  if (user_ == nullptr) {
    *this = std::move(other);
    return;
  }
  if (other.user_ == nullptr) return;
  STP_ASSERT(user_ == other.user_, "reservations that become one are of the same user");
  for (std::size_t i = 0; i < kResources; ++i) amounts_[i] += std::exchange(other.amounts_[i], 0);
  other.reset();
}

// ---- Account

Account& Account::operator=(Account&& other) noexcept {
  if (this == &other) return *this;
  close();
  budgets_ = std::move(other.budgets_);
  user_ = std::exchange(other.user_, nullptr);
  return *this;
}

void Account::close() {
  if (user_ != nullptr) budgets_->close(*std::exchange(user_, nullptr));
  budgets_.reset();
}

bool Account::reserve(Resource resource, std::uint64_t amount, Reservation& out) const {
  STP_ASSERT(out.user_ == nullptr || out.user_ == user_, "what an object holds one user pays for");
  if (user_ == nullptr || !budgets_->take(*user_, resource, amount, out.user_ == nullptr))
    return false;
  out.budgets_ = budgets_;
  out.user_ = user_;
  out.amounts_[index_of(resource)] += amount;
  return true;
}

std::string Account::refusal(Resource resource) const {
  return user_ == nullptr ? std::string() : budgets_->refusal(*user_, resource);
}

namespace {

// Reserved for the process: stacks, the heap's arenas, what DPDK maps later.
constexpr std::uint64_t kOwnMappings = 2'048;
// Reserved for descriptors that are attached to requests, and for a few files of the process. Fewer
// where few files may be open at all.
constexpr std::uint64_t kOwnFiles = 64, kOwnPart = 16;
std::uint64_t left(std::uint64_t most, std::uint64_t taken) {
  return most - std::min(most, taken);
}

}  // namespace

std::uint64_t free_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t now = 0;
  for (std::string line; std::getline(maps, line);) ++now;
  return left(os::most_mappings(), now + kOwnMappings);
}

std::uint64_t free_files() {
  std::error_code ignored;
  std::filesystem::directory_iterator const files("/proc/self/fd", ignored);
  const auto now = ignored ? 0 : std::distance(begin(files), end(files));
  const auto most = static_cast<std::uint64_t>(os::first_reserved_file());
  return left(most, static_cast<std::uint64_t>(now) + std::min(kOwnFiles, most / kOwnPart));
}

namespace {

constexpr char kForms[] =
    "write all:PORTS, user:NAME:PORTS or group:NAME:PORTS, where PORTS is one port, as 3000, or a "
    "range, as 3000-3999, from 1 to 4294967295";

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
  return out.first != 0 && out.first <= out.last;
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
  if (rules_.empty() || ipc::is_trusted(uid)) return true;
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
    id = ipc::find_user(name);
  } else if (kind == "group" && !name.empty()) {
    rule.who = PortRule::Who::kGroup;
    id = ipc::find_group(name);
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
  const Totals::Memory memory{os::memory_of_machine(), os::memory_to_be_had()};
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
  const bool trusted = ipc::is_trusted(user) || user == ipc::kUnknownUser;
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

int Allowances::within(const ProgramUse& use, ProgramUse::Count ProgramUse::*of,
                       std::uint64_t more) {
  const auto& rule = *std::ranges::find(kQuotaRules, of, &QuotaRule::used);
  const std::uint64_t used = use.*of, limit = quotas_.*rule.limit;
  if (used <= limit && more <= limit - used) return 0;
  if (!answering_) return -EDQUOT;
  if (rule.option != nullptr)
    why_ = std::string("this program has all that ") + rule.option + ' ' + std::to_string(limit) +
           " of stpd allows: raise it, then SIGHUP";
  else
    why_ = "the Bufx tables of this program take " + std::to_string(used) + " of at most " +
           std::to_string(limit) + " bytes: map fewer buffers";
  return -EDQUOT;
}

int Allowances::forbidden(std::string why) {
  if (answering_) why_ = std::move(why);
  return -EACCES;
}

}  // namespace stp::host
