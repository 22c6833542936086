// SPDX-License-Identifier: BSD-3-Clause
// The composition of a Sequencer: the mechanisms of this folder, each of which owns its state.
// dispatch.cpp routes the peer's headers to them, sequencer.cpp the calls of the user.
#pragma once

#include "stp/transfer/asks_in.h"
#include "stp/transfer/asks_out.h"
#include "stp/transfer/clock.h"
#include "stp/transfer/completions.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/finished.h"
#include "stp/transfer/gets.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/offers.h"
#include "stp/transfer/outbox.h"
#include "stp/transfer/puts.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"
#include "stp/transfer/writes_in.h"
#include "stp/transfer/writes_out.h"

namespace stp {

struct Sequencer::Impl {
  // The Sync of a NOP that carries a notice.
  // protocol: 9.31
  static constexpr std::uint32_t kNoticeMark = 0x53544d4e;  // "STMN"

  explicit Impl(const SequencerConfig& sequencer_config) : config(sequencer_config) {}

  void dispatch(const ReceivedEntry& entry);
  void expire();
  void on_offer(const ReceivedEntry& entry);
  void on_answer(const wire::RequestAnswer& ra, bool refused);
  void on_data(const ReceivedEntry& entry);
  void on_state(const wire::RequestStateResponse& rsr, bool refused);
  void on_end(const ReceivedEntry& entry);
  void on_notice(const wire::NoOperation& nop);

  const SequencerConfig config;
  int ended = 0;  // why the connection ended
  Clock clock;
  Ids ids;
  Outbox outbox{clock};
  Completions completions{outbox};
  Repeats repeats{config.remote_slots, clock, outbox};
  Endings endings{outbox, completions, repeats};
  Puts puts{config, clock, outbox, completions, repeats, endings};
  Gets gets{config, clock, outbox, completions, repeats};
  Finished finished{outbox};
  WritesOut writes_out{config, clock, ids, outbox, completions, repeats, endings};
  WritesIn writes_in{config, clock, outbox, completions, endings, finished};
  Offers offers{outbox, completions, finished, writes_in};
  AsksOut asks_out{clock, ids, outbox, completions, repeats, endings, puts};
  AsksIn asks_in{config, ids, outbox, completions, endings, finished};
};

}  // namespace stp
