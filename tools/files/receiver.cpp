// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include "tools/files/failure.h"

namespace stp::files {

Receiver::Receiver(const std::string& address, ReceiverContext& context)
    : context_(context), requests_(link_, kMaxSenders) {
  auto const error =
      ::stm_listen(link_.domain(), address.c_str(), requests_.handle(), 0, kMaxSenders, &listener_);
  if (error != 0) throw listen_failure(error, address);
}

Receiver::~Receiver() {
  reap(true);
  ::stm_listener_close(listener_);
}

bool Receiver::run(bool once) {
  do {
    auto* const request = await_request();
    if (request == nullptr) break;
    begin(request);
  } while (!once);
  reap(true);
  return failures_ == 0 && (files_ != 0 || !once);
}

stm_connection_t Receiver::await_request() {
  while (!context_.stop) {
    reap(false);
    if (places_.size() == kMaxSenders) {
      std::this_thread::sleep_for(kAttention);
      continue;
    }
    auto const event = requests_.next(kAttention);
    if (event && event->kind == STM_REQUEST) return event->connection;
  }
  return nullptr;
}

void Receiver::begin(stm_connection_t request) {
  auto& place = places_.emplace_back();
  place.thread = std::thread([this, request, &place] {
    serve(request);
    place.done = true;
  });
}

void Receiver::serve(stm_connection_t request) {
  unsigned files = 0, failures = 0;
  try {
    Channel channel(link_, request);
    FileReceiver receiver(channel, context_);
    auto const count = [&] {
      files = receiver.files();
      failures = receiver.failures();
    };
    try {
      receiver.serve();
    } catch (...) {
      count();
      throw;
    }
    count();
  } catch (const Stopped&) {
    // Said once, by main.
  } catch (const std::exception& failure) {
    context_.progress.complain(failure.what());
    ++failures;
  }
  std::lock_guard const lock(mutex_);
  files_ += files;
  failures_ += failures;
}

void Receiver::reap(bool all) {
  places_.remove_if([all](Place& place) {
    if (!all && !place.done) return false;
    place.thread.join();
    return true;
  });
}

}  // namespace stp::files
