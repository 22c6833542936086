// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/domain.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"
#include "libst/libfabric/rdm/endpoint.h"

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

Fabric::Fabric(const fi_fabric_attr& attr, std::unique_ptr<FabricLink> link, void* context)
    : fid_fabric{.fid = {.fclass = FI_CLASS_FABRIC,
                         .context = context,
                         .ops = &fabric_object_calls},
                 .ops = &fabric_calls,
                 .api_version = attr.api_version},
      link_(std::move(link)) {}

int Fabric::open(const fi_fabric_attr& attr, void* context, fid_fabric*& out) {
  if (attr.name == nullptr) return -FI_EINVAL;
  auto link = std::make_unique<FabricLink>();
  if (const auto error = link->open(attr.name); error != 0)
    return complain(FI_LOG_FABRIC, "cannot use a link", error);
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
          return guarded([&] { return Av::open(domain_of(domain), attr, context, *av); });
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

Domain::Domain(Fabric& fabric, const fi_info& info, void* context)
    : fid_domain{.fid = {.fclass = FI_CLASS_DOMAIN,
                         .context = context,
                         .ops = &domain_object_calls},
                 .ops = &domain_calls,
                 .mr = &memory_calls},
      fabric_(fabric),
      format_(info.addr_format),
      asks_(info.ep_attr != nullptr && info.ep_attr->type == FI_EP_RDM) {
  fabric_.use();
}

int Domain::open(Fabric& fabric, const fi_info& info, void* context, fid_domain*& out) {
  if (info.domain_attr == nullptr) return -FI_EINVAL;
  out = new Domain(fabric, info, context);
  return 0;
}

void Domain::watch(const Mr& region) {
  watched_.emplace(static_cast<std::uint32_t>(region.key), &region);
}

void Domain::unwatch(const Mr& region) {
  watched_.erase(static_cast<std::uint32_t>(region.key));
}

void Domain::count_access(std::uint32_t key, bool reads) const {
  if (const auto found = watched_.find(key); found != watched_.end())
    found->second->count_access(reads);
}

std::uint64_t Domain::add_served(const Mr& memory) {
  std::random_device random;
  for (;;) {
    const auto key = std::uint64_t{random()} << 32 | random();
    if (is_by_program(key) && served_.emplace(key, &memory).second) return key;
  }
}

const Mr* Domain::served(std::uint64_t key) const {
  const auto found = served_.find(key);
  return found == served_.end() ? nullptr : found->second;
}

int Domain::close() {
  if (users_ != 0) return -FI_EBUSY;
  fabric_.unuse();
  delete this;
  return 0;
}

namespace {

constexpr std::uint64_t kAllAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
// Others are hints, and those that layers of libfabric have among themselves (ofi_rxm sets one).
constexpr std::uint64_t kRefusedFlags = FI_RMA_PMEM | FI_HMEM_DEVICE_ONLY;

Mr& mr_of(fid_t id) {
  return object_of<Mr, fid_mr>(id);
}

fi_ops mr_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return mr_of(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return mr_of(id).bind_cntr(other, flags); });
        },
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

// What peers may do. A FetchOp reads and writes.
unsigned remote_access(std::uint64_t access) {
  unsigned remote = 0;
  if ((access & FI_REMOTE_READ) != 0) remote |= STM_REMOTE_READ;
  if ((access & FI_REMOTE_WRITE) != 0) remote |= STM_REMOTE_WRITE;
  if (remote == (STM_REMOTE_READ | STM_REMOTE_WRITE)) remote |= STM_REMOTE_ATOMIC;
  return remote;
}

}  // namespace

Mr::Mr(Domain& domain, void* buffer, std::size_t length, std::uint64_t access, void* context)
    : fid_mr{.fid = {.fclass = FI_CLASS_MR, .context = context, .ops = &mr_calls},
             .mem_desc = this,
             .key = 0},
      domain_(domain),
      buffer_(buffer),
      length_(length),
      access_(access) {
  domain_.use();
}

int Mr::bind() {
  const auto remote = remote_access(access_);
  const auto written = (access_ & (FI_RECV | FI_READ)) != 0;
  const auto local = static_cast<unsigned>(written ? STM_LOCAL_WRITE : STM_LOCAL_READ);
  auto error =
      stm_memory_register(domain_.link().domain(), buffer_, length_, local | remote, &memory_);
  // What the link may not have, or not for reading alone.
  const auto is_served = error == -EOPNOTSUPP || (error == -EFAULT && !may_change());
  if (is_served && remote != 0 && domain_.asks()) return serve(error);
  if (error != 0 || remote == 0) return error;
  stm_remote_t told{};
  error = stm_region_open(memory_, buffer_, length_, remote, nullptr,
                          reinterpret_cast<std::uintptr_t>(buffer_), &region_, &told);
  key = told.key;
  return error;
}

namespace {

// Whether all of these bytes can be read, or written: the kernel looks, so nobody ends by it.
bool can_touch(const void* from, std::size_t length, bool written) {
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // of Linux 5.14
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(from) + length;
  return ::madvise(reinterpret_cast<void*>(begin), end - begin,
                   written ? kPopulateWrite : kPopulateRead) == 0;
}

}  // namespace

// Memory that others have mapped, too, cannot be lent to a stpd, and what peers are to read has to
// be writable for a link. `error`: why it was refused.
int Mr::serve(int error) {
  // What may not be accessed as the program says is told now, not when a peer comes.
  if (!can_touch(buffer_, length_, may_change())) return errno == EINVAL ? error : -EFAULT;
  const LinkLock lock(domain_.link().mutex());
  key = domain_.add_served(*this);
  inform(FI_LOG_MR, "memory of " + std::to_string(length_) +
                        " bytes: this program accesses it for its peers, while it calls "
                        "libfabric, because " +
                        st_strerror(error));
  return 0;
}

std::byte* Mr::place(std::uint64_t address, std::uint64_t length, std::uint64_t access) const {
  const auto offset = address - reinterpret_cast<std::uintptr_t>(buffer_);
  const auto fits = offset <= length_ && length <= length_ - offset;
  if (!fits || (access_ & access) != access) return nullptr;
  auto* const found = static_cast<std::byte*>(buffer_) + offset;
  // Others can make the file shorter, and the program may have unmapped it.
  const auto written = (access & FI_REMOTE_WRITE) != 0;
  return length == 0 || can_touch(found, length, written) ? found : nullptr;
}

int Mr::open(Domain& domain, const void* buffer, std::size_t length, std::uint64_t access,
             std::uint64_t flags, void* context, fid_mr*& out) {
  if ((flags & kRefusedFlags) != 0) return -FI_EBADFLAGS;
  if ((access & ~kAllAccess) != 0) return -FI_EINVAL;
  if (buffer == nullptr && length != 0) return -FI_EINVAL;
  // Freed as a program would: what was made so far goes.
  struct Close {
    void operator()(Mr* mr) const { mr->close(); }
  };
  std::unique_ptr<Mr, Close> mr(new Mr(domain, const_cast<void*>(buffer), length, access, context));
  if (length != 0)
    if (const auto error = mr->bind(); error != 0)
      return explain(FI_LOG_MR, "memory of " + std::to_string(length) + " bytes", error);
  out = mr.release();
  return 0;
}

int Mr::bind_cntr(fid_t other, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (other->fclass != FI_CLASS_CNTR) return -FI_ENOSYS;
  if ((flags & ~kKnown) != 0 || flags == 0) return -FI_EBADFLAGS;
  const LinkLock lock(domain_.link().mutex());
  const std::array wanted{(flags & FI_REMOTE_WRITE) != 0, (flags & FI_REMOTE_READ) != 0};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if ((region_ == nullptr && !is_by_program(key)) || (wanted[i] && counters_[i] != nullptr))
      return -FI_EINVAL;
  auto& counter = object_of<Cntr, fid_cntr>(other);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    counters_[i] = &counter;
    counter.use();
  }
  domain_.watch(*this);
  return 0;
}

void Mr::count_access(bool reads) const {
  if ((access_ & (reads ? FI_REMOTE_READ : FI_REMOTE_WRITE)) == 0) return;
  if (auto* const counter = counters_[reads ? 1 : 0]; counter != nullptr) counter->count(false);
}

int Mr::close() {
  {
    const LinkLock lock(domain_.link().mutex());
    for (auto*& counter : counters_)
      if (counter != nullptr) {
        domain_.unwatch(*this);
        std::exchange(counter, nullptr)->unuse();
      }
    if (is_by_program(key)) domain_.remove_served(key);
  }
  if (region_ != nullptr) stm_region_close(region_);
  region_ = nullptr;
  if (memory_ != nullptr && stm_memory_release(memory_) == -EBUSY) return -FI_EBUSY;
  domain_.unuse();
  delete this;
  return 0;
}

}  // namespace stp::fi
