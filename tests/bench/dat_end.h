// SPDX-License-Identifier: BSD-3-Clause
// One side of dat-bench on the DAT objects. Both sides poll.
#pragma once

#include <string>
#include <vector>

#include "libst/udapl/core/cr.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/service_point.h"

namespace stp::bench {

class DatEnd {
 public:
  explicit DatEnd(const std::string& link);
  ~DatEnd() { ia_->close(true); }
  DatEnd(const DatEnd&) = delete;
  DatEnd& operator=(const DatEnd&) = delete;

  void accept();
  void connect(const std::string& host);
  void send();
  void receive();
  void write();
  void await_write() { next(*request_); }

 private:
  std::shared_ptr<udapl::Evd> evd(udapl::Flags streams);
  static udapl::Event next(udapl::Evd& from);
  void post_receive();
  [[nodiscard]] udapl::LmrTriplet part(std::size_t length) const;

  std::vector<std::byte> bytes_;
  std::shared_ptr<udapl::Ia> ia_;
  std::shared_ptr<udapl::Evd> async_, recv_, request_, connect_, requests_;
  std::shared_ptr<udapl::Pz> pz_;
  std::shared_ptr<udapl::Lmr> lmr_;
  std::shared_ptr<udapl::Ep> ep_;
  udapl::RmrTriplet remote_;
};

}  // namespace stp::bench
