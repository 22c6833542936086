// SPDX-License-Identifier: BSD-3-Clause
#include "libst/python/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stp::python {

namespace {
using By = Operation::By;
using Gives = Operation::Gives;
}  // namespace

std::string trouble_with(stm_connection_t connection) {
  stm_peer_info_t peer{};
  peer.size = sizeof peer;
  if (stm_peer_query(connection, &peer) != 0 || *peer.trouble == 0) return "";
  return std::string(": ") + peer.trouble;
}

stm_connection_t Connection::need() const {
  if (handle == nullptr) throw Failed{-EBADF, "the connection is closed"};
  domain_->handle();
  return handle;
}

// ---- its beginning ----

std::shared_ptr<Operation> Connection::begin_opening(std::string what) {
  opening_ = std::make_shared<Operation>(domain_, By::kOpening, Gives::kConnection);
  opening_->what = std::move(what);
  opening_->connection = shared_from_this();
  return opening_;
}

void Connection::fail_opening(int error, const std::string& text) {
  if (!opening_) return;
  std::exchange(opening_, nullptr)->end(error, text);
  end(error);
}

void Connection::learn_data() {
  char bytes[STM_PRIVATE_DATA];
  const auto length = stm_private_data(handle, bytes, sizeof bytes);
  if (length > 0)
    data.assign(bytes, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof bytes));
}

std::shared_ptr<Operation> Connection::accept(const std::string& answer) {
  const auto request = need();
  if (!is_request) throw Failed{-EISCONN, "the connection is no request, or it was decided"};
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.context = context;
  attr.events = domain_->queue();
  domain_->add(shared_from_this());
  auto opening = begin_opening("accepting");
  is_request = false;
  int error;
  do error = outside([&] { return stm_accept(request, &attr, answer.data(), answer.size()); });
  while (error == -EAGAIN && domain_->grow());
  if (error >= 0) return opening;
  const auto text = std::string("accepting: ") + st_strerror(error);
  opening_.reset();
  close();
  throw Failed{error, text};
}

void Connection::reject(const std::string& answer) {
  const auto request = need();
  if (!is_request) throw Failed{-EISCONN, "the connection is no request, or it was decided"};
  handle = nullptr;
  is_request = false;
  outside([&] { return stm_reject(request, answer.data(), answer.size()); });
}

bool Connection::drop_if_gone() {
  stm_connection_info_t info{};
  info.size = sizeof info;
  const auto there =
      handle != nullptr && stm_connection_query(handle, &info) == 0 && info.state != STM_ENDED;
  if (!there && handle != nullptr) stm_reject(std::exchange(handle, nullptr), nullptr, 0);
  return !there;
}

// ---- its end ----

void Connection::hear(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    learn_data();
    if (opening_) std::exchange(opening_, nullptr)->end(0, "");
  } else if (event.kind == STM_DISCONNECTED) {
    end(0);
  } else {
    if (event.kind == STM_REFUSED) learn_data();
    const auto reason = event.kind == STM_REFUSED ? -ECONNREFUSED : event.status;
    std::string text = event.kind == STM_REFUSED ? "the peer has said no" : st_strerror(reason);
    if (opening_) std::exchange(opening_, nullptr)->end(reason, std::move(text));
    end(reason);
  }
}

void Connection::end(int reason) {
  if (over_) return;
  over_ = true;
  reason_ = reason;
  if (opening_)
    std::exchange(opening_, nullptr)->end(reason < 0 ? reason : -ENOTCONN, "it has ended");
  for (const auto& ender : std::exchange(enders_, {})) ender->end(0, "");
  if (domain_->closed()) handle = nullptr;
  go_on();
}

std::shared_ptr<Operation> Connection::ended() {
  auto operation = std::make_shared<Operation>(domain_, By::kEnd, Gives::kNothing);
  operation->connection = shared_from_this();
  if (over_ || handle == nullptr) {
    operation->end(0, "");
    domain_->tell();
  } else {
    enders_.push_back(operation);
  }
  return operation;
}

void Connection::disconnect(int how) {
  const auto ending = need();
  const auto error = outside([&] { return stm_disconnect(ending, how); });
  if (error < 0 && !over_ && handle != nullptr && error != -ESHUTDOWN && error != -ENOTCONN)
    fail(error, "disconnecting");
}

void Connection::close() {
  if (handle == nullptr || Domain::inherited()) return;
  const auto self = shared_from_this();
  const auto closing = std::exchange(handle, nullptr);
  if (!domain_->closed()) {
    outside([&] {
      return is_request ? stm_reject(closing, nullptr, 0) : stm_connection_close(closing);
    });
    // What was outstanding has completed.
    if (!domain_->closed()) domain_->poll();
  }
  domain_->forget_connection(context);
  end(-ECANCELED);
  domain_->tell();
}

stm_connection_info_t Connection::info() {
  stm_connection_info_t info{};
  info.size = sizeof info;
  checked(stm_connection_query(need(), &info), "asking for the connection's state");
  return info;
}

// ---- receives ----

std::shared_ptr<Operation> Connection::receive(std::size_t most) {
  need();
  auto operation = std::make_shared<Operation>(domain_, By::kLink, Gives::kBytes);
  operation->use_place(most);
  return begin_receive(operation);
}

std::shared_ptr<Operation> Connection::receive_into(Buffer buffer) {
  need();
  auto operation = std::make_shared<Operation>(domain_, By::kLink, Gives::kLength);
  operation->use_buffer(std::move(buffer), true);
  return begin_receive(operation);
}

std::shared_ptr<Operation> Connection::begin_receive(const Pending& operation) {
  operation->connection = shared_from_this();
  operation->what = "receiving";
  operation->is_receive = true;
  if (abandoned_ > 0 || !later_.empty()) {
    operation->by = By::kLater;
    later_.push_back(operation);
  } else if (deliver_kept(operation)) {
    domain_->tell();
  } else {
    const auto to = need();
    domain_->post(operation, [&] {
      return stm_receive(to, operation->context, operation->memory, operation->at, operation->size);
    });
  }
  return operation;
}

namespace {

void end_too_short(Operation& receive, std::size_t length) {
  receive.end(-EMSGSIZE, "Message too long: it has " + std::to_string(length) +
                             " bytes, and the receive takes " + std::to_string(receive.size));
}

}  // namespace

bool Connection::deliver_kept(const Pending& operation) {
  if (kept_.empty()) return false;
  const auto message = std::move(kept_.front());
  kept_.pop_front();
  operation->tag = message.tag;
  operation->length = message.bytes.size();
  if (message.bytes.size() > operation->size) {
    end_too_short(*operation, message.bytes.size());
  } else {
    std::memcpy(operation->at, message.bytes.data(), message.bytes.size());
    operation->end(0, "");
  }
  return true;
}

void Connection::put_back(std::string_view bytes, std::uint32_t tag) {
  kept_.push_front({std::string(bytes), tag});
  go_on();
}

void Connection::received(const Pending& operation, int status) {
  if (!operation->abandoned) {
    if (status == -EMSGSIZE)
      end_too_short(*operation, operation->length);
    else
      operation->end(status);
    return;
  }
  --abandoned_;
  if (status == 0) kept_.push_back({std::string(operation->at, operation->length), operation->tag});
  operation->end(-ECANCELED, "it was taken back");
  go_on();
}

// Receives that were put off, once none that was taken back can get a message.
void Connection::go_on() {
  while (!later_.empty() && abandoned_ == 0) {
    const auto operation = std::move(later_.front());
    later_.pop_front();
    if (deliver_kept(operation)) continue;
    if (handle == nullptr || domain_->closed()) {
      operation->end(-ECANCELED, "the connection was closed");
      continue;
    }
    operation->by = By::kLink;
    domain_->post_held(operation, [&] {
      return stm_receive(handle, operation->context, operation->memory, operation->at,
                         operation->size);
    });
  }
}

void Connection::cancel(const Pending& operation) {
  if (operation->is_receive && !operation->abandoned) {
    operation->abandoned = true;
    ++abandoned_;
  }
  const auto of = handle;
  if (of == nullptr) return;
  // A message that is arriving for a receive is the next receive's: its sender loses nothing.
  outside([&] {
    return operation->is_receive ? stm_withdraw(of, operation->context)
                                 : stm_cancel(of, operation->context);
  });
}

void Connection::withdraw(const Pending& operation) {
  std::erase(later_, operation);
  std::erase(enders_, operation);
  operation->end(-ECANCELED, "it was taken back");
  if (operation == opening_) {
    opening_.reset();
    close();
  }
}

// ---- what moves bytes ----

std::shared_ptr<Operation> Connection::begin(const char* what, Gives gives) {
  auto operation = std::make_shared<Operation>(domain_, By::kLink, gives);
  operation->what = what;
  operation->connection = shared_from_this();
  return operation;
}

// An operation on bytes of a buffer. `fills`: they come from the peer. `call(connection,
// operation)` posts it.
template <typename Call>
Connection::Pending Connection::move(const char* what, Gives gives, Buffer bytes, bool fills,
                                     const Call& call) {
  const auto with = need();
  auto operation = begin(what, gives);
  operation->use_buffer(std::move(bytes), fills);
  domain_->post(operation, [&] { return call(with, *operation); });
  return operation;
}

std::shared_ptr<Operation> Connection::send(Buffer bytes, std::uint32_t tag, unsigned flags) {
  return move("sending", Gives::kNothing, std::move(bytes), false, [&](auto to, auto& operation) {
    return stm_send(to, operation.context, flags, tag, operation.memory, operation.at,
                    operation.size);
  });
}

std::shared_ptr<Operation> Connection::put(Buffer bytes, std::uint32_t key, std::uint64_t address,
                                           unsigned flags) {
  return move("putting", Gives::kNothing, std::move(bytes), false, [&](auto to, auto& operation) {
    return stm_put(to, operation.context, flags, operation.memory, operation.at, operation.size,
                   key, address);
  });
}

std::shared_ptr<Operation> Connection::get(Buffer buffer, std::uint32_t key, std::uint64_t address,
                                           unsigned flags) {
  return move("getting", Gives::kLength, std::move(buffer), true, [&](auto from, auto& operation) {
    return stm_get(from, operation.context, flags, operation.memory, operation.at, operation.size,
                   key, address);
  });
}

std::shared_ptr<Operation> Connection::fetch(unsigned op, std::uint64_t operand,
                                             std::uint64_t compare, std::uint32_t key,
                                             std::uint64_t address, unsigned flags) {
  const auto at = need();
  auto operation = begin("a fetch-and-op", Gives::kNumber);
  operation->use_place(sizeof(std::uint64_t));
  domain_->post(operation, [&] {
    return stm_fetch(at, operation->context, flags, static_cast<stm_fetch_op>(op), operand, compare,
                     operation->memory, operation->at, key, address);
  });
  return operation;
}

}  // namespace stp::python
