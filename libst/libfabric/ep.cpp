// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint is made of, and operations from their begin to their completion.
#include "libst/libfabric/ep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

Ep::Ep(Domain& domain, const fi_info& info, void* context)
    : AnyEndpoint(domain, info, kMsgOffer, nullptr, context),
      SendingConnection(static_cast<AnyEndpoint&>(*this)) {
  peer_ = address_or_any(info.dest_addr, info.dest_addrlen);
}

int Ep::open(Domain& domain, const fi_info& info, void* context, fid_ep*& out) {
  if (info.ep_attr == nullptr || info.ep_attr->type != FI_EP_MSG) return -FI_EINVAL;
  if (const auto error = check_sizes(info); error != 0) return error;
  const LinkLock lock(domain.link().mutex());
  std::unique_ptr<Connreq> request;
  std::optional<Address> name;
  if (info.handle != nullptr && !domain.link().has_handle(info.handle)) return -FI_EINVAL;
  if (const auto* const pep = Pep::of(info.handle); pep != nullptr) {
    if (const auto error = pep->lend_name(domain.link(), name.emplace()); error != 0) return error;
  } else if (info.handle != nullptr) {
    request = take_request(info.handle);
    if (!request || request->connection == nullptr) return -FI_EINVAL;
  }
  std::unique_ptr<Ep> ep(new Ep(domain, info, context));
  ep->request_ = std::move(request);
  if (name) ep->name_ = *name;
  out = ep.release();
  return 0;
}

void Ep::end_connections(LinkLock& lock) {
  link_.dialers().stop(lock, *this);
  if (request_) stm_reject(request_->connection, nullptr, 0);
  Connection::close();
  link_.drain();
  ended(-ECANCELED);
  held_.clear();
  inbox().drop(*this);
  if (block_) link_.give_back(std::move(block_));
  link_.stop_awaiting(*this);
  if (srx_ != nullptr) srx_->unuse(*this);
  link_.stop_watching(*this);
}

bool Ep::lingers() const {
  const auto connected = (state_ == State::kUp || state_ == State::kShutDown) && !ended_;
  return connected && (injected_ != 0 || is_sending());
}

int Ep::bind_other(fid_t other, std::uint64_t) {
  if (other->fclass != FI_CLASS_SRX_CTX || srx_ != nullptr) return -FI_EINVAL;
  srx_ = &object_of<Srx, fid_ep>(other);
  srx_->use(*this);
  rx_size_ = srx_->rx_size();
  return 0;
}

int Ep::enable() {
  if (eq_ == nullptr) return -FI_ENOEQ;
  if (!reports_.has_queue()) return -FI_ENOCQ;
  enabled_ = true;
  return 0;
}

int Ep::get_option(int name, void* value, std::size_t* length) {
  return name == FI_OPT_CM_DATA_SIZE ? tell_option(kCmData, value, length) : -FI_ENOPROTOOPT;
}

// ---- operations ----

int Ep::way_to(fi_addr_t, SendingConnection*& way) {
  way = this;
  return is_up() ? 0 : -FI_ENOTCONN;
}

void Ep::tell_of(const Op& write, std::byte* note) const {
  store64(note, write.length);
  store64(note + 8, write.data);
}

int Ep::post(Op& op) {
  op.owner = this;
  return begin_access(op);
}

void Ep::part_done(Op& op, int status) {
  if (&op == &at_once_) {
    Outcome lost;
    lost.status = status;
    lost.injected = true;
    return reports_.complete(lost);
  }
  if (!end_part(op, status)) return end_if_told();
  if (op.direction == Direction::kReceive) return has_read(op);
  if (op.direction != Direction::kSend) return finish(op);
  // In the order of posting, as layers such as ofi_rxm take for granted.
  while (!sends_.empty() && sends_.front()->parts == 0) {
    auto& first = *sends_.front();
    sends_.pop_front();
    finish(first);
  }
}

int Ep::send_note(Op& op) {
  return send_part(op, MessageKind::kWritten, op.note, kAnnouncement);
}

void Ep::look_again() {
  SendingConnection::look_again();
  end_if_told();
  if (waits_to_read_ != nullptr && link_.may_have_memory(lack_))
    begin_to_read(*std::exchange(waits_to_read_, nullptr));
  take_held();
  if (waits_to_read_ != nullptr || holds_written()) link_.await(*this);
}

void Ep::end_if_told() {
  if (state_ == State::kShutDown && !owes_notes()) stm_disconnect(connection_, STM_GRACEFUL);
}

void Ep::has_read(Op& op) {
  is_announced_ = false;
  link_.stop_watching(*this);
  received(op);
  take_held();
}

void Ep::take_held() {
  if (std::exchange(takes_held_, true)) return;  // one of them could not be read: it goes on there
  while (!held_.empty() && may_take(held_.front().kind)) {
    const auto next = held_.front();
    held_.pop_front();
    take(next);
  }
  takes_held_ = false;
}

// How an endpoint is connected, and how that ends.

int Ep::get_name(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  return tell_address(link_.at_present(name_, format_), format_, address, length);
}

int Ep::get_peer(void* address, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  return is_up() ? tell_address(peer_, format_, address, length) : -FI_ENOTCONN;
}

int Ep::prepare(std::unique_ptr<RxBlock>& block) {
  if (has_begun()) return -FI_EOPBADSTATE;
  if (!enabled_)
    if (const auto error = enable(); error != 0) return error;
  const auto error = link_.take_block(parameters().rx_buffers, block);
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "buffers for messages", error);
}

void Ep::use_block(std::unique_ptr<RxBlock> block) {
  block_ = std::move(block);
  for (auto& buffer : block_->buffers) {
    buffer.owner = this;
    lend(buffer);
  }
}

int Ep::connect(const void* address, const void* data, std::size_t length) {
  const LinkLock lock(link_.mutex());
  if (request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  if (address != nullptr && !read_address(address, kByFamily, peer_)) return -FI_EINVAL;
  if (peer_.port == 0) return -FI_EINVAL;
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(block); error != 0) return error;
  try {
    const auto error = dial(peer_, pack_request(link_.at_present(name_, format_), data, length));
    if (error != 0) {
      link_.give_back(std::move(block));
      return explain(FI_LOG_EP_CTRL, "a connection", error);
    }
  } catch (...) {  // as if it had not been called: there is no thread that connects, or no memory
    Connection::close();
    link_.give_back(std::move(block));
    throw;
  }
  state_ = State::kConnecting;  // who dials waits for the mutex
  use_block(std::move(block));
  return 0;
}

void Ep::not_dialed(int status) {
  if (state_ != State::kConnecting || ended_ || closing_) return;
  explain(FI_LOG_EP_CTRL, "connecting to " + peer_name(peer_), status);
  eq_->tell_error(&fid, status, {});
  ended(status);
}

int Ep::accept(const void* data, std::size_t length) {
  const LinkLock lock(link_.mutex());
  if (!request_) return -FI_EOPBADSTATE;
  if (length > kCmData || (data == nullptr && length != 0)) return -FI_EINVAL;
  std::unique_ptr<RxBlock> block;
  if (const auto error = prepare(block); error != 0) return error;
  const auto attr = attributes();
  const auto connection = request_->connection;
  if (const auto error = stm_accept(connection, &attr, data, length); error != 0) {
    link_.give_back(std::move(block));
    return explain(FI_LOG_EP_CTRL, "accepting", error);
  }
  connection_ = connection;
  peer_ = request_->peer;
  request_.reset();
  accepts_ = true;
  state_ = State::kConnecting;
  use_block(std::move(block));
  return 0;
}

int Ep::shutdown(std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  if (flags != 0) return -FI_EBADFLAGS;
  if (!is_up()) return -FI_ENOTCONN;
  state_ = State::kShutDown;
  end_if_told();
  link_.progress();
  return 0;
}

void Ep::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    state_ = State::kUp;
    // Who accepts has had the data of the request with that.
    eq_->tell(FI_CONNECTED, &fid, nullptr,
              accepts_ ? std::vector<std::byte>{} : cm_data_of(connection_));
    return;
  }
  const auto connecting = state_ == State::kConnecting;
  const auto status = reason_of_end(event, connecting ? -ECONNREFUSED : -ECANCELED);
  if (ended_) return;
  if (connecting) {
    const auto refused = event.kind == STM_REFUSED;
    tell_unreachable(peer_name(peer_), status);
    eq_->tell_error(&fid, refused ? -ECONNREFUSED : status,
                    refused ? cm_data_of(connection_) : std::vector<std::byte>{});
  } else {
    eq_->tell(FI_SHUTDOWN, &fid, nullptr, {});
  }
  ended(status);
}

// Nothing comes any more: what waits is given up. Messages that have come stay for receives.
void Ep::ended(int status) {
  ended_ = true;
  link_.stop_watching(*this);
  const auto announced = std::exchange(announced_, {});
  for (auto* const op : announced) part_done(*op, status);
  if (auto* const op = std::exchange(waits_to_read_, nullptr)) part_done(*op, status);
  for (const auto& receive : matching_.take_receives()) give_up(receive, -ECANCELED);
}

// ---- the one that listens ----

namespace {

Pep& pep_of(fid_t id) {
  return object_of<Pep, fid_pep>(id);
}

fi_ops pep_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return pep_of(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return pep_of(id).bind(other, flags); });
        },
    // FI_BACKLOG is a wish: connections wait where the link keeps them.
    .control = [](fid_t, int command, void*) { return command == FI_BACKLOG ? 0 : -FI_ENOSYS; },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_cm pep_cm_calls{
    .size = sizeof(fi_ops_cm),
    .setname =
        [](fid_t id, void* address, std::size_t length) {
          return guarded([&] { return pep_of(id).set_name(address, length); });
        },
    .getname =
        [](fid_t id, void* address, std::size_t* length) {
          return guarded([&] { return pep_of(id).get_name(address, length); });
        },
    .getpeer = refuse,
    .connect = refuse,
    .listen =
        [](fid_pep* pep) { return guarded([&] { return static_cast<Pep*>(pep)->listen(); }); },
    .accept = refuse,
    .reject =
        [](fid_pep* pep, fid_t handle, const void* data, std::size_t length) {
          return guarded([&] { return static_cast<Pep*>(pep)->reject(handle, data, length); });
        },
    .shutdown = refuse,
    .join = refuse,
};

int get_option(fid_t, int level, int name, void* value, std::size_t* length) {
  return level == FI_OPT_ENDPOINT && name == FI_OPT_CM_DATA_SIZE
             ? tell_option(kCmData, value, length)
             : -FI_ENOPROTOOPT;
}

fi_ops_ep pep_ep_calls{
    .size = sizeof(fi_ops_ep),
    .cancel = refuse,
    .getopt = get_option,
    .setopt = refuse,
    .tx_ctx = refuse,
    .rx_ctx = refuse,
    .rx_size_left = refuse,
    .tx_size_left = refuse,
};

fi_ops request_calls{
    .size = sizeof(fi_ops),
    .close = refuse,
    .bind = refuse,
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

}  // namespace

std::unique_ptr<Connreq> take_request(fid_t handle) {
  if (handle == nullptr || handle->fclass != FI_CLASS_CONNREQ) return nullptr;
  // Its passive endpoint, where that is there still, knows it no more.
  auto& request = *static_cast<Connreq*>(handle);
  auto taken = std::make_unique<Connreq>(request);
  request.connection = nullptr;
  return taken;
}

Pep::Pep(Fabric& fabric, const fi_info& info, void* context)
    : fid_pep{.fid = {.fclass = FI_CLASS_PEP, .context = context, .ops = &pep_object_calls},
              .ops = &pep_ep_calls,
              .cm = &pep_cm_calls},
      fabric_(fabric),
      link_(fabric.link()),
      info_(fi_dupinfo(&info)) {
  if (!info_) throw std::bad_alloc();
  name_ = address_or_any(info.src_addr, info.src_addrlen);
  fabric_.use();
}

int Pep::open(Fabric& fabric, const fi_info& info, void* context, fid_pep*& out) {
  auto* const made = new Pep(fabric, info, context);
  const LinkLock lock(made->link_.mutex());
  made->link_.add_handle(&made->fid);
  out = made;
  return 0;
}

Pep* Pep::of(fid_t handle) {
  if (handle == nullptr || handle->fclass != FI_CLASS_PEP || handle->ops != &pep_object_calls)
    return nullptr;
  return &pep_of(handle);
}

int Pep::lend_name(const FabricLink& link, Address& out) const {
  if (&link != &link_) return -FI_EINVAL;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  out = link_.at_present(name_, info_->addr_format);
  return 0;
}

int Pep::close() {
  {
    const LinkLock lock(link_.mutex());
    if (listener_ != nullptr) stm_listener_close(listener_);
    link_.drain();
    for (const auto& [handle, request] : undecided_) {
      if (request->connection != nullptr) stm_reject(request->connection, nullptr, 0);
      link_.remove_handle(handle);
    }
    link_.remove_handle(&fid);
    Eq::unbind(eq_, &fid);
  }
  fabric_.unuse();
  delete this;
  return 0;
}

int Pep::bind(fid_t other, std::uint64_t flags) {
  const LinkLock lock(link_.mutex());
  return other->fclass == FI_CLASS_EQ ? Eq::bind(eq_, other, flags) : -FI_EINVAL;
}

int Pep::listen() {
  const LinkLock lock(link_.mutex());
  if (eq_ == nullptr) return -FI_ENOEQ;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  return listen_at(link_, name_, *this, listener_);
}

// Those that are decided, and those whose peer has gone before the program has read of them:
// whoever asks and goes, again and again, leaves nothing.
void Pep::drop_gone() {
  std::erase_if(undecided_, [this](const auto& entry) {
    const auto& [handle, request] = entry;
    if (request->connection != nullptr) {
      stm_connection_info_t info{};
      info.size = sizeof info;
      const auto ended =
          stm_connection_query(request->connection, &info) != 0 || info.state == STM_ENDED;
      if (!ended || !eq_->take_back(handle)) return false;
      stm_reject(request->connection, nullptr, 0);
    }
    link_.remove_handle(handle);
    return true;
  });
  look_at_ = 2 * undecided_.size() + kFew;
}

void Pep::requested(stm_connection_t connection) {
  auto data = cm_data_of(connection);
  auto peer = unpack_request(data);
  if (peer) peer = link_.canonical_from_peer(*peer);
  if (!peer) {
    inform_seldom(++rejected_, "who asks to connect is rejected", "it is no endpoint of FI_EP_MSG");
    stm_reject(connection, nullptr, 0);
    return;
  }
  if (undecided_.size() >= look_at_) drop_gone();
  auto request = std::make_unique<Connreq>();
  request->fclass = FI_CLASS_CONNREQ;
  request->ops = &request_calls;
  request->connection = connection;
  request->peer = *peer;
  auto* const handle = static_cast<fid_t>(request.get());
  auto* const info =
      info_of_request(*info_, link_.at_present(name_, info_->addr_format), *peer, handle);
  undecided_.emplace(handle, std::move(request));
  link_.add_handle(handle);
  eq_->tell(FI_CONNREQ, &fid, info, data);
}

int Pep::reject(fid_t handle, const void* data, std::size_t length) {
  const LinkLock lock(link_.mutex());
  const auto found = undecided_.find(handle);
  if (found == undecided_.end() || found->second->connection == nullptr) return -FI_EINVAL;
  if (length > kCmData) return -FI_EINVAL;
  const auto error = stm_reject(found->second->connection, data, length);
  undecided_.erase(found);
  link_.remove_handle(handle);
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "a rejection", error);
}

int Pep::set_name(const void* address, std::size_t length) {
  const LinkLock lock(link_.mutex());
  Address given;
  if (!read_address(address, length, given)) return -FI_EINVAL;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  if (!link_.has_address(given, info_->addr_format)) return -FI_EADDRNOTAVAIL;
  name_ = given;
  return 0;
}

Address Pep::name() const {
  const LinkLock lock(link_.mutex());
  return link_.at_present(name_, info_->addr_format);
}

int Pep::get_name(void* address, std::size_t* length) {
  return tell_address(name(), info_->addr_format, address, length);
}

}  // namespace stp::fi
