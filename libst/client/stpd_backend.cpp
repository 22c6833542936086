// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/stpd_backend.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"
#include "libst/service/socket.h"
#include "libst/service/text_field.h"

namespace stp::client {

using service::UniqueFd;

namespace {

// The daemon says which quota, or which budget of this user, how large it is, and what would help.
int quota_used_up(const Reply& reply) {
  const auto why = std::string(service::text_of(reply.text));
  return why.empty() ? -EDQUOT : fail(-EDQUOT, "stpd: " + why);
}

// What a reply says, in words that tell the daemon's troubles from the program's own.
int result_of(const Reply& reply) {
  if (reply.result == -EDQUOT) return quota_used_up(reply);
  if (reply.result == -EMFILE)
    return fail(-EMFILE, "stpd may not have more files open: raise its limit (LimitNOFILE)");
  if (reply.result == -EFAULT)
    return fail(-EFAULT,
                "stpd takes no memory of which pages are missing: something has cut holes "
                "into it (MADV_REMOVE, fallocate)");
  return reply.result;
}

}  // namespace

int StpdBackend::open(const std::string& path, std::shared_ptr<Backend>& out) {
  UniqueFd socket;
  if (const auto error = service::connect_to(path, socket); error != 0)
    return fail(error == -ENOENT ? -ENODEV : error,
                "stpd:" + path + ": no daemon answers there: " + std::strerror(-error));
  auto backend = std::make_shared<StpdBackend>(std::move(socket));
  if (const auto error = backend->greet(); error != 0)
    return fail(error, "stpd:" + path +
                           ": the daemon does not welcome this program: " + std::strerror(-error) +
                           "; it may be full, or of another version: its log tells");
  out = std::move(backend);
  return 0;
}

StpdBackend::~StpdBackend() {
  if (!watcher_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  watcher_.join();
}

int StpdBackend::greet() {
  Reply hello{};
  std::vector<UniqueFd> fds;
  if (const auto error = ask(request_for(RequestKind::kHello), {}, hello, fds); error != 0)
    return error;
  if (hello.version != service::kProtocolVersion || fds.size() != 2) return -EPROTO;
  auto page = SharedMemory::adopt(fds[0].release(), 0, sizeof(ClientPage));
  if (page == nullptr) return -EPROTO;
  page->forget_fd();
  bell_ = std::move(fds[1]);
  welcome(hello, std::move(page));
  if (this->page().magic != service::kClientPageMagic) return -EPROTO;
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) return -errno;
  watcher_ = std::thread([this] { watch(); });
  return 0;
}

void StpdBackend::watch() {
  pollfd fds[] = {{socket_.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
  while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents != 0) lost();
}

int StpdBackend::ask(const Request& request, std::span<const int> fds, Reply& reply,
                     std::vector<UniqueFd>& received) {
  std::lock_guard const one_at_a_time(mutex_);
  if (const auto gone = error(); gone != 0) return gone;
  auto failed = service::send_request(socket_.get(), request, fds);
  if (failed == 0) failed = service::receive_reply(socket_.get(), reply, received);
  if (failed == 0) return result_of(reply);
  lost();  // whatever it was: request and reply no longer go in pairs
  return error();
}

int StpdBackend::exchange(Request& request, Payload& payload, Reply& reply) {
  if (request.kind == RequestKind::kMap) return ask_to_map(request, payload, reply);
  std::vector<UniqueFd> received;
  const auto error = ask(request, {}, reply, received);
  if (error != 0 || received.empty()) return error;
  payload.memory = SharedMemory::adopt(received[0].release(), 0, reply.channel_size);
  if (payload.memory == nullptr) return -errno;
  payload.memory->forget_fd();
  return 0;
}

int StpdBackend::ask_to_map(Request& request, Payload& payload, Reply& reply) {
  auto share = std::make_shared<Share>();
  if (const auto error = SharedPages::instance().share(
          payload.mapped, payload.own.empty() ? payload.mapped : payload.own, *share);
      error != 0)
    return error;
  std::vector<int> fds;
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
  const auto error = ask(request, fds, reply, none);
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
    std::this_thread::yield();  // stpd may need this core to get on
  } while (until != 0 && port::now() < until);
  return condition();
}

}  // namespace stp::client
