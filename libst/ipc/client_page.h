// SPDX-License-Identifier: BSD-3-Clause
// The page that a client shares with the service. It holds: bits for transmit queues with new
// entries; bits for gathered channels with news; and a futex word to sleep on. The word is for
// events that belong to no single connection (a connection to accept), or to any of the gathered
// channels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace stp::ipc {

inline constexpr std::uint32_t kMaxChannels = 65'536;

// Two levels of bits, so that checking an idle client reads only 16 words.
class Doorbells {
 public:
  void ring(std::uint32_t channel) {
    // Sequentially consistent, as is the load of service_asleep that follows: either the service
    // sees the bell before it sleeps, or the client sees that the service sleeps. collect() clears
    // the top word before it reads the leaves: if the top bit is still set here, collect() will
    // still read the leaf.
    leaves_[channel / 64].fetch_or(std::uint64_t{1} << channel % 64, std::memory_order_seq_cst);
    auto& top = top_[channel / 4096];
    const auto bit = std::uint64_t{1} << channel / 64 % 64;
    if ((top.load(std::memory_order_seq_cst) & bit) == 0)
      top.fetch_or(bit, std::memory_order_seq_cst);
  }
  // Where a collector goes on that does not collect everything at once.
  struct Progress {
    std::uint32_t most = kMaxChannels;  // calls of visit() in one collect(), up to 63 more
    std::uint32_t leaf = 0;
  };
  // Clears bells rung below `channels` and calls visit(channel) for each. Returns true if there was
  // one. The bounds limit the work to the channels that the client has, and to progress.most of
  // them, whatever bits it sets. The other bells stay rung, and come first next time.
  // `ahead(first, bits)`: several are visited next, channel `first + n` if bit n is set; some may
  // be beyond `channels`.
  template <typename Visit, typename Ahead>
  bool collect(std::uint32_t channels, Progress& progress, Visit&& visit, Ahead&& ahead) {
    std::uint32_t left = progress.most;
    bool any = false;
    if (const auto from = std::exchange(progress.leaf, 0); from != 0) {
      any = collect_from(from, channels, left, progress, visit, ahead);
      if (progress.leaf != 0) return any;
    }
    return collect_from(0, channels, left, progress, visit, ahead) || any;
  }
  template <typename Visit>
  bool collect(std::uint32_t channels, Progress& progress, Visit&& visit) {
    return collect(channels, progress, visit, [](std::uint32_t, std::uint64_t) {});
  }
  // The same for several collectors. Each collects only the channels that are set in `own` (one
  // word per 64 channels). The bells of others stay rung.
  template <typename Visit>
  void collect(std::span<const std::uint64_t> own, Visit&& visit) {
    for (std::uint32_t leaf = 0; leaf < own.size(); ++leaf) {
      auto& top = top_[leaf / 64];
      if (leaf % 64 == 0 && top.load(std::memory_order_relaxed) == 0) {
        leaf += 63;
        continue;
      }
      const auto bit = std::uint64_t{1} << leaf % 64;
      if ((top.load(std::memory_order_relaxed) & bit) == 0) continue;
      auto& word = leaves_[leaf];
      const auto mine = own[leaf];
      auto bits = (word.load(std::memory_order_relaxed) & mine) != 0
                      ? word.fetch_and(~mine, std::memory_order_seq_cst) & mine
                      : 0;
      // A client that rings between the two operations on `top` finds the bit cleared and sets it
      // again, or this side sees its leaf bit in the second load.
      if (word.load(std::memory_order_relaxed) == 0) {
        top.fetch_and(~bit, std::memory_order_seq_cst);
        if (word.load(std::memory_order_seq_cst) != 0) top.fetch_or(bit, std::memory_order_seq_cst);
      }
      for (; bits != 0; bits &= bits - 1)
        visit(leaf * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }
  // Ignores top words beyond `channels`, as collect() does: nothing would ever clear them. Bits a
  // little beyond the last channel may count until the next collect().
  [[nodiscard]] bool any(std::uint32_t channels = kMaxChannels) const {
    std::uint64_t rung = 0;
#pragma GCC unroll 16
    for (std::uint32_t t = 0; t < 16; ++t)
      if (t * 4096 < channels) rung |= top_[t].load(std::memory_order_seq_cst);
    return rung != 0;
  }

 private:
  template <typename Visit, typename Ahead>
  bool collect_from(std::uint32_t from, std::uint32_t channels, std::uint32_t& left,
                    Progress& progress, Visit& visit, Ahead& ahead) {
    bool any = false;
    for (std::uint32_t t = from / 64; t < 16 && t * 4096 < channels; ++t) {
      if (top_[t].load(std::memory_order_relaxed) == 0) continue;
      auto mids = top_[t].exchange(0, std::memory_order_seq_cst);
      if (t == from / 64 && from % 64 != 0) {
        const auto earlier = mids & ((std::uint64_t{1} << from % 64) - 1);
        top_[t].fetch_or(earlier, std::memory_order_seq_cst);
        mids &= ~earlier;
      }
      for (; mids != 0; mids &= mids - 1) {
        const auto leaf = t * 64 + static_cast<std::uint32_t>(__builtin_ctzll(mids));
        if (leaf * 64 >= channels) break;
        if (left == 0) {
          top_[t].fetch_or(mids, std::memory_order_seq_cst);
          progress.leaf = leaf;
          return any;
        }
        auto bits = leaves_[leaf].exchange(0, std::memory_order_seq_cst);
        if ((bits & (bits - 1)) != 0) ahead(leaf * 64, bits);
        for (; bits != 0; bits &= bits - 1) {
          const auto channel = leaf * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
          if (channel >= channels) break;
          visit(channel);
          left -= left != 0 ? 1 : 0;
          any = true;
        }
      }
    }
    return any;
  }

  std::atomic<std::uint64_t> top_[16];
  std::atomic<std::uint64_t> leaves_[1024];
};

inline constexpr std::uint32_t kClientPageMagic = 0x53545047;  // "STPG"

struct ClientPage {
  std::uint32_t magic;
  std::uint32_t version;
  alignas(64) Doorbells bells;           // written by the client
  std::atomic<std::uint32_t> sleepers;   // client threads that sleep on `events` or are about to
  std::atomic<std::uint32_t> passed_on;  // the value of `events` at which one woke all the others
  alignas(64) std::atomic<std::uint32_t> events;  // futex word, bumped by the service
  std::atomic<std::uint32_t> service_asleep;      // 1: a client that rings also writes its bell
  std::atomic<std::uint32_t> accepts;             // incremented when a listener has a connection
  std::atomic<std::uint32_t> link_state;          // port::LinkState, written by the service
  std::atomic<std::uint32_t> link_changes;        // how often link_state has changed
  std::atomic<std::uint32_t> link_ipv4;           // the link's present address, host order; 0: none
  alignas(64) Doorbells news;  // rung by the service: gathered channels that have news

  // For zeroed memory.
  void begin(std::uint32_t protocol) {
    magic = kClientPageMagic;
    version = protocol;
  }
};
}  // namespace stp::ipc
