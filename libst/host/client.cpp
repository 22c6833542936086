// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/client.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "libst/host/bells.h"
#include "libst/host/endpoints.h"
#include "libst/ipc/requests.h"
#include "libst/os/futex.h"
#include "stp/base/assert.h"
#include "stp/base/work_meter.h"

namespace stp::host {

Bell ChannelTable::add(std::unique_ptr<Channel> channel) {
  STP_ASSERT(channel != nullptr && channel->vc == kNoneId, "a new channel has no connection");
  if (free_.empty()) {
    // Reserved first, so that remove() need not allocate to return the number.
    free_.reserve(channels_.size() + 1);
    channels_.emplace_back();
    free_.push_back(numbers() - 1);
  }
  const auto number = free_.back();
  free_.pop_back();
  STP_ASSERT(number < channels_.size() && channels_[number] == nullptr,
             "a free bell number is of a place without a channel");
  channels_[number] = std::move(channel);
  return number;
}

std::unique_ptr<Channel> ChannelTable::remove(Bell number) {
  STP_ASSERT(at(number) != nullptr, "a channel that is removed is in the table");
  auto channel = std::move(channels_[number]);
  STP_ASSERT(!in_use_.contains(channel->vc), "a channel that is removed has no connection");
  free_.push_back(number);
  return channel;
}

void ChannelTable::put_to_use(VcId vc, Bell number) {
  auto* const channel = at(number);
  STP_ASSERT(
      channel != nullptr && channel->vc == kNoneId && !channel->closing && !in_use_.contains(vc),
      "a channel is put to use once");
  in_use_.emplace(vc, number);
  channel->vc = vc;
}

void ChannelTable::end_use(VcId vc) {
  in_use_.erase(vc);
}

namespace {

template <typename Sets>
void take_out(Sets& sets, typename Sets::key_type of, std::uint16_t mx) {
  const auto at = sets.find(of);
  if (at == sets.end()) return;
  at->second.erase(mx);
  if (at->second.empty()) sets.erase(at);
}

template <typename Sets>
std::size_t count(const Sets& sets, typename Sets::key_type of) {
  const auto at = sets.find(of);
  return at == sets.end() ? 0 : at->second.size();
}

}  // namespace

void MxRecords::add(std::uint16_t mx, Record record) {
  remove(mx);
  const auto region = record.region;
  const auto vc = record.vc;
  STP_ASSERT(region != kNoneId, "an Mx is of a region");
  records_.emplace(mx, std::move(record));
  try {
    of_region_[region].insert(mx);
    if (vc != kNoneId) of_connection_[vc].insert(mx);
  } catch (...) {
    remove(mx);
    throw;
  }
}

void MxRecords::remove(std::uint16_t mx) {
  const auto at = records_.find(mx);
  if (at == records_.end()) return;
  take_out(of_region_, at->second.region, mx);
  take_out(of_connection_, at->second.vc, mx);
  records_.erase(at);
}

bool MxRecords::remove_one_of_region(RegionId region) {
  const auto at = of_region_.find(region);
  if (at == of_region_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a region without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

bool MxRecords::remove_one_of_connection(VcId vc) {
  const auto at = of_connection_.find(vc);
  if (at == of_connection_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a connection without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

std::size_t MxRecords::count_of_region(RegionId region) const {
  return count(of_region_, region);
}

std::size_t MxRecords::count_of_connection(VcId vc) const {
  return count(of_connection_, vc);
}

void Client::wake() const {
  // Sequentially consistent on both sides. The client adds itself to `sleepers`, then reads the
  // word: so it sees the new value, or this side sees a sleeper.
  page().events.fetch_add(1);
  if (page().sleepers.load() != 0) os::futex_wake(page().events, 1);
}

void Client::wake(const Channel& channel) const {
  auto& control = channel.control();
  if (control.gathered.load(std::memory_order_relaxed) != 0) return wake();
  os::futex_wake(control.wake, 1);
}

void Client::tell_news(Bell number) const {
  const auto* const channel = channels.at(number);
  if (channel != nullptr && channel->control().gathered.load(std::memory_order_relaxed) != 0)
    page().news.ring(number);
}

// A channel's cookie has 32 bits for its client, so ids wrap around. Ids in use are skipped.
ClientId ClientTable::unused_id() {
  return last_ = next_client_id(last_, clients_);
}

std::shared_ptr<ipc::SharedMemory> ClientTable::make_page() {
  if (spare_.empty()) return ipc::SharedMemory::create_own(sizeof(ipc::ClientPage));
  auto page = std::move(spare_.back());
  spare_.pop_back();
  std::memset(page->data(), 0, page->size());
  return page;
}

void ClientTable::take_back(std::shared_ptr<ipc::SharedMemory> page) {
  const bool is_own = page->fd() < 0;  // it was offered to nobody
  if (is_own && page.use_count() == 1 && spare_.size() < kSpare) spare_.push_back(std::move(page));
}

Client* ClientTable::add(bool privileged) {
  auto page = make_page();
  if (!page) return nullptr;
  const auto id = unused_id();
  STP_ASSERT(id != 0 && !clients_.contains(id), "a new client has an id of its own");
  auto& client = clients_[id];
  client.id = id;
  client.privileged = privileged;
  client.payer = allow_.payer(ipc::kUnknownUser);
  client.page_memory = std::move(page);
  client.page().begin(ipc::kProtocolVersion);
  return &client;
}

Client* ClientTable::add(const ipc::ClientIdentity& identity, Place where, std::string& why) {
  auto payer = allow_.payer(identity.uid);
  Reservation held, page, files, bell;
  const auto reserve = [&](Resource resource, std::uint64_t amount, Reservation& out) {
    if (payer.account.reserve(resource, amount, out)) return true;
    why = payer.account.refusal(resource);
    errno = EDQUOT;
    return false;
  };
  // Files: the bell and the epoll of its group; the page, and once per program its socket and its
  // process descriptor.
  const auto of_program = where == Place::kOwn ? 1U : 0U;
  if (where != Place::kOperator &&
      ((where == Place::kOwn && !reserve(Resource::kClients, 1, held)) ||
       !reserve(Resource::kMappings, 1, page) || !reserve(Resource::kFiles, 2, bell) ||
       !reserve(Resource::kFiles, 1 + 2 * of_program, files)))
    return nullptr;
  auto* const client = add(identity.uid == 0);
  if (client == nullptr) return nullptr;
  client->payer = std::move(payer);
  client->held = std::move(held);
  client->files = std::move(files);
  client->bell_paid = std::move(bell);
  client->mapping = std::move(page);
  client->identity = identity;
  return client;
}

void ClientTable::forget_if_empty(Client& client) {
  if (!client.leaving || !client.empty()) return;
  take_back(std::move(client.page_memory));
  clients_.erase(client.id);
}

bool WindowAccounts::hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) {
  const auto id = static_cast<ClientId>(owner);
  const auto at = held_.find(id);
  const auto has = at == held_.end() ? 0 : at->second.amount(Resource::kWindowBytes);
  if (bytes <= before) {
    STP_ASSERT(before - bytes <= has, "what a purse gives back its owner holds");
    const auto left = has - std::min<std::uint64_t>(has, before - bytes);
    if (left != 0)
      at->second.shrink(Resource::kWindowBytes, left);
    else if (at != held_.end())
      held_.erase(at);
    return true;
  }
  const auto* const client = clients_.find(id);
  Reservation more;
  if (client == nullptr ||
      !client->payer.account.reserve(Resource::kWindowBytes, bytes - before, more))
    return false;
  held_[id].join(std::move(more));
  return true;
}

// ---- removal

namespace {

// Steps of removal in one turn, for all clients together.
constexpr int kSlice = 64;

}  // namespace

Removal::Removal(ClientTable& clients, Bells& bells, Connections& connections, Regions& regions,
                 Endpoints& endpoints, Leftovers& leftovers)
    : clients_(clients),
      bells_(bells),
      connections_(connections),
      regions_(regions),
      endpoints_(endpoints),
      leftovers_(leftovers),
      expelled_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!expelled_fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Removal::begin(Client& client) {
  STP_ASSERT(!client.leaving, "a client leaves once");
  bells_.remove(client);
  client.leaving = true;
  leaving_.push_back(client.id);
}

void Removal::expel(std::uint64_t tears) {
  seen_tears_ = tears;
  for (auto& [id, client] : clients_) {
    work::count("clients");
    if (!client.torn->exchange(false) || client.leaving) continue;
    begin(client);
    expelled_.push_back(id);
    ::eventfd_write(expelled_fd_.get(), 1);
  }
}

std::optional<ClientId> Removal::next_expelled() {
  if (expelled_.empty()) return std::nullopt;
  const auto id = expelled_.front();
  expelled_.pop_front();
  return id;
}

bool Removal::remove_some() {
  bool any = false;
  for (int step = 0; step < kSlice; ++step) {
    work::count("what is over");
    if (!leaving_.empty()) {
      any = true;
      const auto id = leaving_.front();
      leaving_.pop_front();
      auto* const gone = clients_.find(id);
      if (gone == nullptr) continue;
      if (remove_one_of(*gone))
        leaving_.push_back(id);  // one step of each in turn
      else
        clients_.forget_if_empty(*gone);
    }
    if (!leftovers_.empty()) {
      any = true;
      auto* const owner = clients_.find(leftovers_.front().client);
      if (owner != nullptr && remove_one_of(leftovers_.front(), *owner)) continue;
      leftovers_.pop_front();
      if (owner != nullptr) clients_.forget_if_empty(*owner);
    } else if (leaving_.empty()) {
      break;
    }
  }
  return any;
}

// Returns false if only the Node's events remain to wait for. Connections first, so that their
// peers are told; then regions; then endpoints. An endpoint is erased with the last of its objects.
bool Removal::remove_one_of(Client& client) {
  if (client.next_bell < client.channels.numbers()) {
    connections_.give_up(client, client.next_bell++);
    return true;
  }
  if (const auto at = client.regions.upper_bound(client.next_region); at != client.regions.end()) {
    client.next_region = at->first;
    if (at->second.state == RegionState::kGone)
      Regions::forget(client, at->first);
    else
      regions_.start_unmap(at->first, at->second);
    return true;
  }
  const auto at = client.endpoints.upper_bound(client.next_endpoint);
  if (at == client.endpoints.end()) return false;
  client.next_endpoint = at->first;
  if (!at->second.ending) endpoints_.end(client, at->first, at->second);
  return true;
}

// Removes one Mx or region of the leftover. Returns false if nothing is left of it.
bool Removal::remove_one_of(const Leftover& leftover, Client& client) {
  if (leftover.region != kNoneId) return client.mxs.remove_one_of_region(leftover.region);
  if (leftover.vc != kNoneId) return client.mxs.remove_one_of_connection(leftover.vc);
  const auto at = client.endpoints.find(leftover.endpoint);
  if (at == client.endpoints.end()) return false;
  if (const auto& gone = at->second.gone; !gone.empty()) {
    Regions::forget(client, *gone.begin());
    return true;
  }
  endpoints_.erase_if_ended(client, leftover.endpoint);
  return false;
}

}  // namespace stp::host
