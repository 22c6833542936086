// SPDX-License-Identifier: BSD-3-Clause
// Requests to map memory (kMap): the server's thread maps in small regions, the Populator large
// ones.
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <utility>

#include "libst/service/server.h"
#include "libst/service/text_field.h"

namespace stp::service {

// `requests`: whether epoll reports requests of the peer. It reports a hang-up in any case.
void Server::hear(const Peer& peer, bool requests) {
  epoll_event event{};
  event.events = requests ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  event.data.u64 = peer.client;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
}

// Checks request, quotas and budgets first, and only then looks at the memory and maps it.
int Server::begin_map(Peer& peer, const Request& request, std::span<UniqueFd> fds) {
  Attachments none;
  Reply reply{};
  reply.version = kProtocolVersion;
  const auto refuse = [&](int error) {
    reply.result = error;
    return reply_to(peer, request, none, reply);
  };
  std::uint64_t bytes = 0;
  const std::uint64_t most = most_map_bytes_;
  auto error = RegionMemory::measure(request, fds.size(), most, bytes);
  if (error == -EDQUOT)
    set_text(reply.text, "one st_map may map no more than --max-map " + std::to_string(most) +
                             " of stpd: raise it, then SIGHUP");
  if (error != 0) return refuse(error);
  RegionClaim claim;
  {
    auto& service = *shards_[request.shard];
    std::lock_guard guard(service.lock());
    error = service.claim_region(peer.clients[request.shard], request, bytes, claim, reply);
  }
  if (error != 0) return refuse(error);
  Populator::Job job{.key = peer.client,
                     .request = request,
                     .memory = nullptr,
                     .place = std::move(claim.place),
                     .result = 0};
  error = RegionMemory::map(request, fds, most, std::move(claim.bytes), std::move(claim.mappings),
                            std::move(claim.torn), job.memory);
  if (error != 0) return refuse(error);
  // The mapping holds the file, so closing its descriptor here cannot block. The closer closes the
  // others.
  for (const auto& segment : std::span(request.segments).first(request.segment_count))
    fds[segment.fd_index].reset();
  job.result = job.memory->populate(Populator::kAtOnce);
  if (job.result != -EAGAIN) return end_map(peer, std::move(job));
  peer.mapping = true;
  hear(peer, false);
  populator_->add(std::move(job));
  return 0;
}

int Server::end_map(Peer& peer, Populator::Job job) {
  Attachments attachments;
  Reply reply{};
  reply.version = kProtocolVersion;
  reply.result = job.result;
  attachments.pieces = job.memory->pieces();
  attachments.mapped_bytes = job.memory->size();
  attachments.place = std::move(job.place);
  attachments.keep = Reaper::guard(reaper_, std::move(job.memory));
  if (job.result == 0) {
    auto& service = *shards_[job.request.shard];
    std::lock_guard guard(service.lock());
    service.handle(peer.clients[job.request.shard], job.request, attachments, reply);
  }
  attachments.place.reset();  // an unused reservation returns to the budget before the reply leaves
  return reply_to(peer, job.request, attachments, reply);
}

void Server::drop_expelled(unsigned shard) {
  auto& service = *shards_[shard];
  eventfd_t ignored;
  ::eventfd_read(service.expelled_fd(), &ignored);
  for (;;) {
    std::optional<ClientId> id;
    {
      std::lock_guard guard(service.lock());
      id = service.next_expelled();
    }
    if (!id) return;
    ++counts_.torn_memory;
    const auto at = std::ranges::find_if(
        peers_, [&](const auto& peer) { return peer.second.clients[shard] == *id; });
    if (at != peers_.end()) drop(at->first, "took away memory that it had mapped");
  }
}

void Server::end_maps() {
  while (auto job = populator_->take()) {
    const auto at = peers_.find(job->key);
    if (at == peers_.end()) continue;
    at->second.mapping = false;
    hear(at->second, true);
    const auto key = job->key;
    try {
      judge(key, end_map(at->second, std::move(*job)));
    } catch (const std::exception& failure) {
      give_up(key, failure.what());
    }
  }
}

}  // namespace stp::service
