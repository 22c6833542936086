// SPDX-License-Identifier: BSD-3-Clause
// The static registry: dat.conf, of which each line names an IA and the library of its provider.
#pragma once

#include <dat/udat.h>

#include <istream>
#include <string>
#include <vector>

namespace stp::udapl::registry {

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

}  // namespace stp::udapl::registry
