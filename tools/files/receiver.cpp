// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <cerrno>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

constexpr auto kFarewell = std::chrono::seconds(2);
constexpr std::uint32_t kBufxPerPlace = (kDepth << kMaxBlockLog2) >> kBufsize;
static_assert(kBufxPerPlace * Receiver::kMaxSenders <= 65'536);

}  // namespace

Receiver::Receiver(const std::string& address, ReceiverContext& context)
    : context_(context), endpoint_(address.c_str()), places_(kMaxSenders) {
  if (auto const error = st_listen(endpoint_.handle()); error != 0)
    throw listen_failure(error, address);
}

Receiver::~Receiver() {
  wait_for_all();
}

bool Receiver::run(bool once) {
  do {
    auto const place = take_place();
    st_chandle_t handle = nullptr;
    auto const error = st_accept(endpoint_.handle(), &handle);
    if (context_.stop) break;
    if (error == -EINTR) continue;
    if (error != 0)
      throw LinkFailure("accepting a connection failed: " + error_text(-error) +
                        "; see that the link or its stpd is still there");
    std::lock_guard const lock(mutex_);
    places_[place].taken = true;
    ++serving_;
    places_[place].thread = std::thread([this, handle, place] { serve(handle, place); });
  } while (!once);
  wait_for_all();
  std::lock_guard const lock(mutex_);
  return failures_ == 0 && (files_ != 0 || !once);
}

std::size_t Receiver::take_place() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return serving_ < kMaxSenders; });
  std::size_t place = 0;
  while (places_[place].taken) ++place;
  if (places_[place].thread.joinable()) places_[place].thread.join();
  return place;
}

void Receiver::serve(st_chandle_t handle, std::size_t place) {
  try {
    serve_connection(handle, place);
  } catch (const Stopped&) {
    // Said once, by main.
  } catch (const std::exception& failure) {
    context_.progress.complain(failure.what());
    std::lock_guard const lock(mutex_);
    ++failures_;
  }
  std::lock_guard const lock(mutex_);
  places_[place].taken = false;
  --serving_;
  changed_.notify_all();
}

void Receiver::serve_connection(st_chandle_t handle, std::size_t place) {
  Connection connection(handle);
  TransferReceiver receiver(endpoint_, connection,
                            static_cast<std::uint32_t>(place) * kBufxPerPlace, context_);
  auto const count = [&] {
    std::lock_guard const lock(mutex_);
    files_ += receiver.files();
    failures_ += receiver.failures();
  };
  try {
    receiver.serve();
  } catch (...) {
    count();
    throw;
  }
  count();
}

void Receiver::close() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFarewell, [this] { return serving_ == 0; });
  }
  endpoint_.close();
}

void Receiver::wait_for_all() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return serving_ == 0; });
  for (auto& place : places_)
    if (place.thread.joinable()) {
      lock.unlock();
      place.thread.join();
      lock.lock();
    }
}

}  // namespace stp::files
