// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/stpd_backend.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"

namespace stp::client {

using service::UniqueFd;

int StpdBackend::open(const std::shared_ptr<StpdConnection>& stpd, std::uint32_t shard,
                      std::shared_ptr<Backend>& out, Welcome& welcome) {
  auto backend = std::make_shared<StpdBackend>(stpd, shard);
  const auto error = backend->greet(welcome);
  // Their texts name the cause and the remedy.
  if (error == -EDQUOT || error == -EMFILE || error == -ETIMEDOUT) return error;
  if (error != 0)
    return fail(error, "stpd:" + stpd->path() +
                           ": the daemon has refused this program: " + std::strerror(-error) +
                           "; it may be full, or of another version: see its log");
  out = std::move(backend);
  return 0;
}

int StpdBackend::greet(Welcome& welcome) {
  auto request = request_for(RequestKind::kHello);
  request.shard = shard_;
  Reply hello{};
  std::vector<UniqueFd> fds;
  if (const auto error = stpd_->ask(request, {}, hello, fds); error != 0) return error;
  if (hello.version != service::kProtocolVersion || fds.size() != 2 || hello.shards == 0 ||
      hello.shards > port::kMaxQueues)
    return -EPROTO;
  auto page = SharedMemory::adopt(fds[0].release(), 0, sizeof(ClientPage));
  if (page == nullptr) return -EPROTO;
  page->forget_fd();
  if (const auto error = tell_mapped(kNoneId); error != 0) return error;
  bell_ = std::move(fds[1]);
  Backend::welcome(hello, std::move(page));
  if (this->page().magic != service::kClientPageMagic) return -EPROTO;
  welcome = {.shards = hello.shards, .first = static_cast<std::uint32_t>(hello.value)};
  return shard_ == 0 ? stpd_->watch() : 0;
}

// Until then stpd does not use what was mapped: from then on nobody can take its pages away.
int StpdBackend::tell_mapped(std::uint64_t vc) {
  auto request = request_for(RequestKind::kMapped);
  request.shard = shard_;
  request.vc = vc;
  Reply reply{};
  std::vector<UniqueFd> none;
  return stpd_->ask(request, {}, reply, none);
}

int StpdBackend::exchange(Request& request, Payload& payload, Reply& reply) {
  request.shard = shard_;
  if (request.kind == RequestKind::kMap) return ask_to_map(request, payload, reply);
  std::vector<UniqueFd> received;
  auto error = stpd_->ask(request, {}, reply, received);
  if (error == 0 && received.empty()) return 0;
  if (error == 0) {
    payload.memory = SharedMemory::adopt(received[0].release(), 0, reply.channel_size);
    error = payload.memory == nullptr ? -errno : tell_mapped(reply.vc);
    if (error != 0) payload.memory.reset();
  }
  if (payload.memory != nullptr)
    payload.memory->forget_fd();
  else if (reply.result == 0)
    give_back(reply.vc);
  return error;
}

// stpd has made a connection whose channel could not be received or mapped.
void StpdBackend::give_back(std::uint64_t vc) {
  auto request = request_for(RequestKind::kClose);
  request.shard = shard_;
  request.vc = vc;
  request.at_once = 1;
  Reply reply{};
  std::vector<UniqueFd> none;
  stpd_->ask(request, {}, reply, none);
}

// stpd seals a memfd and keeps it mapped as long as a region uses it. Afterwards it cannot map it
// for writing any more, so memory that is mapped once more gets a memfd of its own.
int StpdBackend::ask_to_map(Request& request, Payload& payload, Reply& reply) {
  const auto error = ask_to_map(request, payload, reply, false);
  if (error != -EPERM) return error;
  const auto again = ask_to_map(request, payload, reply, true);
  return again != -EPERM
             ? again
             : fail(-EPERM,
                    "another stpd, or another region, uses this memory already, and has "
                    "sealed it: stpd cannot map it for writing");
}

int StpdBackend::ask_to_map(Request& request, Payload& payload, Reply& reply, bool anew) {
  auto share = std::make_shared<Share>();
  if (const auto error = SharedPages::instance().share(
          payload.mapped, payload.own.empty() ? payload.mapped : payload.own, *share, anew);
      error != 0)
    return error;
  std::vector<int> fds;
  request.piece_count = request.segment_count = 0;
  for (const auto& piece : share->pieces) request.pieces[request.piece_count++] = piece;
  for (const auto& part : share->parts) {
    const auto fd = part.memory->fd();
    const auto known = std::find(fds.begin(), fds.end(), fd);
    auto& segment = request.segments[request.segment_count++];
    segment.fd_index = static_cast<std::uint32_t>(known - fds.begin());
    segment.offset = part.offset;
    segment.length = part.length;
    if (known == fds.end()) fds.push_back(fd);
  }
  std::vector<UniqueFd> none;
  const auto error = stpd_->ask(request, fds, reply, none);
  if (error == 0) payload.keep = std::move(share);
  return error;
}

void StpdBackend::rung() {
  if (page().service_asleep.load(std::memory_order_seq_cst) != 0) ::eventfd_write(bell_.get(), 1);
}

bool StpdBackend::attend(Condition condition, Time deadline) {
  const auto until = deadline == 0 ? 0 : std::min(deadline, port::now() + kPatience);
  do {
    if (condition()) return true;
    std::this_thread::yield();  // stpd may need this core
  } while (until != 0 && port::now() < until);
  return condition();
}

}  // namespace stp::client
