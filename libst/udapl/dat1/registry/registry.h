// SPDX-License-Identifier: BSD-3-Clause
// The providers: those of dat.conf, which are loaded when somebody opens their IA, and those that
// have registered themselves.
#pragma once

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <istream>
#include <span>
#include <string>
#include <vector>

#include "stp/base/mutex.h"

namespace stp::udapl::registry {

// The static registry: dat.conf, of which each line names an IA and the library of its provider.
struct Line {
  DAT_PROVIDER_INFO info;
  std::string library;
  std::string instance_data;  // for the provider's ears only
};

// The lines for uDAPL 1.x; those for other interfaces, and what is none, are passed over.
std::vector<Line> parse(std::istream& conf);

// What DAT_OVERRIDE names, else /etc/dat.conf. False: there is no such file.
bool read_conf(std::vector<Line>& lines);

// The same name, version and thread safety.
bool same(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b);

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

  void read_static() STP_REQUIRES(mutex_);
  [[nodiscard]] std::vector<DAT_PROVIDER_INFO> known() STP_REQUIRES(mutex_);
  [[nodiscard]] Entry* find(const DAT_PROVIDER_INFO& info) STP_REQUIRES(mutex_);
  [[nodiscard]] Line line_of(const DAT_PROVIDER_INFO& info) const STP_REQUIRES(mutex_);

  // A provider may open another one's IA while it starts.
  RecursiveMutex loading_{LockRank::kRegistry};
  Mutex mutex_;
  std::vector<Line> lines_ STP_GUARDED_BY(mutex_);
  bool read_ STP_GUARDED_BY(mutex_) = false;
  bool missing_ STP_GUARDED_BY(mutex_) = false;
  std::vector<Entry> entries_ STP_GUARDED_BY(mutex_);
};

// The provider of an object; null: the handle is none, whatever it points to.
const DAT_PROVIDER* provider_of(DAT_HANDLE handle);

// For Registry: whose objects provider_of() knows. False: there is no place.
bool admit(const DAT_PROVIDER& provider);
void expel(const DAT_PROVIDER& provider);

}  // namespace stp::udapl::registry
