// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/budget.h"

#include <algorithm>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {
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
  std::lock_guard const guard(mutex_);
  wholes_[index_of(resource)].total = total;
}

void Budgets::set_share(unsigned percent) {
  std::lock_guard const guard(mutex_);
  percent_ = percent;
}

Account Budgets::account(uid_t uid, bool trusted) {
  Account made;
  made.budgets_ = shared_from_this();
  std::lock_guard const guard(mutex_);
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

bool Budgets::take(User& user, Resource resource, std::uint64_t amount) {
  std::lock_guard const guard(mutex_);
  const auto at = index_of(resource);
  auto& own = user.used[at];
  const auto most = most_of(user, at);
  if (own > most || amount > most - own) return false;
  if (own == 0 && amount != 0) ++wholes_[at].users;
  own += amount;
  wholes_[at].used += amount;
  ++user.holders;
  STP_ASSERT(own <= wholes_[at].used && wholes_[at].users <= users_.size(),
             "what a user has is a part of the whole, and its holders are users");
  return true;
}

// `whole`: the reservation ends. Otherwise it only shrinks.
void Budgets::give(User& user, Resource resource, std::uint64_t amount, bool whole) {
  std::lock_guard const guard(mutex_);
  const auto at = index_of(resource);
  STP_ASSERT(amount <= user.used[at] && amount <= wholes_[at].used, "what is given back was taken");
  STP_ASSERT(amount == 0 || wholes_[at].users > 0, "a user that returns some was counted");
  STP_ASSERT(user.holders > 0, "a user that returns some has a reservation");
  user.used[at] -= amount;
  wholes_[at].used -= amount;
  if (user.used[at] == 0 && amount != 0) --wholes_[at].users;
  if (!whole) return;
  --user.holders;
  forget_if_empty(user);
}

void Budgets::close(User& user) {
  std::lock_guard const guard(mutex_);
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
  std::lock_guard const guard(mutex_);
  const auto at = index_of(resource);
  const auto& name = describe(resource);
  const auto share = std::string(name.remedy) == "--user-share" ? "" : " or --user-share";
  return "uid " + std::to_string(user.uid) + " has " + std::to_string(user.used[at]) + " of " +
         std::to_string(wholes_[at].total) + ' ' + name.plural +
         ", more exceeds its limit: raise " + name.remedy + share;
}

std::optional<Budgets::Usage> Budgets::after(std::optional<uid_t> uid) const {
  std::lock_guard const guard(mutex_);
  const auto at = uid ? users_.upper_bound(*uid) : users_.begin();
  if (at == users_.end()) return std::nullopt;
  const auto& user = at->second;
  Usage usage{.uid = user.uid, .trusted = user.trusted, .used = user.used, .most = {}};
  for (std::size_t i = 0; i < kResources; ++i) usage.most[i] = most_of(user, i);
  return usage;
}

std::uint64_t Budgets::used(Resource resource) const {
  std::lock_guard const guard(mutex_);
  return wholes_[index_of(resource)].used;
}

std::size_t Budgets::users() const {
  std::lock_guard const guard(mutex_);
  return users_.size();
}

// ---- Reservation

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  reset();
  budgets_ = std::move(other.budgets_);
  user_ = std::exchange(other.user_, nullptr);
  resource_ = other.resource_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

void Reservation::reset() {
  if (user_ != nullptr) budgets_->give(*std::exchange(user_, nullptr), resource_, amount_, true);
  amount_ = 0;
  budgets_.reset();
}

void Reservation::shrink(std::uint64_t amount) {
  if (user_ == nullptr || amount >= amount_) return;
  budgets_->give(*user_, resource_, amount_ - amount, false);
  amount_ = amount;
}

// Afterwards one reservation counts as a holder of the user, not two.
void Reservation::join(Reservation&& other) {
  if (user_ == nullptr) {
    *this = std::move(other);
    return;
  }
  if (other.user_ == nullptr) return;
  STP_ASSERT(user_ == other.user_ && resource_ == other.resource_,
             "reservations that become one are of the same user and thing");
  amount_ += std::exchange(other.amount_, 0);
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
  out.reset();
  if (user_ == nullptr || !budgets_->take(*user_, resource, amount)) return false;
  out.budgets_ = budgets_;
  out.user_ = user_;
  out.resource_ = resource;
  out.amount_ = amount;
  return true;
}

std::string Account::refusal(Resource resource) const {
  return user_ == nullptr ? std::string() : budgets_->refusal(*user_, resource);
}

}  // namespace stp::service
