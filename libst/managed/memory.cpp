// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/memory.h"

#include <cstring>
#include <utility>

#include "libst/client/address_space.h"
#include "libst/client/error.h"
#include "libst/client/wait.h"
#include "libst/include/stp/managed.h"
#include "libst/managed/domain.h"
#include "libst/managed/mapping_gate.h"

namespace stp::managed {

using client::fail;
using client::Payload;
using client::Reply;
using client::request_for;
using client::RequestKind;

Memory::Memory(std::shared_ptr<Domain> domain, MutableBytes bytes, unsigned access)
    : domain_(std::move(domain)), bytes_(bytes), access_(access) {
  // Extends the memory to whole buffers. With buffers of one page this is always possible: those
  // pages are mapped. Only `bytes` is ever granted or sent.
  const auto size = std::uintptr_t{1} << domain_->bufsize();
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto lead = begin % size;
  const auto length = (lead + bytes.size() + size - 1) / size * size;
  bound_ = {bytes.data() - lead, length};
  count_ = static_cast<std::uint32_t>(length / size);
}

bool Memory::writable() const {
  return (access_ & ~unsigned{STM_LOCAL_READ}) != 0;
}

int Memory::bind() {
  const auto page = domain_->bufsize() <= kPageLog2;
  const auto size = std::uintptr_t{1} << domain_->bufsize();
  if (!page && (bytes_.size() != bound_.size() || bytes_.data() != bound_.data()))
    return fail(-EINVAL, "with buffers of " + std::to_string(size) +
                             " bytes, memory is aligned to that and a multiple of it");
  if (const auto error = client::check_access(bytes_, writable()); error != 0) return error;
  {
    std::lock_guard const guard(domain_->mutex());
    const auto place = domain_->bufx_space().take(count_);
    if (!place) return fail(-EDQUOT, "the domain has no Bufx values left for so much memory");
    first_ = *place;
    has_place_ = true;
  }
  for (const auto endpoint : domain_->endpoints())
    if (const auto error = bind_to(endpoint); error != 0) {
      unbind();
      return error;
    }
  return 0;
}

int Memory::bind_to(EndpointId endpoint) {
  const auto error = bind_as_it_is(endpoint);
  return error == -EOPNOTSUPP && copy_instead() ? bind_as_it_is(endpoint) : error;
}

// Memory that cannot be shared with stpd is copied if it is small and only for local access. Memory
// with remote access is not: peers must see the program's own bytes.
bool Memory::copy_instead() {
  constexpr unsigned kLocal = STM_LOCAL_READ | STM_LOCAL_WRITE;
  if (stand_in_ || (access_ & ~kLocal) != 0 || bytes_.size() > StandIn::kMost ||
      domain_->bufsize() > kPageLog2)
    return false;
  std::lock_guard const guard(domain_->mutex());
  if (!bindings_.empty()) return false;
  stand_in_ = StandIn(bound_);
  return static_cast<bool>(stand_in_);
}

int Memory::bind_as_it_is(EndpointId endpoint) {
  Binding binding;
  auto error = map(endpoint, Direction::kTransmit, binding.transmit, binding.keep_transmit);
  if (error == 0 && writable())
    error = map(endpoint, Direction::kReceive, binding.receive, binding.keep_receive);
  if (error == 0 && writable())
    error = domain_->alloc_mx(binding.receive, permit::kData, binding.mx);
  if (error != 0) {
    release(binding);
    return error;
  }
  std::lock_guard const guard(domain_->mutex());
  bindings_[endpoint] = std::move(binding);
  return 0;
}

int Memory::map(EndpointId endpoint, Direction direction, RegionId& out,
                std::shared_ptr<client::Hold>& keep) {
  auto request = request_for(RequestKind::kMap);
  request.endpoint = endpoint;
  request.direction = static_cast<std::uint32_t>(direction);
  request.base = first_;
  Payload payload;
  payload.mapped = {stand_in_ ? stand_in_.pages() : bound_};
  payload.own = {stand_in_ ? MutableBytes{stand_in_.at(bytes_.data()), bytes_.size()} : bytes_};
  Reply reply{};
  const MappingGateShut shut;
  if (const auto error = domain_->backend().exchange(request, payload, reply); error != 0)
    return error;
  out = reply.region;
  keep = std::move(payload.keep);
  return 0;
}

void Memory::unmap(RegionId region) {
  constexpr Time kInterval = 100 * kMicrosecond;
  auto request = request_for(RequestKind::kUnmap);
  request.region = region;
  Reply reply{};
  while (domain_->backend().exchange(request, reply) == -EINPROGRESS)
    client::pause(domain_->backend(), kInterval);
}

// Waits until no frame on its way out reads the region, which stays mapped.
bool Memory::settle(RegionId region) {
  if (region == kNoneId) return true;
  constexpr Time kInterval = 100 * kMicrosecond;
  auto request = request_for(RequestKind::kSettle);
  request.region = region;
  Reply reply{};
  auto error = -EINPROGRESS;
  while ((error = domain_->backend().exchange(request, reply)) == -EINPROGRESS)
    client::pause(domain_->backend(), kInterval);
  return error == 0;
}

// A link in this process reads the program's own pages: it has to be done with them before the
// program may unmap them. stpd has pages of its own: only what answers a peer's Get has to have
// left, because no operation of the program has waited for that.
bool Memory::rest() {
  if (stand_in_ || failed || withdrawn) return false;
  const bool here = !domain_->backend().lends_memory();
  for (const auto& [endpoint, binding] : bindings_) {
    if ((here || exposed) && !settle(binding.receive)) return false;
    if (here && !settle(binding.transmit)) return false;
    if (binding.keep_transmit) binding.keep_transmit->rest();
    if (binding.keep_receive) binding.keep_receive->rest();
  }
  return true;
}

bool Memory::Binding::resume(std::span<const client::AreaAt> areas) const {
  const bool sends = !keep_transmit || keep_transmit->resume(areas);
  const bool receives = !keep_receive || keep_receive->resume(areas);
  return sends && receives;
}

// What is mapped at the address now is looked at once, for the right to access it and for all
// regions that share it with stpd.
bool Memory::take_over(Memory& from) {
  STP_ASSERT(from.bytes_.data() == bytes_.data() && from.bytes_.size() == bytes_.size() &&
                 from.access_ == access_ && bindings_.empty(),
             "memory takes over what the same memory has left");
  std::vector<client::AreaAt> areas;
  if (!client::areas_at(bound_, areas)) return false;
  for (const auto& area : areas)
    if (!area.readable || (writable() && !area.writable)) return false;
  const auto& endpoints = domain_->endpoints();
  bool all = from.bindings_.size() == endpoints.size();
  for (const auto endpoint : endpoints) {
    const auto found = from.bindings_.find(endpoint);
    all = all && found != from.bindings_.end() && found->second.resume(areas);
  }
  if (!all) return false;
  std::lock_guard const guard(domain_->mutex());
  bindings_.swap(from.bindings_);
  first_ = from.first_;
  has_place_ = std::exchange(from.has_place_, false);
  return true;
}

void Memory::release(Binding& binding) {
  if (binding.transmit != kNoneId) unmap(binding.transmit);
  if (binding.receive != kNoneId) unmap(binding.receive);
}

void Memory::unbind_from(EndpointId endpoint) {
  Binding binding;
  {
    std::lock_guard const guard(domain_->mutex());
    const auto found = bindings_.find(endpoint);
    if (found == bindings_.end()) return;
    binding = std::move(found->second);
    bindings_.erase(found);
  }
  release(binding);
}

void Memory::unbind() {
  std::map<EndpointId, Binding> all;
  {
    std::lock_guard const guard(domain_->mutex());
    all.swap(bindings_);
  }
  for (auto& [endpoint, binding] : all) release(binding);
  std::lock_guard const guard(domain_->mutex());
  if (has_place_) domain_->bufx_space().give_back(first_, count_);
  has_place_ = false;
}

bool Memory::contains(const void* ptr, std::size_t length) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const auto at = reinterpret_cast<std::uintptr_t>(ptr) - begin;
  return at <= bytes_.size() && length <= bytes_.size() - at;
}

Address Memory::at(const void* ptr) const {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(ptr) - bound_.data());
  return Address::from_linear((std::uint64_t{first_} << domain_->bufsize()) + offset,
                              domain_->bufsize());
}

void Memory::fetch(const void* ptr, std::size_t length) const {
  if (stand_in_ && length != 0) std::memcpy(stand_in_.at(ptr), ptr, length);
}

void Memory::store(void* ptr, std::size_t length) const {
  if (stand_in_ && length != 0) std::memcpy(ptr, stand_in_.at(ptr), length);
}

Landing Memory::landing(EndpointId endpoint, void* ptr, std::size_t length) const {
  const auto found = bindings_.find(endpoint);
  return {found == bindings_.end() ? std::uint16_t{0} : found->second.mx, at(ptr), length};
}

RegionId Memory::receive_region(EndpointId endpoint) const {
  const auto found = bindings_.find(endpoint);
  return found == bindings_.end() ? kNoneId : found->second.receive;
}

}  // namespace stp::managed
