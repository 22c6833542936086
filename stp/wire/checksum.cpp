// SPDX-License-Identifier: BSD-3-Clause
#include "stp/wire/checksum.h"

#include <cstring>

#include "stp/wire/big_endian.h"

namespace stp::wire {
namespace {

// A ones-complement sum of 16-bit words may be taken over wider words, in the machine's own byte
// order, and folded at the end: 2^16 is 1 modulo 0xffff, and swapping the bytes of every word swaps
// the bytes of the sum (RFC 1071). The halves of each word are added apart so that no carry is
// lost: 64 bits have room for the halves of 16 GiB.
std::uint64_t sum_words(Bytes bytes) {
  const std::byte* const end = bytes.data() + bytes.size() / sizeof(std::uint64_t) * 8;
  std::uint64_t sum = 0;
  std::uint64_t word;
  for (const std::byte* p = bytes.data(); p != end; p += sizeof word) {
    std::memcpy(&word, p, sizeof word);
    sum += (word & 0xffffffff) + (word >> 32);
  }
  if (const std::size_t tail = bytes.size() % sizeof word; tail != 0) {
    word = 0;
    std::memcpy(&word, end, tail);
    sum += (word & 0xffffffff) + (word >> 32);
  }
  return sum;
}

constexpr std::uint16_t fold(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

void Checksum::add(Bytes bytes) {
  const std::uint16_t sum = fold(sum_words(bytes));
  // After an odd number of bytes every byte is in the other half of its 16-bit word.
  sum_ += odd_ ? __builtin_bswap16(sum) : sum;
  odd_ ^= bytes.size() % 2 != 0;
}

// protocol: 4.2
std::uint16_t Checksum::wire_value() const {
  const auto value = static_cast<std::uint16_t>(~fold(sum_));
  return value == 0 ? std::uint16_t{0xffff} : big_endian(value);
}

bool Checksum::verified() const {
  return fold(sum_) == 0xffff;
}

}  // namespace stp::wire
