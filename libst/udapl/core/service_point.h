// SPDX-License-Identifier: BSD-3-Clause
// The side that accepts: listeners, the requests that wait, and service points.
#pragma once

#include <stp/managed.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "libst/udapl/core/evd.h"
#include "libst/udapl/core/object.h"
#include "libst/udapl/core/private_data.h"

namespace stp::udapl {

// The service points of an IA, and their listeners. Service points whose qualifiers map to the same
// port share a listener. Under the IA's mutex.
class ServicePoint;

class Listeners {
 public:
  // 0 or a negative errno; -EADDRINUSE: the qualifier has a service point.
  int add(stm_domain_t domain, stm_queue_t queue, const std::shared_ptr<ServicePoint>& point);
  void remove(const ServicePoint& point);
  // Drops all listeners without stopping them.
  void forget();

  [[nodiscard]] std::shared_ptr<ServicePoint> find(std::uint64_t conn_qual) const;
  // Finds the service point for a request that came with `context` and asks for `conn_qual`, or for
  // the port alone. nullptr: none.
  [[nodiscard]] std::shared_ptr<ServicePoint> asked(std::uint64_t context,
                                                    std::optional<std::uint64_t> conn_qual) const;

 private:
  struct Listener {
    stm_listener_t handle = nullptr;
    std::uint64_t context = 0;
    std::map<std::uint64_t, std::shared_ptr<ServicePoint>> points;  // by qualifier
  };
  std::map<std::uint32_t, Listener> by_port_;
  // A context combines a number and the port: requests to an earlier listener of the port match no
  // service point.
  std::uint64_t listened_ = 0;
};

// A Connection Request that waits for the consumer's decision. The decision destroys it.
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
  [[nodiscard]] std::uint16_t remote_udp_port() const { return peer_udp_port_of(connection_); }
  [[nodiscard]] const std::shared_ptr<Ep>& reserved() const { return reserved_; }

  void abandon() override;

 private:
  stm_connection_t connection_;
  const PrivateData data_;
  const std::uint64_t remote_port_;
  std::shared_ptr<Ep> reserved_;
};

class Ep;

// Where connection requests arrive: a Public Service Point for any number of them, a Reserved one
// for one, with its EP.
class ServicePoint : public Object {
 public:
  // `ep` null: a PSP.
  ServicePoint(Ia& ia, std::uint64_t conn_qual, std::shared_ptr<Evd> evd, std::shared_ptr<Ep> ep);
  ~ServicePoint() override;
  static Result create_psp(Ia& ia, std::uint64_t conn_qual, const std::shared_ptr<Evd>& evd,
                           std::shared_ptr<ServicePoint>& out);
  // Chooses the qualifier.
  static Result create_psp_any(Ia& ia, const std::shared_ptr<Evd>& evd,
                               std::shared_ptr<ServicePoint>& out);
  static Result create_rsp(Ia& ia, std::uint64_t conn_qual, const std::shared_ptr<Evd>& evd,
                           const std::shared_ptr<Ep>& ep, std::shared_ptr<ServicePoint>& out);
  Result free();

  [[nodiscard]] std::uint64_t conn_qual() const { return conn_qual_; }
  [[nodiscard]] const std::shared_ptr<Evd>& evd() const { return evd_; }
  [[nodiscard]] const std::shared_ptr<Ep>& ep() const { return ep_; }

  // ---- under the IA's mutex ----
  void arrived(stm_connection_t connection);
  void abandon() override;
  // Makes the handle of a CR for the front. Called before the CR is reported.
  using MakeHandle = void* (*)(const std::shared_ptr<Object>&);
  static void set_make_handle(MakeHandle make);

 private:
  Result listen();
  void retire();
  void spend();

  const std::uint64_t conn_qual_;
  const std::shared_ptr<Evd> evd_;
  std::shared_ptr<Ep> ep_;
  bool spent_ = false;  // an RSP that has had its request
};

}  // namespace stp::udapl
