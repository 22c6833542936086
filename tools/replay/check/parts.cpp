// SPDX-License-Identifier: BSD-3-Clause
// Blocks that are granted in parts (docs/protocol.md, 13.19).
#include <algorithm>
#include <string>
#include <utility>

#include "stp/wire/missing_stus.h"
#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

// The STUs that a CTS names.
struct NamedStus {
  std::uint64_t end = 0;  // of the last one, in bytes of the Block
  bool joined = false;    // they follow each other, from F_Offset on
  bool none = false;
};

NamedStus named_by(const Said& said, Bytes option, const Block& block) {
  const auto log2 = stu_size_log2(said.from.max_stu, said.to.max_stu, said.from.bufsize);
  const auto named = wire::MissingStus::decode(option.data());
  std::uint32_t run = 0, all = 0;
  for (std::uint32_t i = 0; i < wire::MissingStus::kMost; ++i) {
    if (!named.contains(i)) continue;
    if (run == i) ++run;
    all = i + 1;
  }
  if (all == 0) return {.end = said.h.sync, .none = true};
  const auto at = *block.start + said.h.sync;
  const bool begins = said.h.sync == 0 || at % (std::uint64_t{1} << log2) == 0;
  const auto end = (((at >> log2) + all) << log2) - *block.start;
  return {.end = std::min(end, block.length), .joined = begins && run == all};
}

std::string byte_text(std::uint64_t at) {
  return "byte " + std::to_string(at) + " of the Block";
}

std::string text_of(const NamedStus& part) {
  return part.none ? "no bit" : "bits of STUs up to " + byte_text(part.end);
}

}  // namespace

// `block` is new, and so far granted as a whole.
// protocol: 13.19
void Checker::Impl::on_first_part(const Said& said, Landing& landing, const Request* offer,
                                  Block& block) {
  const auto b_num = said.h.b_num;
  if (const auto* const before = b_num == 0 ? nullptr : landing.blocks.find(b_num - 1);
      before != nullptr && before->granted_end < before->length)
    return report(said, Rule::kPathParts,
                  "the rest of Block " + std::to_string(b_num - 1) + ", from " +
                      byte_text(before->granted_end),
                  named("B_num", b_num));
  if (!said.c.managed) return;  // at level 0 the option payload is the user's
  const auto& payload = said.frame.frame.option;
  const auto option = said.frame.beginning(payload, wire::kOptionSize);
  if (option.empty() || !said.to.sized) return;
  if (offer != nullptr && offer->heeds_parts == false)
    return report(said, Rule::kPathParts, "a whole Block, as bit 30 of its RTS is not set",
                  "an option payload");
  const auto part = named_by(said, option, block);
  if (!part.joined) {
    if (!surely(said, landing.forgot(), Kept::kBlocks)) return;  // it may be a repeat
    return report(said, Rule::kPathParts, "bits of STUs that follow each other from F_Offset on",
                  text_of(part));
  }
  block.granted_end = part.end;
  block.heeded = offer != nullptr && offer->heeds_parts == true;
}

// A CTS comes for `block`, which is known. True: it has been judged as one for a part.
// protocol: 10.23, 13.19
bool Checker::Impl::on_later_part(const Said& said, Block& block) {
  if (block.granted_end == block.length) return false;
  const auto granted = std::exchange(block.granted_end, block.length);
  const auto& payload = said.frame.frame.option;
  const auto option = said.frame.beginning(payload, wire::kOptionSize);
  if (option.empty() && !payload.empty()) return true;  // the capture does not have it
  const auto part = option.empty() ? NamedStus{block.length, false} : named_by(said, option, block);
  if (said.h.sync < granted) {
    if (part.end > granted) {
      report(said, Rule::kPathParts, "nothing behind " + byte_text(granted) + " in a repeated CTS",
             "STUs up to " + byte_text(part.end));
      return true;
    }
    block.granted_end = granted;
    return false;
  }
  if (said.h.sync != granted) {
    report(said, Rule::kPathParts,
           "F_Offset " + std::to_string(granted) + ", where the part before ends",
           named("F_Offset", said.h.sync));
  } else if (!part.joined) {
    report(said, Rule::kPathParts, "bits of STUs that follow each other from F_Offset on",
           text_of(part));
  } else {
    block.granted_end = part.end;
  }
  return true;
}

}  // namespace stp::replay
