// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/links.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <system_error>
#include <thread>
#include <vector>

#include "dpdk_port/link/link.h"
#include "libst/client/answers.h"
#include "libst/client/error.h"
#include "libst/client/handle_table.h"
#include "libst/client/stpd_backend.h"
#include "libst/client/wait.h"
#include "libst/ipc/link_choice.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "stp/base/mutex.h"

namespace stp::client {
namespace {

// All shards of one link. Shards in this process may hold frames of each other, so they are opened
// and closed together. For a link of stpd, a shard is greeted when the program first uses it.
class Link {
 public:
  ~Link() {
    while (!shards_.empty()) shards_.pop_back();
  }
  int open(const std::string& text);
  int choose(const ShardChoice& shard, Backend*& out);
  [[nodiscard]] int error() const { return shards_.front()->error(); }
  void leave() const {
    std::for_each(shards_.rbegin(), shards_.rend(), [](const auto& shard) {
      if (shard != nullptr) shard->leave();
    });
  }

 private:
  int open_stpd(const std::string& path);

  std::string text_;
  std::shared_ptr<StpdConnection> stpd_;  // nullptr: the link is in this process
  // The first shard always exists, because the others send through it. nullptr: not used yet.
  std::vector<std::shared_ptr<Backend>> shards_;
  std::uint32_t next_ = 0;
};

struct Links {
  Mutex mutex{LockRank::kLinks};
  std::map<std::string, std::weak_ptr<Link>> open STP_GUARDED_BY(mutex);  // by the link's text
};

Links& links() {
  static auto* const all = new Links;  // never destroyed, as HandleTable
  return *all;
}

// If a program exits without st_delete, its peers learn of it, as they would through stpd. Other
// threads may still be inside calls, so nothing is destroyed here.
void leave_each() {
  std::vector<std::shared_ptr<Link>> live;
  {
    Links& all = links();
    const Lock guard(all.mutex);
    for (auto& [text, link] : all.open)
      if (auto held = link.lock()) live.push_back(std::move(held));
  }
  for (const auto& link : live) link->leave();
}

// A signal handler may have called exit() in the middle of a call that holds a lock which leaving
// needs. So leaving happens on another thread, and exit() waits for it at most kLongest. Without
// it, the peers notice by their timeouts.
void leave_all() {
  constexpr std::chrono::seconds kLongest{2};
  if (HandleTable::instance().inherited()) return;
  std::promise<void> promise;
  const auto left = promise.get_future();
  try {
    std::thread([done = std::move(promise)]() mutable {
      leave_each();
      done.set_value();
    }).detach();
  } catch (const std::system_error&) {
    return leave_each();  // no thread can be started
  }
  left.wait_for(kLongest);
}

int Link::open(const std::string& text) {
  port::LinkConfig link;
  std::string reason;
  if (!port::parse_link(text, link, reason)) return fail(-EINVAL, reason);
  text_ = text;
  return link.kind == port::LinkKind::kStpd ? open_stpd(ipc::socket_of(link.target))
                                            : open_here(link, shards_);
}

int Link::open_stpd(const std::string& path) {
  if (const auto error = StpdConnection::open(path, stpd_); error != 0) return error;
  StpdBackend::Welcome welcome;
  if (const auto error = StpdBackend::open(stpd_, 0, shards_.emplace_back(), welcome); error != 0)
    return error;
  shards_.resize(welcome.shards);
  next_ = welcome.first;
  return 0;
}

int Link::choose(const ShardChoice& shard, Backend*& out) {
  const auto count = static_cast<std::uint32_t>(shards_.size());
  if (shard.number > count)
    return fail(-EINVAL, "shard " + std::to_string(shard.number) + ": link '" + text_ + "' has " +
                             std::to_string(count) + " (queues= says how many)");
  const auto index =
      (shard.number != 0 ? shard.number - 1 : (shard.port != 0 ? shard.port : next_++)) % count;
  auto& chosen = shards_[index];
  StpdBackend::Welcome ignored;
  if (chosen == nullptr)
    if (const auto error = StpdBackend::open(stpd_, index, chosen, ignored); error != 0)
      return error;
  out = chosen.get();
  return 0;
}

// Closes the link under the mutex, so that whoever opens it again waits until it is closed.
void close_in_turn(Link* link) {
  Links& all = links();
  const Lock guard(all.mutex);
  delete link;
}

}  // namespace

int use_link(std::shared_ptr<Backend>& out, const ShardChoice& shard) {
  return use_link(ipc::choose_link().link, out, shard);
}

int use_link(const std::string& text, std::shared_ptr<Backend>& out, const ShardChoice& shard) {
  std::shared_ptr<Link> known, link;  // outlive the guard: releasing one may lock the mutex
  Links& all = links();
  const Lock guard(all.mutex);
  static const int at_exit = std::atexit(leave_all);
  (void)at_exit;
  auto& entry = all.open[text];
  link = known = entry.lock();
  if (link == nullptr || link->error() != 0) {
    auto opened = std::make_unique<Link>();
    if (const auto error = opened->open(text); error != 0) return error;
    entry = link = std::shared_ptr<Link>(opened.release(), close_in_turn);
  }
  Backend* chosen = nullptr;
  if (const auto error = link->choose(shard, chosen); error != 0) return error;
  out = std::shared_ptr<Backend>(link, chosen);
  return 0;
}

// ---- trouble

namespace {

constexpr std::size_t kLongest = 1'024;

int fail_with(const std::string& trouble, int error, const std::string& what) {
  return fail(error, what + ", and the link has trouble: " + trouble);
}

}  // namespace

std::string trouble_of(Backend& backend, const MacAddr& peer) {
  std::string text;
  while (text.size() < kLongest) {
    ask::Trouble::Reply reply{};
    if (backend.call(ask::Trouble{.mac = peer.to_u64(), .from = text.size()}, reply) != 0) break;
    const auto piece = ipc::text_of(reply.text);
    if (piece.empty()) break;
    text += piece;
  }
  return text;
}

bool is_reported_gone(Backend& backend, const MacAddr& peer) {
  ask::Trouble::Reply reply{};
  return backend.call(ask::Trouble{.mac = peer.to_u64(), .from = 0}, reply) == 0 && reply.gone != 0;
}

std::string hint_at_firewalls(const Backend& backend) {
  if (backend.udp_port() == 0) return "";
  return ": see also whether firewalls, those of both hosts and between them, let in the UDP ports "
         "of both links (here " +
         std::to_string(backend.udp_port()) + ")";
}

namespace {

// A station that has answered lately is behind no firewall.
std::string hint_at_silence(const Backend& backend, const MacAddr& peer) {
  constexpr Time kLately = 60 * kSecond;
  const auto answered = last_answer_of(peer);
  const auto age = answered ? now() - *answered : kNever;
  if (age > kLately) return hint_at_firewalls(backend);
  return ": it answered " + std::to_string(age / kSecond) +
         " s ago; its backlog may be full, or its program or host has stopped since then";
}

}  // namespace

int fail_in_time(Backend& backend, const MacAddr& peer) {
  constexpr int kError = -ETIMEDOUT;
  if (const auto trouble = trouble_of(backend, peer); !trouble.empty())
    return fail_with(trouble, kError, "nobody answered in time");
  const auto hint = hint_at_silence(backend, peer);
  return hint.empty() ? kError : fail(kError, std::strerror(ETIMEDOUT) + hint);
}

int fail_by_link(Backend& backend, const MacAddr& peer, int error, const std::string& what) {
  const auto trouble = trouble_of(backend, peer);
  return trouble.empty() ? error : fail_with(trouble, error, what);
}

}  // namespace stp::client
