// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pcapng_file.h"

#include <array>

namespace stp::sim {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kByteOrder = 0x1a2b3c4d, kVersion = 1;
constexpr std::uint32_t kInterface = 1, kEthernet = 1, kPacket = 6;
constexpr std::uint32_t kTimeResolution = 9 | 1U << 16, kNanoseconds = 9;

}  // namespace

void PcapngFile::put(std::uint32_t word) {
  std::fwrite(&word, sizeof word, 1, file_.get());
}

std::unique_ptr<PcapngFile> PcapngFile::create(const std::string& path) {
  auto* const stream = std::fopen(path.c_str(), "wb");
  if (stream == nullptr) return nullptr;
  std::unique_ptr<PcapngFile> file(new PcapngFile(stream));
  for (const auto word :
       {kSectionHeader, 28U, kByteOrder, kVersion, ~0U, ~0U, 28U,  // length unknown
        kInterface, 32U, kEthernet, 0U, kTimeResolution, kNanoseconds, 0U, 32U})
    file->put(word);
  return file;
}

void PcapngFile::frame(Time time, Bytes bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const auto padding = (4 - length % 4) % 4;
  const auto total = 32 + length + padding;
  for (const auto word : {kPacket, total, 0U, static_cast<std::uint32_t>(time >> 32),
                          static_cast<std::uint32_t>(time), length, length})
    put(word);
  const std::array<std::byte, 3> zeros{};
  std::fwrite(bytes.data(), 1, length, file_.get());
  std::fwrite(zeros.data(), 1, padding, file_.get());
  put(total);
}

}  // namespace stp::sim
