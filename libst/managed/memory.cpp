// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "libst/client/address_space.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"
#include "libst/client/wait.h"
#include "libst/include/stp/managed.h"
#include "libst/ipc/shared_memory.h"
#include "libst/managed/connection.h"
#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {

StandIn::StandIn(MutableBytes pages) {
  auto* const mapped =
      ::mmap(nullptr, pages.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  bytes_ = {static_cast<std::byte*>(mapped), Unmap{pages.size()}};
  original_ = pages.data();
}

void StandIn::Unmap::operator()(std::byte* memory) const {
  ::munmap(memory, size);
}

using client::fail;
using client::Payload;

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

int Memory::bind() {
  domain_->control_mutex().is_held();
  const auto page = domain_->bufsize() <= kPageLog2;
  const auto size = std::uintptr_t{1} << domain_->bufsize();
  if (!page && (bytes_.size() != bound_.size() || bytes_.data() != bound_.data()))
    return fail(-EINVAL, "with buffers of " + std::to_string(size) +
                             " bytes, memory is aligned to that and a multiple of it");
  if (const auto error = client::check_access(bytes_, writable()); error != 0) return error;
  {
    const Lock guard(domain_->mutex());
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
  const Lock guard(domain_->mutex());
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
  const Lock guard(domain_->mutex());
  bindings_[endpoint] = std::move(binding);
  return 0;
}

int Memory::map(EndpointId endpoint, Direction direction, RegionId& out,
                std::shared_ptr<client::Hold>& keep) {
  ask::Map request{};
  request.endpoint = endpoint;
  request.direction = static_cast<std::uint32_t>(direction);
  request.base = first_;
  Payload payload;
  payload.mapped = {stand_in_ ? stand_in_.pages() : bound_};
  payload.own = {stand_in_ ? MutableBytes{stand_in_.at(bytes_.data()), bytes_.size()} : bytes_};
  ask::Map::Reply reply{};
  const MappingGateShut shut;
  if (const auto error = domain_->backend().call(request, reply, payload); error != 0) return error;
  out = reply.region;
  keep = std::move(payload.keep);
  return 0;
}

void Memory::unmap(RegionId region) {
  constexpr Time kInterval = 100 * kMicrosecond;
  while (domain_->backend().call(ask::Unmap{.region = region}) == -EINPROGRESS)
    client::pause(domain_->backend(), kInterval);
}

// Waits until no frame on its way out reads the region, which stays mapped.
bool Memory::settle(RegionId region) {
  if (region == kNoneId) return true;
  constexpr Time kInterval = 100 * kMicrosecond;
  auto error = -EINPROGRESS;
  while ((error = domain_->backend().call(ask::Settle{.region = region})) == -EINPROGRESS)
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
  domain_->control_mutex().is_held();
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
  const Lock guard(domain_->mutex());
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
    const Lock guard(domain_->mutex());
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
    const Lock guard(domain_->mutex());
    all.swap(bindings_);
  }
  for (auto& [endpoint, binding] : all) release(binding);
  const Lock guard(domain_->mutex());
  if (has_place_) domain_->bufx_space().give_back(first_, count_);
  has_place_ = false;
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

namespace {

bool kernel_tells_areas() {
  client::SharedPages::instance();  // keeps the list of areas open
  static const std::byte here{};
  std::vector<client::AreaAt> areas;
  return client::areas_at({&here, 1}, areas);
}

}  // namespace

MemoryCache::MemoryCache()
    : state_(state_of(std::getenv("STP_REGISTRATION_CACHE"), kernel_tells_areas())) {}

std::uint32_t MemoryCache::state_of(const char* environment, bool kernel_tells) {
  if (environment != nullptr && std::string_view(environment) == "0") return STM_CACHE_OFF;
  return kernel_tells ? STM_CACHE_ON : STM_CACHE_CANNOT;
}

void MemoryCache::keep(std::shared_ptr<Memory> memory) {
  const auto size = memory->bound_size();
  if (!on() || size > kMostBytes) return memory->unbind();
  kept_.push_front(std::move(memory));
  bytes_ += size;
  if (!kept_.front()->rest()) remove(kept_.begin())->unbind();
  while (kept_.size() > kMost || bytes_ > kMostBytes) remove(std::prev(kept_.end()))->unbind();
}

bool MemoryCache::restore(Memory& memory) {
  const auto bytes = memory.bytes();
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
    return kept->bytes().data() == bytes.data() && kept->bytes().size() == bytes.size() &&
           kept->access() == memory.access();
  });
  if (at == kept_.end()) return false;
  const auto kept = remove(at);
  if (memory.take_over(*kept)) return true;
  kept->unbind();
  return false;
}

bool MemoryCache::clear() {
  if (kept_.empty()) return false;
  while (!kept_.empty()) remove(kept_.begin())->unbind();
  return true;
}

std::shared_ptr<Memory> MemoryCache::remove(Kept::iterator at) {
  auto memory = std::move(*at);
  kept_.erase(at);
  STP_ASSERT(bytes_ >= memory->bound_size(), "what is removed was counted");
  bytes_ -= memory->bound_size();
  return memory;
}

namespace {

std::uint8_t permissions(unsigned access) {
  unsigned permissions = 0;
  if ((access & STM_REMOTE_READ) != 0) permissions |= permit::kGet;
  if ((access & STM_REMOTE_WRITE) != 0) permissions |= permit::kData;
  if ((access & STM_REMOTE_ATOMIC) != 0) permissions |= permit::kFetchOp;
  return static_cast<std::uint8_t>(permissions);
}

}  // namespace

int Access::landing(EndpointId endpoint, Landing& out) {
  const auto region = memory_->receive_region(endpoint);
  if (revoked_ || region == kNoneId) return -EACCES;
  auto known = mxs_.find(endpoint);
  if (known == mxs_.end()) {
    std::uint16_t mx = 0;
    if (const auto error = domain()->alloc_mx(region, permissions(terms_.access), mx); error != 0)
      return error;
    known = mxs_.emplace(endpoint, mx).first;
  }
  memory_->exposed = true;
  out = {known->second, memory_->at(terms_.bytes.data()), terms_.bytes.size()};
  return 0;
}

void Access::revoke() {
  if (revoked_) return;
  revoked_ = true;
  // From here on the link refuses access to these Mx. revoke() below informs the peers.
  for (const auto& [endpoint, mx] : mxs_) domain()->free_mx(endpoint, mx);
  auto& of = *domain();
  of.mutex().is_held();
  of.remove_access(key_);
  for (const auto& connection : of.connections()) connection->revoke(*this);
  STP_ASSERT(memory_->uses > 0 && memory_->regions > 0, "a region's memory is in use");
  --memory_->uses;
  --memory_->regions;
}

}  // namespace stp::managed
