// SPDX-License-Identifier: BSD-3-Clause
// The endpoint of FI_EP_MSG that listens.
#include <algorithm>
#include <new>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

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
    const auto* const other = why_other_kind(data, kMagic);
    const auto tell = other != nullptr ? warn_seldom : inform_seldom;
    tell(++rejected_, "who asks to connect is rejected",
         other != nullptr ? other : "it is no endpoint of FI_EP_MSG");
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
