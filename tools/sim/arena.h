// SPDX-License-Identifier: BSD-3-Clause
// A program's mapped memory, divided into lots: each operation has one of its own. Receive memory
// holds a canary pattern wherever nothing was granted.
#pragma once

#include "stp/wire/tiling.h"
#include "tools/sim/host.h"

namespace stp::sim {

// The place of an operation's bytes: inside a lot, with a margin around them.
struct Lot {
  std::size_t index = 0;
  std::size_t start = 0;  // of the operation's bytes, from the start of the arena
  std::size_t length = 0;
};

class Arena {
 public:
  Arena(Host& host, EndpointId endpoint, Direction direction, std::size_t lots,
        std::size_t lot_size);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns nullopt if all lots are taken.
  std::optional<Lot> take(std::size_t length, std::size_t alignment, Dice& dice);
  void give_back(const Lot& lot);
  [[nodiscard]] MutableBytes bytes(const Lot& lot) const {
    return memory_->all().subspan(lot.start, lot.length);
  }
  [[nodiscard]] Address address(const Lot& lot) const;
  // Returns an Mx for the whole arena that is valid on one connection.
  std::uint16_t allow(VcId vc, std::uint8_t permissions);
  // A lying host that knows the Mx can write anywhere in the arena without a grant, so its canaries
  // are not checked.
  void open_to_all() { open_ = true; }
  [[nodiscard]] std::size_t largest() const { return lot_size_ - 2 * kMargin; }

  // Whether the canary around the operation's bytes is intact.
  [[nodiscard]] bool intact_around(const Lot& lot) const;
  // Whether the canary of all free lots is intact.
  [[nodiscard]] bool intact() const;
  void unmap();  // only while the host is up

 private:
  static constexpr std::size_t kMargin = 64;
  [[nodiscard]] MutableBytes whole(std::size_t index) const {
    return memory_->all().subspan(index * lot_size_, lot_size_);
  }

  Host& host_;
  unsigned bufsize_;
  std::size_t lot_size_;
  std::shared_ptr<Memory> memory_;
  std::vector<bool> taken_;
  bool open_ = false;
  std::uint32_t bufx_ = 0;
  RegionId region_;
};

}  // namespace stp::sim
