// SPDX-License-Identifier: BSD-3-Clause
// One side of dat-bench as a DAT program: uses <dat/udat.h>, the registry, and the provider that it
// loads.
#pragma once

#include <dat/udat.h>

#include <string>

#include "tests/bench/dat/memory.h"
#include "tests/bench/dat/patience.h"
#include "tests/bench/dat/plan.h"

namespace stp::bench {

class DatEnd {
 public:
  // Writes its dat.conf beside the link's socket, in `folder`.
  DatEnd(const std::string& folder, const std::string& link, bool sleep);
  ~DatEnd() { dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG); }
  DatEnd(const DatEnd&) = delete;
  DatEnd& operator=(const DatEnd&) = delete;

  void listen();
  void accept();
  void connect(const std::string& host);
  void send();
  void receive();
  void write();
  void await_write() { await_dto(request_); }
  void await_end();

  Patience patience;

 private:
  void check(DAT_RETURN result, const char* call) const;
  [[nodiscard]] DAT_EVD_HANDLE make_evd(DAT_EVD_FLAGS streams) const;
  DAT_EVENT next(DAT_EVD_HANDLE from);
  void await_dto(DAT_EVD_HANDLE from);
  void post_receive();
  [[nodiscard]] DAT_LMR_TRIPLET part(std::size_t length) const;

  AlignedBytes bytes_{2 * kWriteSize};
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async_ = DAT_HANDLE_NULL, recv_ = DAT_HANDLE_NULL, request_ = DAT_HANDLE_NULL,
                 connect_ = DAT_HANDLE_NULL, requests_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context_ = 0;
  DAT_EP_HANDLE ep_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  DAT_RMR_TRIPLET target_{};  // names this side's memory, then the peer's
  bool sleep_;
};

}  // namespace stp::bench
