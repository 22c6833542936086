// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/errands.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {
namespace {

// Whoever abandons an errand waits no longer than this many bytes take.
constexpr std::uint64_t kErrandSlice = std::uint64_t{8} << 20;

int map_memory(Errand& errand) {
  const auto& request = errand.request;
  auto error = RegionMemory::map(request, errand.files, errand.most, std::move(errand.claim.bytes),
                                 std::move(errand.claim.mappings), std::move(errand.claim.torn),
                                 errand.memory);
  if (error != 0) return error;
  // They are memory, and mapped: so closing them does not block.
  for (const auto& segment : std::span(request.segments).first(request.segment_count))
    errand.files[segment.fd_index].reset();
  do {
    error = errand.memory->populate(kErrandSlice);
  } while (error == -EAGAIN && !errand.abandoned);
  if (error != 0) return error;
  error = errand.memory->pin_pages(errand.claim.payer, request);
  if (error == -EDQUOT) errand.why = errand.claim.payer.refusal(Resource::kFiles);
  return error;
}

int keep_offered(Errand& errand) {
  if (const auto error = errand.offered->keep_pages(); error != 0) return error;
  if (errand.offered->pin_pages(errand.payer) == -EDQUOT) {
    errand.why = errand.payer.refusal(Resource::kFiles);
    return -EDQUOT;
  }
  // A channel is handed out once, the client page whenever the client says hello.
  if (errand.request.vc != kNoneId) errand.offered->forget_fd();
  return 0;
}

int carry_out(Errand& errand) {
  try {
    return errand.offered != nullptr ? keep_offered(errand) : map_memory(errand);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

}  // namespace

struct Errands::State {
  UniqueFd done_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::deque<std::shared_ptr<Errand>> done;
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
    std::lock_guard const lock(state->mutex);
    state->done.push_back(std::move(errand));
    ::eventfd_write(state->done_fd.get(), 1);
  });
}

std::shared_ptr<Errand> Errands::take() {
  std::lock_guard const lock(state_->mutex);
  if (state_->done.empty()) {
    eventfd_t count;
    ::eventfd_read(state_->done_fd.get(), &count);
    return nullptr;
  }
  auto errand = std::move(state_->done.front());
  state_->done.pop_front();
  return errand;
}

}  // namespace stp::service
