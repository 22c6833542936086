// SPDX-License-Identifier: BSD-3-Clause
// Memory that both sides of a memif have mapped. The client makes it. What the peer writes there
// may change at any time, and is looked at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dpdk_port/memif/closer.h"
#include "stp/types.h"

namespace stp::port::memif {

class Region {
 public:
  Region() = default;
  // Zeros. Empty: `error` says why.
  static Region make(std::size_t size, const std::shared_ptr<Closer>& closer,
                     SharedDescriptor& file, std::string& error);
  // Of the peer. Only memory that cannot shrink while it is mapped: else an access would kill this
  // process. Seals it, so that it also keeps its pages. May wait for whoever works on the file.
  static Region map(const SharedDescriptor& file, std::uint64_t size, std::string& error);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  [[nodiscard]] explicit operator bool() const { return !bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // Empty: it does not lie in the region.
  [[nodiscard]] std::span<std::byte> part(std::uint64_t offset, std::uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) return {};
    return bytes_.subspan(offset, length);
  }

  // What a connection may have mapped, in all of its regions.
  static constexpr std::uint64_t kGreatest = std::uint64_t{1} << 30;

 private:
  Region(std::span<std::byte> bytes, std::shared_ptr<Closer> closer)
      : bytes_(bytes), closer_(std::move(closer)) {}
  std::span<std::byte> bytes_;
  std::shared_ptr<Closer> closer_;  // unmaps them
};

// Seals a file that both sides have mapped: from now on nobody can take pages of it away, nor map
// it for writing once more. False: it can never be sealed so. Kernels before 5.1 do not know that
// seal: there it returns true. May wait for whoever works on the file.
bool keep_pages(const SharedDescriptor& file);

using Regions = std::vector<Region>;

}  // namespace stp::port::memif
