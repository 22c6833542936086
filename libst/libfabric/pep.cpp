// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/pep.h"

#include <rdma/fi_cm.h>

#include "libst/libfabric/address.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/info.h"
#include "libst/libfabric/link.h"
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

fi_ops_cm cm_calls{
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
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
  if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
  *static_cast<std::size_t*>(value) = kCmData;
  *length = sizeof(std::size_t);
  return 0;
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
              .cm = &cm_calls},
      fabric_(fabric),
      link_(fabric.link()),
      info_(fi_dupinfo(&info)) {
  if (!info_) throw std::bad_alloc();
  name_ = address_or_any(info.src_addr, info.src_addrlen);
  fabric_.use();
}

int Pep::open(Fabric& fabric, const fi_info& info, void* context, fid_pep*& out) {
  out = new Pep(fabric, info, context);
  return 0;
}

Pep* Pep::of(fid_t handle) {
  if (handle == nullptr || handle->fclass != FI_CLASS_PEP || handle->ops != &pep_object_calls)
    return nullptr;
  return &pep_of(handle);
}

int Pep::lend_name(const Link& link, Address& out) const {
  if (&link != &link_) return -FI_EINVAL;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  out = link_.at_present(name_, info_->addr_format);
  return 0;
}

int Pep::close() {
  {
    std::lock_guard const lock(link_.mutex());
    if (listener_ != nullptr) stm_listener_close(listener_);
    link_.drain();
    for (const auto& [handle, request] : undecided_)
      if (request->connection != nullptr) stm_reject(request->connection, nullptr, 0);
    if (eq_ != nullptr) {
      eq_->forget(&fid);
      eq_->unuse();
    }
  }
  fabric_.unuse();
  delete this;
  return 0;
}

int Pep::bind(fid_t other, std::uint64_t flags) {
  std::lock_guard const lock(link_.mutex());
  return other->fclass == FI_CLASS_EQ ? Eq::bind(eq_, other, flags) : -FI_EINVAL;
}

int Pep::listen() {
  std::lock_guard const lock(link_.mutex());
  if (eq_ == nullptr) return -FI_ENOEQ;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  return listen_at(link_, name_, *this, listener_);
}

void Pep::requested(stm_connection_t connection) {
  auto data = cm_data_of(connection);
  const auto peer = unpack_request(data);
  if (!peer) {
    inform(FI_LOG_EP_CTRL, "who asks to connect is no endpoint of libfabric: rejected");
    stm_reject(connection, nullptr, 0);
    return;
  }
  std::erase_if(undecided_, [](const auto& entry) { return entry.second->connection == nullptr; });
  auto request = std::make_unique<Connreq>();
  request->fclass = FI_CLASS_CONNREQ;
  request->ops = &request_calls;
  request->connection = connection;
  request->peer = *peer;
  auto* const handle = static_cast<fid_t>(request.get());
  auto* const info =
      info_of_request(*info_, link_.at_present(name_, info_->addr_format), *peer, handle);
  undecided_.emplace(handle, std::move(request));
  eq_->tell(FI_CONNREQ, &fid, info, data);
}

int Pep::reject(fid_t handle, const void* data, std::size_t length) {
  std::lock_guard const lock(link_.mutex());
  const auto found = undecided_.find(handle);
  if (found == undecided_.end() || found->second->connection == nullptr) return -FI_EINVAL;
  if (length > kCmData) return -FI_EINVAL;
  const auto error = stm_reject(found->second->connection, data, length);
  undecided_.erase(found);
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "a rejection", error);
}

int Pep::set_name(const void* address, std::size_t length) {
  std::lock_guard const lock(link_.mutex());
  Address given;
  if (!read_address(address, length, given)) return -FI_EINVAL;
  if (listener_ != nullptr) return -FI_EOPBADSTATE;
  if (!link_.has_address(given, info_->addr_format)) return -FI_EADDRNOTAVAIL;
  name_ = given;
  return 0;
}

Address Pep::name() const {
  std::lock_guard const lock(link_.mutex());
  return link_.at_present(name_, info_->addr_format);
}

int Pep::get_name(void* address, std::size_t* length) {
  return tell_address(name(), info_->addr_format, address, length);
}

}  // namespace stp::fi
