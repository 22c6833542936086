// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/life.h"

#include <algorithm>
#include <cerrno>

#include "libst/include/stp/managed.h"
#include "stp/wire/big_endian.h"

namespace stp::managed {
namespace {

// protocol: 9.30
constexpr std::uint32_t kMagic = 0x53544d48;  // "STMH"
constexpr std::uint16_t kVersion = 1;
static_assert(kHelloHead + STM_PRIVATE_DATA <= kHelloSize);

}  // namespace

std::size_t encode(const Hello& hello, std::byte* out) {
  const auto length = static_cast<std::uint32_t>(hello.private_data.size());
  wire::store32(out, kMagic);
  wire::store32(out + 4, std::uint32_t{kVersion} << 16 | static_cast<std::uint16_t>(hello.kind));
  wire::store32(out + 8, length);
  std::ranges::copy(hello.private_data, out + kHelloHead);
  return kHelloHead + length;
}

bool decode(Bytes bytes, Hello& out) {
  if (bytes.size() < kHelloHead || wire::load32(bytes.data()) != kMagic) return false;
  const auto word = wire::load32(bytes.data() + 4);
  const auto length = wire::load32(bytes.data() + 8);
  const auto kind = word & 0xffff;
  if (word >> 16 != kVersion || kind == 0 || kind > 3 || length > STM_PRIVATE_DATA ||
      length != bytes.size() - kHelloHead)
    return false;
  out.kind = static_cast<Hello::Kind>(kind);
  out.private_data.assign(bytes.begin() + kHelloHead, bytes.end());
  return true;
}

void Handshake::send(Session& session, const Hello& hello, Time patience, Time now) {
  session.sequencer.expire(now);
  auto* const out = session.staging.hello_out();
  const auto length = encode(hello, out);
  WriteOptions options;
  options.patience = patience;
  session.sequencer.write(context::kHelloOut, session.staging.memory->at(out), length, options);
}

void Handshake::ask(Session& session, Time now) {
  deadline_ = decided_by_;
  send(session, hello_, std::min(deadline_ - std::min(deadline_, now), kLongestPatience), now);
}

void Handshake::answer(Session& session, const Hello& decision, Time now) {
  deadline_ = now + kDecisionPatience;
  send(session, decision, kAcceptPatience, now);
}

bool Handshake::receive(Session& session, bool& begun) {
  begun = false;
  const auto offer = receiving_ ? std::nullopt : session.sequencer.waiting();
  if (!offer) return true;
  if (offer->length > kHelloSize) return false;
  receiving_ = begun = true;
  session.sequencer.post_receive(context::kHelloIn, session.hello_landing());
  return true;
}

const Hello* Handshake::on_received(const Session& session, const Completion& c) {
  receiving_ = false;
  const Bytes bytes{session.staging.hello_in(), static_cast<std::size_t>(c.length)};
  return decode(bytes, theirs_) ? &theirs_ : nullptr;
}

namespace {

constexpr std::uint32_t kMark = 0x53544d45;
constexpr std::size_t kWord = 4;

}  // namespace

// protocol: 9.34
ipc::WireOption to_option(Farewell farewell) {
  ipc::WireOption option{};
  if (farewell == Farewell::kNone) return option;
  option.length = wire::kOptionSize;
  wire::store32(option.bytes, kMark);
  wire::store32(option.bytes + kWord, static_cast<std::uint32_t>(farewell));
  return option;
}

int status_of_end(const ipc::WireOption& option) {
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
