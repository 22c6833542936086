// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <string_view>

#include "stp/wire/frame.h"
#include "stp/wire/operations.h"

namespace stp::sim {

void Clock::at(Time when, Action action) {
  heap_.push_back({std::max(when, now_), serial_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool Clock::step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const auto entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  ++steps_;
  entry.action();
  return true;
}

namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kByteOrder = 0x1a2b3c4d, kVersion = 1;
constexpr std::uint32_t kInterface = 1, kEthernet = 1, kPacket = 6;
constexpr std::uint32_t kTimeResolution = 9 | 1U << 16, kNanoseconds = 9;

}  // namespace

void PcapngFile::put(std::uint32_t word) {
  write(&word, sizeof word);
}

void PcapngFile::write(const void* data, std::size_t size) {
  if (std::fwrite(data, 1, size, file_.get()) != size && error_ == 0) error_ = -errno;
}

int PcapngFile::finish() {
  if (std::fflush(file_.get()) != 0 && error_ == 0) error_ = -errno;
  return error_;
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
  write(bytes.data(), length);
  write(zeros.data(), padding);
  put(total);
}

namespace {

constexpr std::uint64_t kPrime = 0x100000001b3;
constexpr std::size_t kHashed = 256;  // bytes of each frame: all headers and some of the data

const char* name(Fault fault) {
  switch (fault) {
    case Fault::kLost:
      return "lost";
    case Fault::kBurstLost:
      return "lost in a burst";
    case Fault::kDuplicated:
      return "duplicated";
    case Fault::kReordered:
      return "reordered";
    case Fault::kDelayed:
      return "delayed";
    case Fault::kCorrupted:
      return "corrupted";
    case Fault::kCut:
      return "cable cut";
    case Fault::kOverflow:
      return "switch full";
    case Fault::kHostDown:
      return "host down";
    case Fault::kLie:
      return "lie";
    case Fault::kCount:
      break;
  }
  return "?";
}

}  // namespace

void Trace::mix(Time now, Bytes frame) {
  hash_ = (hash_ ^ now) * kPrime;
  hash_ = (hash_ ^ frame.size()) * kPrime;
  const auto size = std::min(frame.size(), kHashed);
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, frame.data() + at, std::min(sizeof word, size - at));
    hash_ = (hash_ ^ word) * kPrime;
    hash_ ^= hash_ >> 29;
  }
}

// Whether the MAC address at `place` of the frame is the file's station.
bool Trace::at_station(Bytes frame, std::size_t place) const {
  return frame.size() >= place + sizeof station_->octets &&
         std::memcmp(frame.data() + place, station_->octets.data(), sizeof station_->octets) == 0;
}

void Trace::received(Time now, Bytes frame) {
  mix(now, frame);
  if (file_ && station_ && at_station(frame, 0)) file_->frame(now, frame);
}

void Trace::sent(Time now, Bytes frame) {
  ++frames_;
  bytes_ += frame.size();
  mix(now, frame);
  count(frame);
  if (file_ && (!station_ || at_station(frame, sizeof station_->octets))) file_->frame(now, frame);
  if (text_ != nullptr) print(now, "", frame);
}

// Counts operations, questions and repeated requests. Receivers count repeated Blocks and CTS.
void Trace::count(Bytes frame) {
  using wire::Op;
  wire::LinkHeader link;
  Bytes payload;
  if (wire::unwrap(frame, link, payload) != DropReason::kNone || payload.size() < wire::kHeaderSize)
    return;
  const auto h = wire::decode(payload.data());
  ++ops_[static_cast<std::size_t>(h.op())];
  switch (wire::operation(h.op()).asks) {
    case wire::Asks::kState:
      ++questions_;
      return;
    case wire::Asks::kNothing:
      return;
    case wire::Asks::kAnswer:
      break;
  }
  if (requests_.size() == kRemembered) requests_.clear();  // repeats follow soon
  std::string_view const content(reinterpret_cast<const char*>(frame.data()), frame.size());
  if (requests_.insert(std::hash<std::string_view>{}(content)).second) return;
  const bool call = h.op() == Op::kRequestConnection || h.op() == Op::kRequestDisconnect;
  ++(call ? calls_ : repeats_);
}

void Trace::fault(Time now, Fault fault, Bytes frame) {
  ++faults_;
  if (fault == Fault::kOverflow) ++overflows_;
  hash_ = (hash_ ^ static_cast<std::uint64_t>(fault)) * kPrime;
  if (text_ != nullptr && fault != Fault::kDelayed) print(now, name(fault), frame);
}

void Trace::note(Time now, const std::function<std::string()>& line) const {
  if (text_ == nullptr) return;
  std::fprintf(text_, "%14.3f us  -- %s\n", static_cast<double>(now) / 1e3, line().c_str());
}

void Trace::print(Time now, const char* what, Bytes bytes) const {
  wire::Frame frame;
  const auto bad = wire::parse(bytes, wire::kMaxMaxStu, frame);
  std::fprintf(text_, "%14.3f us  %-16s", static_cast<double>(now) / 1e3, what);
  if (bad != DropReason::kNone) {
    std::fprintf(text_, "(%zu bytes: %s)\n", bytes.size(), name_of(bad));
    return;
  }
  const auto& h = frame.header;
  std::fprintf(text_,
               "%02x>%02x %-4s flags=%03x param=%u ports=%u>%u mx=%u bufx=%x offset=%x sync=%x "
               "b_num=%x d_id=%x s_id=%x +%zu\n",
               frame.src.octets[5], frame.dst.octets[5], wire::short_name(h.op()),
               h.op_flags & wire::kFlagsMask, h.param, h.s_port, h.d_port, h.mx, h.bufx, h.offset,
               h.sync, h.b_num, h.d_id, h.s_id, frame.stu.size() + frame.option.size());
}

}  // namespace stp::sim
