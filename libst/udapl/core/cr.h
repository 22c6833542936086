// SPDX-License-Identifier: BSD-3-Clause
// A Connection Request that waits for the consumer's decision. The decision destroys it.
#pragma once

#include "libst/udapl/core/object.h"
#include "libst/udapl/core/private_data.h"
#include "libst/udapl/core/result.h"

namespace stp::udapl {

class Ep;

class Cr : public Object {
 public:
  Cr(Ia& ia, stm_connection_t connection, PrivateData data, std::shared_ptr<Ep> reserved);
  ~Cr() override;
  // `ep`: null for the EP that an RSP has reserved.
  Result accept(std::shared_ptr<Ep> ep, std::span<const std::byte> private_data);
  Result reject(std::span<const std::byte> private_data);
  // Passes it to another service point of this IA. kInvalidParameter: there is none.
  Result handoff(std::uint64_t conn_qual);

  [[nodiscard]] const PrivateData& data() const { return data_; }
  // The requester's, of this connection.
  [[nodiscard]] std::uint64_t remote_port() const { return remote_port_; }
  [[nodiscard]] const std::shared_ptr<Ep>& reserved() const { return reserved_; }

  void abandon() override;

 private:
  stm_connection_t connection_;
  const PrivateData data_;
  const std::uint64_t remote_port_;
  std::shared_ptr<Ep> reserved_;
};

}  // namespace stp::udapl
