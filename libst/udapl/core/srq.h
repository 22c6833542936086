// SPDX-License-Identifier: BSD-3-Clause
// A Shared Receive Queue. A buffer is outstanding from dat_srq_post_recv until its completion has
// been taken from an EVD; it is available until an EP has taken it.
#pragma once

#include <stp/managed.h>

#include <optional>
#include <vector>

#include "libst/udapl/core/memory.h"
#include "stp/base/assert.h"

namespace stp::udapl {

// A posted receive: of an EP or of an SRQ.
struct Receive {
  Iov iov;
  std::uint64_t cookie = 0;
  unsigned flags = 0;

  void clear() {
    iov.clear();
    cookie = 0;
    flags = 0;
  }
};

class Srq : public Object {
 public:
  static constexpr int kMaxReceives = 1 << 20;
  struct Attr {
    int max_recv_dtos = 0, max_recv_iov = 0, low_watermark = 0;
  };
  struct Param {
    Attr attr;
    int available, outstanding;
  };

  Srq(Ia& ia, std::shared_ptr<Pz> pz, const Attr& attr)
      : Object(Kind::kSrq, ia), pz_(std::move(pz)), attr_(attr) {}
  static Result create(Ia& ia, const std::shared_ptr<Pz>& pz, const Attr& attr,
                       std::shared_ptr<Srq>& out);
  // kInvalidState: EPs use it. Buffers that no EP has taken return to the consumer without an
  // event.
  Result free();
  Result resize(int max_recv_dtos);
  // Reported once, when fewer buffers are available than `low_watermark`; 0: never.
  Result set_low_watermark(int low_watermark);
  Result query(Param& out);

  // ---- under the IA's mutex ----
  Result post(std::span<const LmrTriplet> segments, std::uint64_t cookie);
  [[nodiscard]] Pz& pz() const { return *pz_; }
  [[nodiscard]] stm_pool_t pool() const { return pool_; }
  [[nodiscard]] int available() const { return static_cast<int>(stm_pool_available(pool_)); }
  // Posted and not yet reported by an event: in the queue, or at an EP.
  [[nodiscard]] int untold() const { return static_cast<int>(slots_.size() - free_.size()); }
  // The buffer of a completion, whose event is going to be pushed.
  std::optional<Receive> completed(std::uint64_t context);
  void reaped() {
    STP_ASSERT(unreaped_ > 0, "a completion is taken once");
    --unreaped_;
  }
  void check_watermark();

 private:
  [[nodiscard]] int outstanding() const { return untold() + unreaped_; }
  void provide_slots(int count);

  const std::shared_ptr<Pz> pz_;
  Attr attr_;
  stm_pool_t pool_ = nullptr;
  // Made with the queue and when it grows, so that posting allocates nothing. Contexts are indices.
  std::vector<std::optional<Receive>> slots_;
  std::vector<std::size_t> free_;
  int unreaped_ = 0;
  bool armed_ = false;
};

}  // namespace stp::udapl
