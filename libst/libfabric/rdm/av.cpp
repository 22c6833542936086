// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/av.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi::rdm {
namespace {

Av& av_of(fid_av* av) {
  return *static_cast<Av*>(av);
}

const char* describe(fid_av* av, const void* address, char* buffer, std::size_t* length) {
  Address read;
  if (length == nullptr || !read_address(address, address_size(av_of(av).format()), read))
    return nullptr;
  const auto text = (read.ipv4() ? "fi_sockaddr_in://" : "fi_sockaddr_in6://") + peer_name(read);
  const auto room = *length;
  *length = text.size() + 1;
  if (buffer == nullptr || room == 0) return nullptr;
  const auto copied = std::min(room - 1, text.size());
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = '\0';
  return buffer;
}

fi_ops av_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return object_of<Av, fid_av>(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return object_of<Av, fid_av>(id).bind(other, flags); });
        },
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

// Newer libfabrics have calls for authorization keys, too. They are left empty.
fi_ops_av av_calls = [] {
  fi_ops_av calls{};
  calls.size = sizeof calls;
  calls.insert = [](fid_av* av, const void* addresses, std::size_t count, fi_addr_t* out,
                    std::uint64_t flags, void* context) {
    return guarded([&] { return av_of(av).insert(addresses, count, out, flags, context); });
  };
  calls.insertsvc = [](fid_av* av, const char* node, const char* service, fi_addr_t* out,
                       std::uint64_t flags, void* context) {
    return guarded(
        [&] { return av_of(av).insert_names(node, 1, service, 1, out, flags, context); });
  };
  calls.insertsym = [](fid_av* av, const char* node, std::size_t nodes, const char* service,
                       std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context) {
    return guarded([&] {
      return av_of(av).insert_names(node, nodes, service, services, out, flags, context);
    });
  };
  calls.remove = [](fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t flags) {
    return guarded([&] { return av_of(av).remove(addresses, count, flags); });
  };
  calls.lookup = [](fid_av* av, fi_addr_t address, void* out, std::size_t* length) {
    return guarded([&] { return av_of(av).lookup(address, out, length); });
  };
  calls.straddr = describe;
  calls.av_set = refuse;
  return calls;
}();

// The host that many behind `first`, as libfabric numbers those of a job.
Address further(Address first, std::size_t many) {
  for (auto octet = first.ip.rbegin(); octet != first.ip.rend() && many != 0; ++octet) {
    many += *octet;
    *octet = static_cast<std::uint8_t>(many);
    many >>= 8;
  }
  return first;
}

}  // namespace

Av::Av(Domain& domain, void* context, bool by_event)
    : fid_av{.fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &av_object_calls},
             .ops = &av_calls},
      domain_(domain),
      link_(domain.link()),
      by_event_(by_event) {
  domain_.use();
}

int Av::open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out) {
  if (attr == nullptr) return -FI_EINVAL;
  if ((attr->flags & ~(FI_SYMMETRIC | FI_EVENT)) != 0) return -FI_EBADFLAGS;
  if (attr->name != nullptr) {
    inform(FI_LOG_AV, "address vectors are not shared by name");
    return -FI_ENOSYS;
  }
  if (attr->rx_ctx_bits != 0) return -FI_ENOSYS;
  if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
    return -FI_EINVAL;
  if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
  std::unique_ptr<Av> av(new Av(domain, context, (attr->flags & FI_EVENT) != 0));
  // A wish; the vector grows as needed.
  constexpr std::size_t kMostReserved = 65'536;
  av->places_.reserve(std::min(attr->count, kMostReserved));
  out = av.release();
  return 0;
}

std::uint32_t Av::format() const {
  return domain_.format();
}

int Av::close() {
  {
    const LinkLock lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
    if (eq_ != nullptr) {
      eq_->forget(&fid);
      eq_->unuse();
    }
  }
  domain_.unuse();
  delete this;
  return 0;
}

fi_addr_t Av::add(const Address& address) {
  ++version_;
  fi_addr_t number = places_.size();
  if (free_.empty()) {
    places_.push_back(address);
  } else {
    number = free_.back();
    free_.pop_back();
    places_[number] = address;
  }
  numbers_.try_emplace(address, Number{number, version_});
  return number;
}

int Av::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass != FI_CLASS_EQ || !by_event_) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  return Eq::bind(eq_, other, flags);
}

fi_addr_t Av::insert_one(const void* address) {
  Address read;
  const auto good =
      read_address(address, address_size(format()), read) && !read.is_any() && read.port != 0;
  return good ? add(read) : FI_ADDR_NOTAVAIL;
}

// With FI_EVENT the insertion is done when the call returns, too, and told by events alone.
int Av::insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
               void* context) {
  if ((flags & ~static_cast<std::uint64_t>(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
  if (by_event_ && (flags & FI_SYNC_ERR) != 0) return -FI_EBADFLAGS;
  if (addresses == nullptr && count != 0) return -FI_EINVAL;
  auto* const errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  const LinkLock lock(link_.mutex());
  if (by_event_ && eq_ == nullptr) return -FI_ENOEQ;
  std::size_t inserted = 0, first_wrong = count;
  auto all_told = true;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number =
        insert_one(static_cast<const std::byte*>(addresses) + i * address_size(format()));
    const auto good = number != FI_ADDR_NOTAVAIL;
    if (out != nullptr) out[i] = number;
    if (errors != nullptr) errors[i] = good ? 0 : FI_EINVAL;
    if (good) {
      ++inserted;
      continue;
    }
    first_wrong = std::min(first_wrong, i);
    all_told = all_told && (!by_event_ || eq_->tell_not_inserted(&fid, context, i));
  }
  if (inserted != count)
    inform(FI_LOG_AV, std::to_string(count - inserted) + " of " + std::to_string(count) +
                          " are no addresses to send to; the first is number " +
                          std::to_string(first_wrong) +
                          (all_told ? "" : ". The event queue is full: it does not tell of all"));
  if (!by_event_) return static_cast<int>(inserted);
  eq_->tell_inserted(&fid, context, inserted);
  return 0;
}

int Av::insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                     fi_addr_t* out, std::uint64_t flags, void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  const auto first = resolve(node, format() == FI_SOCKADDR_IN6 ? AF_UNSPEC : AF_INET, false);
  std::uint16_t port = 0;
  const auto* const end = service + std::strlen(service);
  const auto parsed = std::from_chars(service, end, port);
  if (!first || parsed.ec != std::errc() || parsed.ptr != end) {
    inform(FI_LOG_AV, std::string("no address: ").append(node).append(":").append(service));
    return -FI_EINVAL;
  }
  constexpr std::size_t kMost = 65'536;
  if (nodes > kMost || services > kMost || nodes * services > kMost) return -FI_EINVAL;
  std::vector<std::byte> all(nodes * services * address_size(format()));
  auto* at = all.data();
  for (std::size_t i = 0; i < nodes; ++i)
    for (std::size_t k = 0; k < services; ++k) {
      auto each = further(*first, i);
      each.port = static_cast<std::uint16_t>(port + k);
      auto size = address_size(format());
      tell_address(each, format(), at, &size);
      at += size;
    }
  return insert(all.data(), nodes * services, out, flags, context);
}

int Av::remove(const fi_addr_t* addresses, std::size_t count, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  const LinkLock lock(link_.mutex());
  for (std::size_t i = 0; i < count; ++i)
    if (at(addresses[i]).port == 0) return -FI_EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = addresses[i];
    const auto address = at(number);
    if (address.port == 0) continue;  // named twice
    ++version_;
    places_[number] = {};
    free_.push_back(number);
    if (find(address) != number) continue;
    const auto other = std::ranges::find(places_, address);
    if (other == places_.end())
      numbers_.erase(address);
    else
      numbers_.at(address).number = static_cast<fi_addr_t>(other - places_.begin());
  }
  return 0;
}

int Av::lookup(fi_addr_t address, void* out, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  const auto found = at(address);
  return found.port == 0 ? -FI_EINVAL : tell_address(found, format(), out, length);
}

}  // namespace stp::fi::rdm
