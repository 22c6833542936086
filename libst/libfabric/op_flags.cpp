// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/op_flags.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

namespace stp::fi {

OpFlags::OpFlags(const fi_info& info)
    : tx(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      rx(info.rx_attr != nullptr ? info.rx_attr->op_flags : 0) {}

int OpFlags::control(int command, void* argument, const Offer& offer) {
  if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  auto& flags = *static_cast<std::uint64_t*>(argument);
  const auto of_tx = (flags & FI_TRANSMIT) != 0;
  if (of_tx == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
  auto& known = of_tx ? tx : rx;
  if (command == FI_GETOPSFLAG) {
    flags = known;
    return 0;
  }
  const auto wanted = flags & ~(FI_TRANSMIT | FI_RECV);
  if ((wanted & ~(of_tx ? offer.tx_op_flags : offer.rx_op_flags)) != 0) return -FI_EBADFLAGS;
  known = wanted;
  return 0;
}

}  // namespace stp::fi
