// SPDX-License-Identifier: BSD-3-Clause
// Where connection requests arrive: a Public Service Point for any number of them, a Reserved one
// for one, with its EP.
#pragma once

#include <stp/managed.h>

#include "libst/udapl/core/evd.h"

namespace stp::udapl {

class Ep;

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
