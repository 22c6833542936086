// SPDX-License-Identifier: BSD-3-Clause
// How an endpoint is connected, and how that ends.
#include <algorithm>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/calls.h"
#include "libst/libfabric/cm_data.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/eq.h"
#include "libst/libfabric/pep.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
fi_ops_cm ep_cm_calls{
    .size = sizeof(fi_ops_cm),
    .setname =
        [](fid_t id, void* address, std::size_t length) {
          return guarded([&] { return ep_of(id).set_name(address, length); });
        },
    .getname =
        [](fid_t id, void* address, std::size_t* length) {
          return guarded([&] { return ep_of(id).get_name(false, address, length); });
        },
    .getpeer =
        [](fid_ep* ep, void* address, std::size_t* length) {
          return guarded([&] { return ep_of(ep).get_name(true, address, length); });
        },
    .connect =
        [](fid_ep* ep, const void* address, const void* data, std::size_t length) {
          return guarded([&] { return ep_of(ep).connect(address, data, length); });
        },
    .listen = refuse,
    .accept =
        [](fid_ep* ep, const void* data, std::size_t length) {
          return guarded([&] { return ep_of(ep).accept(data, length); });
        },
    .reject = refuse,
    .shutdown =
        [](fid_ep* ep, std::uint64_t flags) {
          return guarded([&] { return ep_of(ep).shutdown(flags); });
        },
    .join = refuse,
};

int Ep::set_name(const void* address, std::size_t length) {
  std::lock_guard const lock(link_.mutex());
  sockaddr_in given{};
  if (!read_address(address, length, given)) return -FI_EINVAL;
  if (state_ != State::kNew) return -FI_EOPBADSTATE;
  if (given.sin_addr.s_addr != INADDR_ANY && ntohl(given.sin_addr.s_addr) != link_.ipv4())
    return -FI_EADDRNOTAVAIL;
  name_.sin_port = given.sin_port;
  return 0;
}

int Ep::get_name(bool peer, void* address, std::size_t* length) {
  std::lock_guard const lock(link_.mutex());
  if (peer && state_ != State::kUp) return -FI_ENOTCONN;
  return tell_address(peer ? peer_ : link_.at_present(name_), address, length);
}

// What a connection needs, before there is one.
int Ep::prepare(stm_connection_attr_t& attr, std::unique_ptr<RxBlock>& block) {
  if (!enabled_ || state_ != State::kNew) return -FI_EOPBADSTATE;
  attr.size = sizeof attr;
  attr.context = reinterpret_cast<std::uintptr_t>(static_cast<Owner*>(this));
  attr.events = link_.queue();
  const auto error = link_.take_block(parameters().rx_buffers, block);
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "buffers for messages", error);
}

void Ep::use_block(std::unique_ptr<RxBlock> block) {
  block_ = std::move(block);
  for (auto& buffer : block_->buffers) {
    buffer.owner = this;
    post(buffer);
  }
}

int Ep::connect(const void* address, const void* data, std::size_t length) {
  std::lock_guard const lock(link_.mutex());
  if (request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  if (address != nullptr && !read_address(address, sizeof(sockaddr_in), peer_)) return -FI_EINVAL;
  if (peer_.sin_port == 0) return -FI_EINVAL;
  stm_connection_attr_t attr{};
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(attr, block); error != 0) return error;
  if (const auto error = stm_connection_create(link_.domain(), &attr, &connection_); error != 0) {
    link_.give_back(std::move(block));
    return explain(FI_LOG_EP_CTRL, "a connection", error);
  }
  state_ = State::kConnecting;
  use_block(std::move(block));
  link_.dial({.owner = this,
              .connection = connection_,
              .peer = peer_name(peer_),
              .data = pack_request(link_.at_present(name_), data, length)});
  return 0;
}

void Ep::not_dialed(int status) {
  if (state_ != State::kConnecting || closing_) return;
  explain(FI_LOG_EP_CTRL, "connecting to " + peer_name(peer_), status);
  state_ = State::kEnded;
  eq_->tell_error(&fid, status, {});
  ended(status);
}

int Ep::accept(const void* data, std::size_t length) {
  std::lock_guard const lock(link_.mutex());
  if (!request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  stm_connection_attr_t attr{};
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(attr, block); error != 0) return error;
  const auto connection = request_->connection;
  if (const auto error = stm_accept(connection, &attr, data, length); error != 0) {
    link_.give_back(std::move(block));
    return explain(FI_LOG_EP_CTRL, "accepting", error);
  }
  connection_ = connection;
  peer_ = request_->peer;
  request_.reset();
  state_ = State::kConnecting;
  use_block(std::move(block));
  return 0;
}

int Ep::shutdown(std::uint64_t flags) {
  std::lock_guard const lock(link_.mutex());
  if (flags != 0) return -FI_EBADFLAGS;
  if (state_ != State::kUp) return -FI_ENOTCONN;
  state_ = State::kShutDown;
  stm_disconnect(connection_, STM_GRACEFUL);
  link_.progress();
  return 0;
}

void Ep::connection_event(const stm_event_t& event) {
  const auto was = state_;
  if (event.kind == STM_CONNECTED) {
    state_ = State::kUp;
    eq_->tell(FI_CONNECTED, &fid, nullptr, cm_data_of(connection_));
    return;
  }
  state_ = State::kEnded;
  if (event.kind == STM_FAILED) link_.suspect();
  if (was == State::kConnecting) {
    const auto refused = event.kind == STM_REFUSED;
    const auto status = event.status != 0 ? event.status : -ECONNREFUSED;
    eq_->tell_error(&fid, refused ? -ECONNREFUSED : status,
                    refused ? cm_data_of(connection_) : std::vector<std::byte>{});
  } else if (was == State::kUp || was == State::kShutDown) {
    eq_->tell(FI_SHUTDOWN, &fid, nullptr, {});
  }
  ended(event.status != 0 ? event.status : -ECANCELED);
}

// Nothing comes any more: what waits is given up. Messages that have come stay for receives.
void Ep::ended(int status) {
  if (state_ != State::kEnded) state_ = State::kEnded;
  const auto announced = std::exchange(announced_, {});
  for (auto* const op : announced) part_done(*op, status);
  const auto left = std::exchange(own_.posted, {});
  for (const auto& receive : left) {
    Outcome outcome;
    outcome.status = -ECANCELED;
    tell_received(receive, outcome);
  }
}

void Ep::break_off(const char* why) {
  inform(FI_LOG_EP_DATA, std::string("the peer is broken off: ") + why);
  if (connection_ != nullptr) stm_disconnect(connection_, STM_BROKEN);
}

}  // namespace stp::fi
