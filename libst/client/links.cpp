// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/links.h"

#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "dpdk_port/link/link.h"
#include "libst/client/error.h"
#include "libst/client/handle_table.h"
#include "libst/client/local_backend.h"
#include "libst/client/stpd_backend.h"
#include "libst/service/link_choice.h"
#include "libst/service/socket.h"

namespace stp::client {
namespace {

struct Links {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Backend>> open;  // by the link's text
};

Links& links() {
  static auto* const all = new Links;  // never destroyed: as the handle table
  return *all;
}

// Peers of a program that ends without st_delete learn of it, as they would through stpd. Threads
// may still be inside calls: nothing is destroyed here.
void leave_each() {
  std::vector<std::shared_ptr<Backend>> live;
  {
    std::lock_guard const guard(links().mutex);
    for (auto& [text, backend] : links().open)
      if (auto held = backend.lock()) live.push_back(std::move(held));
  }
  for (auto const& backend : live) backend->leave();
}

// A handler of a signal may have called exit() in the middle of a call, which then holds for ever
// what leaving needs: the program ends without that. Its peers find out in time.
void leave_all() {
  constexpr std::chrono::seconds kLongest{2};
  if (HandleTable::instance().inherited()) return;
  std::promise<void> promise;
  auto const left = promise.get_future();
  try {
    std::thread([done = std::move(promise)]() mutable {
      leave_each();
      done.set_value();
    }).detach();
  } catch (const std::system_error&) {
    return leave_each();  // there is no thread to be had
  }
  left.wait_for(kLongest);
}

int open_link(const std::string& text, std::shared_ptr<Backend>& out) {
  port::LinkConfig link;
  std::string reason;
  if (!port::parse_link(text, link, reason)) return fail(-EINVAL, reason);
  return link.kind == port::LinkKind::kStpd
             ? StpdBackend::open(service::socket_of(link.target), out)
             : LocalBackend::open(link, out);
}

// Opening a link again has to wait until the last user's closing is done.
struct CloseInTurn {
  std::shared_ptr<Backend> backend;
  void operator()(Backend*) {
    std::lock_guard const guard(links().mutex);
    backend.reset();
  }
};

}  // namespace

int use_link(std::shared_ptr<Backend>& out) {
  return use_link(service::choose_link().link, out);
}

int use_link(const std::string& text, std::shared_ptr<Backend>& out) {
  std::shared_ptr<Backend> known;  // outlives the guard: letting go of it may need the mutex
  std::lock_guard const guard(links().mutex);
  static int const at_exit = std::atexit(leave_all);
  (void)at_exit;
  auto& entry = links().open[text];
  known = entry.lock();
  if (known == nullptr || known->error() != 0) {
    std::shared_ptr<Backend> opened;
    if (auto const error = open_link(text, opened); error != 0) return error;
    auto* const backend = opened.get();
    entry = out = std::shared_ptr<Backend>(backend, CloseInTurn{std::move(opened)});
    return 0;
  }
  out = std::move(known);
  return 0;
}

}  // namespace stp::client
