// SPDX-License-Identifier: BSD-3-Clause
// The providers: those of dat.conf, which are loaded when somebody opens their IA, and those that
// have registered themselves.
#pragma once

#include <dat/dat_registry.h>

#include <mutex>
#include <span>
#include <vector>

#include "libst/udapl/dat1/registry/conf.h"

namespace stp::udapl::registry {

inline constexpr std::size_t kMaxProviders = 128;

class Registry {
 public:
  static Registry& instance();

  DAT_RETURN list(DAT_COUNT most, DAT_COUNT& number, DAT_PROVIDER_INFO** out);
  DAT_RETURN add(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info);
  DAT_RETURN remove(const DAT_PROVIDER& provider, const DAT_PROVIDER_INFO& info);

  // The provider that serves best who wants this, in use until it is released; null: there is none.
  const DAT_PROVIDER* acquire(const DAT_PROVIDER_INFO& wanted);
  void release(const DAT_PROVIDER& provider);

 private:
  struct Entry {
    const DAT_PROVIDER* provider;
    DAT_PROVIDER_INFO info;
    unsigned users;
  };

  // ---- under the mutex ----
  void read_static();
  [[nodiscard]] std::vector<DAT_PROVIDER_INFO> known();
  [[nodiscard]] Entry* find(const DAT_PROVIDER_INFO& info);

  void load(const DAT_PROVIDER_INFO& info);

  std::mutex mutex_;
  std::recursive_mutex loading_;  // a provider may open another one's IA while it starts
  std::vector<Line> lines_;
  bool read_ = false, missing_ = false;
  std::vector<Entry> entries_;
};

// The provider of an object; null: the handle is none, whatever it points to.
const DAT_PROVIDER* provider_of(DAT_HANDLE handle);

// For Registry: whose objects provider_of() knows. False: there is no place.
bool admit(const DAT_PROVIDER& provider);
void expel(const DAT_PROVIDER& provider);

}  // namespace stp::udapl::registry
