// SPDX-License-Identifier: BSD-3-Clause
// The library that the registry loads: it keeps one registration per line of dat.conf.
#include <algorithm>
#include <cstring>
#include <list>

#include "libst/udapl/core/service_point.h"
#include "libst/udapl/front/front.h"
#include "stp/base/mutex.h"

namespace stp::udapl::front {
namespace {

struct Registrations {
  Mutex mutex;
  std::list<Registration> all STP_GUARDED_BY(mutex);
};

Registrations& registrations() {
  static auto& made = *new Registrations;
  return made;
}

DAT_RETURN set_context(DAT_HANDLE handle, DAT_CONTEXT context) {
  const auto object = find_object(handle);
  if (!object) return bad_handle();
  object->consumer_context = context.as_64;
  return DAT_SUCCESS;
}

DAT_RETURN get_context(DAT_HANDLE handle, DAT_CONTEXT* context) {
  const auto object = find_object(handle);
  if (!object) return bad_handle();
  if (context == nullptr) return bad_parameter();
  context->as_64 = object->consumer_context;
  return DAT_SUCCESS;
}

DAT_RETURN get_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) {
  const auto object = find_object(handle);
  if (!object) return bad_handle();
  if (type == nullptr) return bad_parameter();
  *type = static_cast<DAT_HANDLE_TYPE>(object->kind());
  return DAT_SUCCESS;
}
static_assert(static_cast<int>(Object::Kind::kSrq) == DAT_HANDLE_TYPE_SRQ &&
              static_cast<int>(Object::Kind::kRmr) == DAT_HANDLE_TYPE_RMR);

DAT_PROVIDER make_table(const char* name) {
  DAT_PROVIDER table{};
  table.device_name = name;
  table.set_consumer_context_func = set_context;
  table.get_consumer_context_func = get_context;
  table.get_handle_type_func = get_type;
  fill_ia(table);
  fill_evd(table);
  fill_cno(table);
  fill_memory(table);
  fill_ep(table);
  fill_transfer(table);
  fill_connect(table);
  fill_srq(table);
  fill_own(table);
  return table;
}

void* handle_for_request(const std::shared_ptr<Object>& request) {
  return publish(request->ia().handle(), request);
}

}  // namespace

const Registration* find_registration(const char* name) {
  auto& registered = registrations();
  const Lock guard(registered.mutex);
  for (const auto& registration : registered.all)
    if (std::strcmp(registration.info.ia_name, name) == 0) return &registration;
  return nullptr;
}

// Reuses an earlier registration of the same name, because handles point to its table.
Registration& registration_for(const DAT_PROVIDER_INFO& info, const char* link) {
  auto& registered = registrations();
  const Lock guard(registered.mutex);
  auto& all = registered.all;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& registration) {
    return std::strcmp(registration.info.ia_name, info.ia_name) == 0 &&
           registration.info.is_thread_safe == info.is_thread_safe;
  });
  if (found == all.end()) {
    found = all.emplace(all.end());
    found->info = info;
    found->provider = make_table(found->info.ia_name);
    found->provider.extension = &*found;
    found->link = link;
  }
  return *found;
}

const Registration& registration_of(DAT_HANDLE handle) {
  return *static_cast<const Registration*>(shell_of(handle).provider->extension);
}

}  // namespace stp::udapl::front

using namespace stp::udapl::front;

extern "C" __attribute__((visibility("default"))) void dat_provider_init(
    const DAT_PROVIDER_INFO* info, const char* instance_data) {
  if (info == nullptr) return;
  stp::udapl::ServicePoint::set_make_handle(handle_for_request);
  auto& made = registration_for(*info, instance_data != nullptr ? instance_data : "");
  dat_registry_add_provider(&made.provider, &made.info);
}

extern "C" __attribute__((visibility("default"))) void dat_provider_fini(
    const DAT_PROVIDER_INFO* info) {
  const auto* const found = info != nullptr ? find_registration(info->ia_name) : nullptr;
  if (found != nullptr) dat_registry_remove_provider(&found->provider, &found->info);
}
