// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/domain.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "libst/libfabric/atomics.h"
#include "libst/libfabric/calls.h"
#include "libst/libfabric/cntr.h"
#include "libst/libfabric/cq.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/eq.h"
#include "libst/libfabric/mr.h"
#include "libst/libfabric/pep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/rdm/av.h"
#include "libst/libfabric/rdm/endpoint.h"
#include "libst/libfabric/receives.h"

namespace stp::fi {
namespace {

Fabric& fabric_of(fid_fabric* fabric) {
  return *static_cast<Fabric*>(fabric);
}

fi_ops fabric_object_calls{
    .size = sizeof(fi_ops),
    .close =
        [](fid_t id) { return guarded([&] { return object_of<Fabric, fid_fabric>(id).close(); }); },
    .bind = refuse,
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  return guarded([&] { return Domain::open(fabric_of(fabric), *info, context, *domain); });
}

fi_ops_fabric fabric_calls{
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep =
        [](fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) {
          return guarded([&] { return Pep::open(fabric_of(fabric), *info, context, *pep); });
        },
    .eq_open =
        [](fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) {
          return guarded([&] { return Eq::open(fabric_of(fabric), *attr, context, *eq); });
        },
    .wait_open = refuse,
    .trywait =
        [](fid_fabric* fabric, fid_t* objects, int count) {
          return guarded([&] { return fabric_of(fabric).try_wait(objects, count); });
        },
    .domain2 =
        [](fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
           void* context) {
          return flags != 0 ? -FI_EBADFLAGS : open_domain(fabric, info, domain, context);
        },
};

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attr, std::unique_ptr<Link> link, void* context)
    : fid_fabric{.fid = {.fclass = FI_CLASS_FABRIC,
                         .context = context,
                         .ops = &fabric_object_calls},
                 .ops = &fabric_calls,
                 .api_version = attr.api_version},
      link_(std::move(link)) {}

int Fabric::open(const fi_fabric_attr& attr, void* context, fid_fabric*& out) {
  if (attr.name == nullptr) return -FI_EINVAL;
  auto link = std::make_unique<Link>();
  if (const auto error = link->open(attr.name); error != 0)
    return explain(FI_LOG_FABRIC, std::string("link ").append(attr.name), error);
  out = new Fabric(attr, std::move(link), context);
  return 0;
}

int Fabric::close() {
  if (users_ != 0) return -FI_EBUSY;
  delete this;
  return 0;
}

int Fabric::try_wait(fid_t* objects, int count) {
  const PollLock lock(link_->mutex());
  for (int i = 0; i < count; ++i) {
    auto result = -FI_EINVAL;
    if (objects[i]->fclass == FI_CLASS_CQ)
      result = object_of<Cq, fid_cq>(objects[i]).try_wait();
    else if (objects[i]->fclass == FI_CLASS_EQ)
      result = object_of<Eq, fid_eq>(objects[i]).try_wait();
    else if (objects[i]->fclass == FI_CLASS_CNTR)
      result = object_of<Cntr, fid_cntr>(objects[i]).try_wait();
    if (result != 0) return result;
  }
  return 0;
}

namespace {

Domain& domain_of(fid_t id) {
  return object_of<Domain, fid_domain>(id);
}
Domain& domain_of(fid_domain* domain) {
  return *static_cast<Domain*>(domain);
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
  return guarded([&] {
    const auto is_rdm = info->ep_attr != nullptr && info->ep_attr->type == FI_EP_RDM;
    return is_rdm ? rdm::Endpoint::open(domain_of(domain), *info, context, *ep)
                  : Ep::open(domain_of(domain), *info, context, *ep);
  });
}

fi_ops domain_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return domain_of(id).close(); }); },
    // Nothing is registered behind the program's back: no event tells of it.
    .bind = [](fid_t, fid_t other,
               std::uint64_t) { return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL; },
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_domain domain_calls{
    .size = sizeof(fi_ops_domain),
    .av_open =
        [](fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) {
          return guarded([&] { return rdm::Av::open(domain_of(domain), attr, context, *av); });
        },
    .cq_open =
        [](fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
          return guarded([&] { return Cq::open(domain_of(domain), *attr, context, *cq); });
        },
    .endpoint = open_endpoint,
    .scalable_ep = refuse,
    .cntr_open =
        [](fid_domain* domain, fi_cntr_attr* attr, fid_cntr** cntr, void* context) {
          return guarded([&] { return Cntr::open(domain_of(domain), *attr, context, *cntr); });
        },
    .poll_open = refuse,
    .stx_ctx = refuse,
    .srx_ctx =
        [](fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context) {
          return guarded([&] { return Srx::open(domain_of(domain), attr, context, *srx); });
        },
    .query_atomic = [](fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attr,
                       std::uint64_t flags) { return query_atomic(type, op, attr, flags); },
    .query_collective = refuse,
    .endpoint2 =
        [](fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags, void* context) {
          return flags != 0 ? -FI_EBADFLAGS : open_endpoint(domain, info, ep, context);
        },
};

int register_memory(fid_t domain, const void* buffer, std::size_t length, std::uint64_t access,
                    std::uint64_t flags, fid_mr** mr, void* context) {
  return guarded(
      [&] { return Mr::open(domain_of(domain), buffer, length, access, flags, context, *mr); });
}

fi_ops_mr memory_calls{
    .size = sizeof(fi_ops_mr),
    .reg =
        [](fid_t domain, const void* buffer, std::size_t length, std::uint64_t access,
           std::uint64_t, std::uint64_t, std::uint64_t flags, fid_mr** mr, void* context) {
          return register_memory(domain, buffer, length, access, flags, mr, context);
        },
    .regv =
        [](fid_t domain, const iovec* iov, std::size_t count, std::uint64_t access, std::uint64_t,
           std::uint64_t, std::uint64_t flags, fid_mr** mr, void* context) {
          if (count != 1 || iov == nullptr) return -FI_EINVAL;
          return register_memory(domain, iov->iov_base, iov->iov_len, access, flags, mr, context);
        },
    .regattr =
        [](fid_t domain, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) {
          if (attr->iov_count != 1 || attr->mr_iov == nullptr) return -FI_EINVAL;
          if (attr->iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
          return register_memory(domain, attr->mr_iov->iov_base, attr->mr_iov->iov_len,
                                 attr->access, flags, mr, attr->context);
        },
};

}  // namespace

Domain::Domain(Fabric& fabric, void* context)
    : fid_domain{.fid = {.fclass = FI_CLASS_DOMAIN,
                         .context = context,
                         .ops = &domain_object_calls},
                 .ops = &domain_calls,
                 .mr = &memory_calls},
      fabric_(fabric) {
  fabric_.use();
}

int Domain::open(Fabric& fabric, const fi_info& info, void* context, fid_domain*& out) {
  if (info.domain_attr == nullptr) return -FI_EINVAL;
  out = new Domain(fabric, context);
  return 0;
}

void Domain::watch(const Mr& region) {
  watched_.emplace(region.key, &region);
}

void Domain::unwatch(const Mr& region) {
  watched_.erase(region.key);
}

void Domain::count_access(std::uint32_t key, bool reads) const {
  if (const auto found = watched_.find(key); found != watched_.end())
    found->second->count_access(reads);
}

int Domain::close() {
  if (users_ != 0) return -FI_EBUSY;
  fabric_.unuse();
  delete this;
  return 0;
}

}  // namespace stp::fi
