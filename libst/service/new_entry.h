// SPDX-License-Identifier: BSD-3-Clause
// An entry of a std::map whose key is not known yet. The constructor allocates it, so that nothing
// can fail once the Node has made the object that the entry describes.
#pragma once

#include <utility>

#include "stp/base/assert.h"

namespace stp::service {

template <typename Map>
class NewEntry {
 public:
  NewEntry(Map& map, typename Map::mapped_type value) : map_(map) {
    one_.emplace(typename Map::key_type{}, std::move(value));
  }
  // Puts it into the map; call once, with a key that the map does not have.
  typename Map::mapped_type& enter(typename Map::key_type key) {
    auto entry = one_.extract(one_.begin());
    entry.key() = key;
    const auto result = map_.insert(std::move(entry));
    STP_ASSERT(result.inserted, "the Node does not use an id again");
    return result.position->second;
  }

 private:
  Map& map_;
  Map one_;
};

}  // namespace stp::service
