// SPDX-License-Identifier: BSD-3-Clause
// Requests about memory that a program shares (kMap, kMapped): a worker of its user does what
// concerns the memory.

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <exception>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "libst/ipc/requests.h"
#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"
#include "stp/base/caught.h"
#include "stp/base/mutex.h"
#include "stp/base/scarce_memory.h"
#include "tools/stpd/server.h"

namespace stp::stpd {
namespace {

int map_memory(Errand& errand) {
  const auto& request = errand.request.as<ask::Map>();
  auto error =
      RegionMemory::map(request, errand.files, errand.most, std::move(errand.claim.of_memory),
                        std::move(errand.claim.torn), errand.memory);
  if (error != 0) return error;
  // They are memory, and mapped: so closing them does not block.
  for (const auto& segment : std::span(request.segments).first(request.segment_count))
    errand.files[segment.fd_index].reset();
  do {
    // Whoever abandons the errand, or maps something else, waits no longer.
    error = errand.memory->populate(os::kMappedInAtOnce);
  } while (error == -EAGAIN && !errand.abandoned);
  if (error != 0) return error;
  error = errand.memory->pin_pages(errand.claim.payer, request);
  if (error == -EDQUOT) errand.why = errand.claim.payer.refusal(host::Resource::kFiles);
  return error;
}

int keep_offered(Errand& errand) {
  if (errand.kept) return 0;
  if (const auto error = errand.offered->keep_pages(); error != 0) return error;
  const auto pins = std::make_shared<PagePins>();
  const MutableBytes pages{errand.offered->data(), errand.offered->size()};
  if (pins->pin(errand.payer, pages, 0, true) == -EDQUOT) {
    errand.why = errand.payer.refusal(host::Resource::kFiles);
    return -EDQUOT;
  }
  errand.offered->attach(pins);
  // A channel is handed out once, the client page whenever the client says hello.
  if (errand.request.as<ask::Mapped>().vc != kNoneId) errand.offered->forget_fd();
  errand.kept = true;
  return 0;
}

int carry_out(Errand& errand) {
  return within_memory(
      [&] { return errand.offered != nullptr ? keep_offered(errand) : map_memory(errand); },
      [] { return -ENOMEM; });
}

}  // namespace

struct Errands::State {
  os::UniqueFd done_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Mutex mutex;
  std::deque<std::shared_ptr<Errand>> done STP_GUARDED_BY(mutex);
};

Errands::Errands(std::shared_ptr<UserWorkers> workers)
    : workers_(std::move(workers)), state_(std::make_shared<State>()) {
  if (!state_->done_fd) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Errands::~Errands() = default;

int Errands::done_fd() const {
  return state_->done_fd.get();
}

void Errands::begin(std::shared_ptr<Errand> errand) {
  const auto user = errand->user;
  workers_->give(user, [state = state_, errand = std::move(errand)]() mutable {
    errand->result = errand->abandoned ? -ECANCELED : carry_out(*errand);
    const Lock lock(state->mutex);
    state->done.push_back(std::move(errand));
    ::eventfd_write(state->done_fd.get(), 1);
  });
}

std::shared_ptr<Errand> Errands::take() {
  const Lock lock(state_->mutex);
  if (state_->done.empty()) {
    eventfd_t count;
    ::eventfd_read(state_->done_fd.get(), &count);
    return nullptr;
  }
  auto errand = std::move(state_->done.front());
  state_->done.pop_front();
  return errand;
}

// `requests`: whether epoll reports requests of the peer. It reports a hang-up in any case.
void Server::hear(const Peer& peer, bool requests) {
  epoll_event event{};
  event.events = requests ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  event.data.u64 = peer.client;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
}

// Gives the errand to a worker of the user. The reply follows when it is done.
int Server::send_out(Peer& peer, std::shared_ptr<Errand> errand) {
  peer.errand = errand;
  hear(peer, false);
  errands_->begin(std::move(errand));
  return 0;
}

// Checks request, quotas and budgets first. This thread touches neither the memory nor its file.
int Server::begin_map(Peer& peer, const ipc::RequestMessage& message, std::span<os::UniqueFd> fds) {
  const auto refuse = [&](int error, std::string_view why = {}) {
    return refuse_request(peer, message.head.kind, error, why);
  };
  if (workers_->is_stuck(peer.identity.uid)) return refuse(-EBUSY);
  const auto& request = message.as<ask::Map>();
  std::uint64_t bytes = 0;
  const std::uint64_t most = most_map_bytes_;
  const auto only_asks = fds.empty();
  const auto wrong =
      RegionMemory::measure(request, only_asks ? ipc::kMaxFds : fds.size(), most, bytes);
  if (wrong == -EDQUOT)
    return refuse(wrong, "one st_map may map no more than --max-map " + std::to_string(most) +
                             " of stpd: raise it, then SIGHUP");
  if (wrong != 0) return refuse(wrong);
  auto errand = std::make_shared<Errand>();
  ipc::ReplyMessage reply;
  shards_[message.head.shard]->drive()->claim_region(peer.clients[message.head.shard], request,
                                                     bytes, fds.size(), errand->claim, reply);
  if (reply.head.result != 0) return refuse(reply.head.result, reply.why());
  if (only_asks) {
    host::Attachments none;
    reply.begin<ask::Map>();
    errand->claim = {};  // before the reply leaves
    return reply_to(peer, none, reply);
  }
  errand->key = peer.client;
  errand->user = peer.identity.uid;
  errand->request = message;
  errand->most = most;
  errand->files.reserve(fds.size());
  for (auto& fd : fds) errand->files.push_back(std::move(fd));
  return send_out(peer, std::move(errand));
}

int Server::begin_mapped(Peer& peer, const ipc::RequestMessage& message) {
  auto errand = std::make_shared<Errand>();
  const auto client = peer.clients[message.head.shard];
  errand->offered = shards_[message.head.shard]->drive()->offered(
      client, message.as<ask::Mapped>().vc, errand->payer);
  errand->key = peer.client;
  errand->user = peer.identity.uid;
  errand->request = message;
  if (errand->offered == nullptr) return end_errand(peer, errand);
  if (workers_->is_stuck(peer.identity.uid)) return refuse_request(peer, message.head.kind, -EBUSY);
  return send_out(peer, std::move(errand));
}

int Server::end_errand(Peer& peer, const std::shared_ptr<Errand>& done) {
  auto& errand = *done;
  host::Attachments attachments;
  ipc::ReplyMessage reply;
  const auto& head = errand.request.head;
  reply.head.kind = head.kind;
  if (errand.memory != nullptr) {
    attachments.pieces = errand.memory->pieces();
    attachments.mapped_bytes = errand.memory->size();
    attachments.of_region = std::move(errand.claim.of_region);
    attachments.keep = UserWorkers::guard(workers_, errand.user, std::move(errand.memory));
  }
  if (errand.result != 0) {
    reply.refuse(errand.result, errand.result == -EDQUOT ? errand.why : "");
  } else {
    shards_[head.shard]->drive()->handle(peer.clients[head.shard], errand.request, attachments,
                                         reply);
    // Much is to be copied to what it has mapped: the link goes on in between.
    if (errand.offered != nullptr && reply.head.result == -EINPROGRESS) return send_out(peer, done);
  }
  // What is not used returns to its budget before the reply leaves.
  errand.claim = {};
  attachments.of_region.reset();
  return reply_to(peer, attachments, reply);
}

void Server::drop_expelled(unsigned shard) {
  auto& service = *shards_[shard];
  eventfd_t ignored;
  ::eventfd_read(service.expelled_fd(), &ignored);
  for (;;) {
    const auto id = service.drive()->next_expelled();
    if (!id) return;
    ++counts_.torn_memory;
    const auto at = std::ranges::find_if(
        peers_, [&](const auto& peer) { return peer.second.clients[shard] == *id; });
    if (at != peers_.end()) drop(at->first, "took away memory that it had mapped");
  }
}

void Server::end_errands() {
  while (auto errand = errands_->take()) {
    foreign_->close(errand->user, errand->files);
    const auto key = errand->key;
    const auto at = peers_.find(key);
    if (at == peers_.end() || at->second.errand != errand) {
      // A worker releases the memory, as it releases that of regions.
      if (errand->memory != nullptr)
        UserWorkers::guard(workers_, errand->user, std::move(errand->memory));
      continue;
    }
    at->second.errand = nullptr;
    hear(at->second, true);
    try {
      judge(key, end_errand(at->second, errand));
    } catch (const std::exception& failure) {
      give_up(key, what_of(failure));
    }
  }
}

}  // namespace stp::stpd
