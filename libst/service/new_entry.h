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
  template <typename... Arguments>
  explicit NewEntry(Map& map, Arguments&&... of_value) : map_(map) {
    one_.try_emplace(typename Map::key_type{}, std::forward<Arguments>(of_value)...);
  }
  // Call before enter().
  [[nodiscard]] typename Map::mapped_type& value() { return one_.begin()->second; }
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
