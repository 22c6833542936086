// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/av.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"

namespace stp::fi::rdm {
namespace {

Av& av_of(fid_av* av) {
  return *static_cast<Av*>(av);
}

const char* describe(fid_av*, const void* address, char* buffer, std::size_t* length) {
  sockaddr_in read{};
  if (length == nullptr || !read_address(address, sizeof read, read)) return nullptr;
  const auto text = "fi_sockaddr_in://" + peer_name(read);
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
    // Insertions are complete when their call returns: no event tells of them.
    .bind = [](fid_t, fid_t other,
               std::uint64_t) { return other->fclass == FI_CLASS_EQ ? -FI_ENOSYS : -FI_EINVAL; },
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

// The IPv4 address of a host, in host order.
std::optional<std::uint32_t> resolve(const char* node) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (::getaddrinfo(node, nullptr, &wanted, &found) != 0) return std::nullopt;
  const auto address = reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
  ::freeaddrinfo(found);
  return ntohl(address.s_addr);
}

}  // namespace

Av::Av(Domain& domain, void* context)
    : fid_av{.fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &av_object_calls},
             .ops = &av_calls},
      domain_(domain),
      link_(domain.link()) {
  domain_.use();
}

int Av::open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out) {
  if (attr == nullptr) return -FI_EINVAL;
  if ((attr->flags & FI_EVENT) != 0) return -FI_ENOSYS;
  if ((attr->flags & ~static_cast<std::uint64_t>(FI_SYMMETRIC)) != 0) return -FI_EBADFLAGS;
  if (attr->name != nullptr) {
    inform(FI_LOG_AV, "address vectors are not shared by name");
    return -FI_ENOSYS;
  }
  if (attr->rx_ctx_bits != 0) return -FI_ENOSYS;
  if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
    return -FI_EINVAL;
  if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
  std::unique_ptr<Av> av(new Av(domain, context));
  // A wish; the vector grows as needed.
  constexpr std::size_t kMostReserved = 65'536;
  av->places_.reserve(std::min(attr->count, kMostReserved));
  out = av.release();
  return 0;
}

int Av::close() {
  {
    std::lock_guard const lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
  }
  domain_.unuse();
  delete this;
  return 0;
}

fi_addr_t Av::add(Place place) {
  fi_addr_t number = places_.size();
  if (free_.empty()) {
    places_.push_back(place);
  } else {
    number = free_.back();
    free_.pop_back();
    places_[number] = place;
  }
  numbers_.try_emplace(place, number);
  return number;
}

int Av::insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
               void* context) {
  if ((flags & ~static_cast<std::uint64_t>(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
  if (addresses == nullptr && count != 0) return -FI_EINVAL;
  auto* const errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  std::lock_guard const lock(link_.mutex());
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sockaddr_in read{};
    const auto good = read_address(static_cast<const std::byte*>(addresses) + i * sizeof read,
                                   sizeof read, read) &&
                      read.sin_addr.s_addr != INADDR_ANY && read.sin_port != 0;
    const auto number = good ? add(place_of(read)) : FI_ADDR_NOTAVAIL;
    if (out != nullptr) out[i] = number;
    if (errors != nullptr) errors[i] = good ? 0 : FI_EINVAL;
    if (good) ++inserted;
  }
  return inserted;
}

int Av::insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                     fi_addr_t* out, std::uint64_t flags, void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  const auto first = resolve(node);
  std::uint16_t port = 0;
  const auto* const end = service + std::strlen(service);
  const auto parsed = std::from_chars(service, end, port);
  if (!first || parsed.ec != std::errc() || parsed.ptr != end) {
    inform(FI_LOG_AV, std::string("no address: ").append(node).append(":").append(service));
    return -FI_EINVAL;
  }
  constexpr std::size_t kMost = 65'536;
  if (nodes > kMost || services > kMost || nodes * services > kMost) return -FI_EINVAL;
  std::vector<sockaddr_in> all;
  for (std::size_t i = 0; i < nodes; ++i)
    for (std::size_t k = 0; k < services; ++k)
      all.push_back(make_address(*first + static_cast<std::uint32_t>(i),
                                 static_cast<std::uint16_t>(port + k)));
  return insert(all.data(), all.size(), out, flags, context);
}

int Av::remove(const fi_addr_t* addresses, std::size_t count, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  std::lock_guard const lock(link_.mutex());
  for (std::size_t i = 0; i < count; ++i)
    if (at(addresses[i]) == 0) return -FI_EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = addresses[i];
    const auto place = at(number);
    if (place == 0) continue;  // named twice
    places_[number] = 0;
    free_.push_back(number);
    if (find(place) != number) continue;
    const auto other = std::ranges::find(places_, place);
    if (other == places_.end())
      numbers_.erase(place);
    else
      numbers_[place] = static_cast<fi_addr_t>(other - places_.begin());
  }
  return 0;
}

int Av::lookup(fi_addr_t address, void* out, std::size_t* length) {
  std::lock_guard const lock(link_.mutex());
  const auto place = at(address);
  return place == 0 ? -FI_EINVAL : tell_address(address_of(place), out, length);
}

}  // namespace stp::fi::rdm
