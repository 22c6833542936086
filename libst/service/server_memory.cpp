// SPDX-License-Identifier: BSD-3-Clause
// Memory that clients lend to the daemon: small regions at once, others when their pages are there.
#include <sys/epoll.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "libst/service/server.h"
#include "libst/service/text_field.h"

namespace stp::service {

// Hanging up is heard in any case.
void Server::hear(const Peer& peer, bool requests) {
  epoll_event event{};
  event.events = requests ? static_cast<std::uint32_t>(EPOLLIN) : 0;
  event.data.u64 = peer.client;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
}

int Server::begin_map(Peer& peer, const Request& request, std::span<const UniqueFd> fds) {
  std::shared_ptr<RegionMemory> memory;
  auto result = RegionMemory::map(request, fds, most_map_bytes_, memory);
  if (result == 0) result = memory->populate(Populator::kAtOnce);
  if (result != -EAGAIN) return end_map(peer, request, std::move(memory), result);
  peer.mapping = true;
  hear(peer, false);
  populator_->add({.key = peer.client, .request = request, .memory = std::move(memory)});
  return 0;
}

int Server::end_map(Peer& peer, const Request& request, std::shared_ptr<RegionMemory> memory,
                    int result) {
  Attachments attachments;
  Reply reply{};
  reply.version = kProtocolVersion;
  reply.result = result;
  if (result == -EDQUOT) set_text(reply.text, "max-map");
  if (memory) {
    attachments.pieces = memory->pieces();
    attachments.keep = Reaper::guard(reaper_, std::move(memory));
  }
  if (result == 0) {
    std::lock_guard guard(service_.lock());
    service_.handle(peer.client, request, attachments, reply);
  }
  return reply_to(peer, request, attachments, reply);
}

void Server::end_maps() {
  while (auto job = populator_->take()) {
    auto const at = peers_.find(job->key);
    if (at == peers_.end()) continue;
    at->second.mapping = false;
    hear(at->second, true);
    judge(job->key, end_map(at->second, job->request, std::move(job->memory), job->result));
  }
}

}  // namespace stp::service
