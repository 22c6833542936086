// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/allowances.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "libst/service/identity.h"
#include "libst/service/shared_memory.h"
#include "stp/base/assert.h"

namespace stp::service {

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
  const auto bytes = [&](std::uint64_t chosen, std::uint64_t part) {
    return chosen != 0 ? chosen : memory / part;
  };
  auto& totals = *budgets_;
  totals.set_share(quotas.user_share);
  totals.set_total(Resource::kClients, quotas.clients);
  totals.set_total(Resource::kEndpoints, quotas.total_endpoints);
  totals.set_total(Resource::kConnections, limits::kTotalPorts);
  own_ports_->set_share(quotas.user_share);
  if (shards_ > 1) own_ports_->set_total(Resource::kConnections, limits::kTotalPorts / shards_);
  totals.set_total(Resource::kRegions, quotas.total_regions);
  totals.set_total(Resource::kMx, limits::kTotalMxs);
  totals.set_total(Resource::kQueueBytes, bytes(quotas.total_queue_bytes, limits::kQueuePart));
  totals.set_total(Resource::kMappedBytes, bytes(quotas.total_mapped_bytes, limits::kMappedPart));
  totals.set_total(Resource::kTableBytes, bytes(quotas.total_table_bytes, limits::kTablePart));
  totals.set_total(Resource::kWindowBytes, bytes(quotas.total_window_bytes, limits::kWindowPart));
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
