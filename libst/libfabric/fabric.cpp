// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/fabric.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/cntr.h"
#include "libst/libfabric/cq.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/eq.h"
#include "libst/libfabric/pep.h"
#include "libst/libfabric/provider.h"

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
  std::lock_guard const lock(link_->mutex());
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

}  // namespace stp::fi
