// SPDX-License-Identifier: BSD-3-Clause
// Checks users' requests as if they came from a stranger: through stpd they do. A request that
// passes may be sent, and what it grants the peer is recorded.
#pragma once

#include "stp/node/connection/recovery.h"
#include "stp/node/connection/vc_endings.h"
#include "stp/node/memory/mapped_memory.h"

namespace stp {

class RequestChecks {
 public:
  // They must outlive this.
  struct Uses {
    MappedMemory& memory;
    Recovery& recovery;
    Pacing& pacing;
    Tidying& tidying;
  };
  explicit RequestChecks(const Uses& uses) : use_(uses) {}

  // 0: may be sent; otherwise a negative errno. Records grants and the number of a Block's first
  // STU.
  int check(Vc& vc, const SendEntry& entry, Time now);
  // The cost of a request beside its frames, in units of one short request.
  [[nodiscard]] static std::size_t work_of(const Vc& vc, const SendEntry& entry);

 private:
  static int address(Vc& vc, const SendEntry& entry);
  int check_control(Vc& vc, const SendEntry& entry, Time now);
  int check_get(Vc& vc, const wire::Header& header);
  static int check_data(Vc& vc, const SendEntry& entry);
  [[nodiscard]] static std::uint32_t first_stu(const Vc& vc, const wire::Header& header);
  [[nodiscard]] int check_grant(const Vc& vc, const wire::Header& header) const;

  Uses use_;
};

}  // namespace stp
