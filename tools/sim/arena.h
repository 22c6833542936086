// SPDX-License-Identifier: BSD-3-Clause
// A program's mapped memory, cut into lots: each operation gets one for itself. Receive memory is
// all canary but for what was granted and has arrived.
#pragma once

#include "stp/wire/tiling.h"
#include "tools/sim/host.h"

namespace stp::sim {

// Where an operation's bytes lie: somewhere inside a lot, with a margin around them.
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

  // nullopt: all lots are taken.
  std::optional<Lot> take(std::size_t length, std::size_t alignment, Dice& dice);
  void give_back(const Lot& lot);
  [[nodiscard]] MutableBytes bytes(const Lot& lot) const {
    return memory_->all().subspan(lot.start, lot.length);
  }
  [[nodiscard]] Address address(const Lot& lot) const;
  // An Mx for all of it, good on one connection.
  std::uint16_t allow(VcId vc, std::uint8_t permissions);
  // Who knows its Mx needs no grant, and not everybody is honest: it may hold anything.
  void open_to_all() { open_ = true; }
  [[nodiscard]] std::size_t largest() const { return lot_size_ - 2 * kMargin; }

  // Nobody has written around the operation's bytes.
  [[nodiscard]] bool intact_around(const Lot& lot) const;
  // Nobody has written where nothing is going on.
  [[nodiscard]] bool intact() const;
  void unmap();  // as long as the host is up

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
