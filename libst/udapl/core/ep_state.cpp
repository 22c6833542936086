// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ep_state.h"

#include <array>

namespace stp::udapl {
namespace {

using Next = std::optional<EpState>;
using Row = std::array<Next, kEpInputs>;

constexpr Next kNo = std::nullopt;
constexpr Next kUnc = EpState::kUnconnected, kRes = EpState::kReserved,
               kPas = EpState::kPassivePending, kAct = EpState::kActivePending,
               kCom = EpState::kCompletionPending, kCon = EpState::kConnected,
               kDip = EpState::kDisconnectPending, kDis = EpState::kDisconnected;

// clang-format off
constexpr std::array<Row, kEpStates> kTable{{
    //                  Reserve Unreserve Request Connect Accept Establish Disconnect End   Reset
    /* Unconnected */  {kRes,   kNo,      kNo,    kAct,   kCom,  kNo,      kNo,       kNo,  kUnc},
    /* Reserved    */  {kNo,    kUnc,     kPas,   kNo,    kNo,   kNo,      kNo,       kNo,  kNo},
    /* Passive     */  {kNo,    kUnc,     kNo,    kNo,    kCom,  kNo,      kNo,       kNo,  kNo},
    /* Active      */  {kNo,    kNo,      kNo,    kNo,    kNo,   kCon,     kDip,      kDis, kNo},
    /* Completion  */  {kNo,    kNo,      kNo,    kNo,    kNo,   kCon,     kDip,      kDis, kNo},
    /* Connected   */  {kNo,    kNo,      kNo,    kNo,    kNo,   kNo,      kDip,      kDis, kNo},
    /* Disconnect  */  {kNo,    kNo,      kNo,    kNo,    kNo,   kNo,      kDip,      kDis, kNo},
    /* Disconnected*/  {kNo,    kNo,      kNo,    kNo,    kNo,   kNo,      kDis,      kDis, kUnc},
}};
// clang-format on

}  // namespace

std::optional<EpState> next_state(EpState state, EpInput input) {
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
}

}  // namespace stp::udapl
