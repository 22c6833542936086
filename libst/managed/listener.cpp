// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/listener.h"

#include "libst/client/error.h"

namespace stp::managed {

using client::Payload;
using client::Reply;
using client::request_for;
using client::RequestKind;

int Listener::listen(std::uint32_t uport) {
  if (auto const error = domain_->take_endpoint(endpoint_); error != 0) return error;
  auto request = request_for(RequestKind::kListen);
  request.endpoint = endpoint_;
  request.uport = uport;
  Reply reply{};
  auto const error = domain_->backend().exchange(request, reply);
  if (error == 0) return 0;
  domain_->give_back_endpoint(endpoint_);
  if (error != -EADDRINUSE) return error;
  return client::fail(error, "port " + std::to_string(uport) + " of this link has a listener");
}

void Listener::close() {
  auto request = request_for(RequestKind::kUnlisten);
  request.endpoint = endpoint_;
  Reply reply{};
  domain_->backend().exchange(request, reply);
  domain_->give_back_endpoint(endpoint_);
  std::lock_guard const guard(domain_->mutex());
  closed_ = true;
  domain_->deactivate(*this);
  auto const untold = std::move(untold_);
  untold_.clear();
  for (auto const& connection : untold) {
    client::HandleTable::instance().retire(connection->handle(), Connection::kKind);
    domain_->forget(connection->handle());
    connection->reject({Hello::Kind::kReject, {}});
  }
  queue_.reset();
}

void Listener::accept() {
  tell();
  while (undecided_ < backlog_ && take_one()) {
  }
  if (!untold_.empty()) domain_->look_for_connections();  // again, once the queue has a place
}

bool Listener::take_one() {
  if (!domain_->staging().has_free()) {
    domain_->need_staging();
    return false;
  }
  auto request = request_for(RequestKind::kAccept);
  request.endpoint = endpoint_;
  Payload payload;
  Reply made{};
  if (domain_->backend().exchange(request, payload, made) != 0) return false;
  ++undecided_;
  std::make_shared<Connection>(domain_)->expect(
      shared_from_this(), endpoint_, made, std::move(payload.memory), domain_->staging().take());
  return true;
}

void Listener::requested(const std::shared_ptr<Connection>& connection) {
  auto const handle = client::HandleTable::instance().add(Connection::kKind, connection);
  connection->set_handle(handle);
  if (closed_ || handle == 0) {
    client::HandleTable::instance().retire(handle, Connection::kKind);
    connection->reject({Hello::Kind::kReject, {}});
    return;
  }
  domain_->adopt(handle, Connection::kKind);
  untold_.push_back(connection);
  tell();
}

// As far as the queue has places.
void Listener::tell() {
  while (!untold_.empty() && queue_.reserve()) {
    stm_event_t event{};
    event.kind = STM_REQUEST;
    event.context = context_;
    event.connection = reinterpret_cast<stm_connection_t>(untold_.front()->handle());
    queue_.push(event);
    untold_.pop_front();
  }
}

void Listener::decided() {
  --undecided_;
  if (!closed_) domain_->look_for_connections();
}

}  // namespace stp::managed
