// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/ending.h"

#include <cerrno>

#include "stp/wire/big_endian.h"

namespace stp::managed {
namespace {

constexpr std::uint32_t kMark = 0x53544d45;
constexpr std::size_t kWord = 4;

}  // namespace

// protocol: 9.34
service::WireOption to_option(Farewell farewell) {
  service::WireOption option{};
  if (farewell == Farewell::kNone) return option;
  option.length = wire::kOptionSize;
  wire::store32(option.bytes, kMark);
  wire::store32(option.bytes + kWord, static_cast<std::uint32_t>(farewell));
  return option;
}

int status_of_end(const service::WireOption& option) {
  if (option.length != wire::kOptionSize || wire::load32(option.bytes) != kMark) return 0;
  switch (static_cast<Farewell>(wire::load32(option.bytes + kWord))) {
    case Farewell::kNone:
      return 0;
    case Farewell::kNoReceive:
      return -ENOBUFS;
    case Farewell::kBroken:
      break;
  }
  return -ECONNRESET;  // also for reasons that this version does not know
}

}  // namespace stp::managed
