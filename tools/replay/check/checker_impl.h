// SPDX-License-Identifier: BSD-3-Clause
// The implementation of Checker, with one file per subject like the engine.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "tools/replay/check/checker.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/check/endpoint.h"

namespace stp::replay {

// Frames of one sender may be reordered before the capture by at most this time.
inline constexpr TraceTime kReordering = 10'000'000;
// Copies closer together than this were made by the link, not by a timer.
inline constexpr TraceTime kLinkCopies = 50'000;
// A peer that has been asked this often within at least this time must have answered.
inline constexpr unsigned kOwedTries = 3;
inline constexpr TraceTime kOwedTime = 1'000'000'000;

// `later` - `earlier`, or the largest time if that overflows.
inline TraceTime between(TraceTime earlier, TraceTime later) {
  TraceTime span = 0;
  return __builtin_sub_overflow(later, earlier, &span) ? std::numeric_limits<TraceTime>::max()
                                                       : span;
}

// One frame of a connection, with its sender and receiver.
struct Said {
  const Decoded& frame;
  const wire::Header& h;
  Connection& c;
  Side& from;
  Side& to;
  TraceTime now;
};

// What a checker keeps a bounded number of.
enum class Kept { kRequests, kLandings, kBlocks, kGets, kEnds, kQuestions, kConnections, kCount };

struct Checker::Impl {
  Impl(Sink given_sink, const CheckerOptions& given_options);

  // --- form.cpp
  void check_form(const Decoded& frame);
  void check_encapsulation(const Decoded& frame);
  void check_unused(const Decoded& frame);
  std::uint16_t flags_sent_back(const Decoded& frame);

  // --- connect.cpp
  void on_request_connection(const Decoded& frame);
  void on_connection_answer(const Decoded& frame);
  void answered_again(const Decoded& frame, Connection& c, Side& answerer);
  void on_disconnection(const Said& said);
  void check_last_words(const Said& said);
  // Checks the Key and what the state allows. Returns false if the frame has no valid receiver.
  bool check_names(const Said& said);
  bool check_key(const Said& said, Side& whose, std::uint32_t seen, const char* field);
  void note_ghost(const Decoded& answer);
  bool ends_ghost(const Decoded& frame);
  Connection* connection_of(const Decoded& frame);
  Connection* ended_from_other_port(const Decoded& frame);
  void say_farewell(Connection& connection);

  // --- slots.cpp
  void spend_slot(const Said& said);
  void on_question(const Said& said, bool is_rs);
  void on_state_response(const Said& said);
  void check_b_seq(const Said& said, Landing& landing);
  void check_b_num(const Said& said, const Question& question, Landing& landing);
  void count_question(const Said& said);

  // --- requests.cpp
  void on_request(const Said& said);
  void on_answer(const Said& said);
  void on_end(const Said& said);
  void on_end_ack(const Said& said);

  // --- grants.cpp
  void on_clear_to_send(const Said& said);
  void on_region(const Said& said);

  // --- parts.cpp
  void on_first_part(const Said& said, Landing& landing, const Request* offer, Block& block);
  bool on_later_part(const Said& said, Block& block);

  // --- gets.cpp
  void on_get(const Said& said);
  void on_get_request(const Said& said);
  void note_g_num(const Said& said, Traffic& traffic);

  // --- data.cpp
  void on_data(const Said& said);
  void check_last_flags(const Said& said);
  bool is_late_repeat(const Decoded& frame);
  bool check_block_data(const Said& said, Landing& landing);
  void check_bytes(const Said& said, Block& block);
  void on_get_data(const Said& said, GetRequest& get);
  bool place(const Said& said, Block& block, std::uint64_t low, std::uint64_t high);
  bool check_buffer(const Said& said);
  bool check_tiling(const Said& said, Block& block);
  void count_data_slot(const Said& said, Block& block);

  // --- managed.cpp
  void on_managed_request(const Said& said, Request& request, bool fresh);
  void on_managed_data(const Said& said, Landing& landing);
  void on_managed_put(const Said& said, Landing& landing);
  void on_managed_region(const Said& said, const Request& asked, Landing& region);
  void check_withdrawal(const Said& said, const Request& ended);
  void check_outstanding(const Said& said, Landing& landing, const Request& offer);
  void on_notice(const Said& said);
  void note_message(const Said& said, std::uint32_t number, std::uint64_t what);
  void check_write_window(const Said& said, Request& request);
  void on_hello(const Said& said);
  void on_eager(const Said& said, Landing& ring, const Block& block);
  void check_slots(const Said& said, const Landing& ring, std::uint64_t at, std::uint32_t length);
  void note_taken(const Said& said, std::uint32_t count);
  void count_no_more(const Said& said);
  void check_managed_end(const Said& said);
  static bool has_message_waiting(const Said& said);
  void miss_messages(const Connection& c, const Side& side);

  // --- endpoints.cpp
  bool follow_endpoint(const Decoded& frame);
  void recognize(const Decoded& frame, Endpoint& endpoint);
  bool check_endpoint_key(const Said& said, Endpoint& endpoint);
  void on_endpoint_data(const Said& said, Endpoint& endpoint);
  SentBlock& sent_block(const Said& said, Endpoint& endpoint);

  // --- directions.cpp
  void note_direction(const Decoded& frame);
  // False: the capture has nothing that the receiver has sent to the sender.
  bool was_answered(const Decoded& frame);
  // Reports it if anything comes from the receiver; else its answer may be what the capture lacks.
  void tell_joined(const Decoded& frame);
  void report_if_answered(const Decoded& frame, Rule rule, std::string expected, std::string seen);
  void tell_one_sided();

  // --- checker.cpp
  void follow(const Decoded& frame);
  void dispatch(const Said& said);
  // When a request may be repeated: after `first`, then after intervals that double up to
  // `longest`.
  struct Pace {
    TraceTime first, longest;
  };
  void repeat(const Said& said, Tries& tries, const Pace& pace, TraceTime patience,
              const char* what);
  // Whether what a frame names, and is not there, was never there either: nothing was `forgotten`
  // to make room. If something was, says so once for its kind.
  bool surely(const Decoded& frame, bool forgotten, Kept kept);
  bool surely(const Said& said, bool forgotten, Kept kept) {
    return said.c.complete && surely(said.frame, forgotten, kept);
  }
  void report(const Said& said, Rule rule, std::string expected, std::string seen);
  void report(const Decoded& frame, Rule rule, std::string expected, std::string seen,
              bool explained = false);
  // Runs `judge` for an object. Reports nothing if a fault of the object has been `told` before,
  // because further faults follow from the first.
  template <typename Judge>
  void once(bool& told, Judge&& judge) {
    const auto before = faults;
    const auto outside = std::exchange(hushed, hushed || told);
    judge();
    hushed = outside;
    told = told || faults != before;
  }
  void owed(const Connection& c, const Tries& tries, const Side& debtor, Rule rule,
            std::string what);
  // Whether the link may have changed the order or number of the sender's frames before the
  // capture.
  [[nodiscard]] bool disturbed(const Said& said) const {
    return options.at && said.from.mac != *options.at;
  }
  // Whether the capture has lasted so long that it must contain every open request.
  [[nodiscard]] bool settled(TraceTime now) const;

  // An RC that waits for its CA, by (MAC, Port) of its sender.
  struct Connecting {
    MacAddr to;
    std::uint32_t key = 0;
    std::uint16_t slots = 0;
    unsigned bufsize = 0, max_stu = 0;
    std::uint32_t uport = 0;
    Tries tries;
    std::optional<std::uint32_t> key_before;  // of an earlier RC from the same Port
  };
  // A CA that made no connection, by the two ends that it names, its sender's first.
  struct Ghost {
    std::uint32_t sender_key = 0, receiver_key = 0;
  };
  struct GhostName {
    EndName sender, receiver;
    friend bool operator==(const GhostName&, const GhostName&) = default;
  };
  struct GhostHash {
    std::size_t operator()(const GhostName& name) const {
      return EndHash()(name.sender) * 31 + EndHash()(name.receiver);
    }
  };
  // Two stations, by their addresses, and what each sent to the other.
  struct StationPair {
    std::uint64_t low = 0, high = 0;
    friend bool operator==(const StationPair&, const StationPair&) = default;
  };
  struct StationHash {
    std::size_t operator()(const StationPair& pair) const {
      return std::hash<std::uint64_t>()(pair.low * 0x9e3779b97f4a7c15 ^ pair.high);
    }
  };
  struct Way {
    std::uint64_t frames = 0;
    std::uint64_t first = 0;  // that shows that the other side has sent something; 0: none
    TraceTime time = kNotYet;
    std::string from, to;  // of datagrams; "": the stations have MAC addresses
  };
  struct Held {
    std::uint64_t frame = 0;
    TraceTime time = kNotYet;
    Rule rule{};
    std::string expected, seen;
  };
  struct Ways {
    Way up, down;  // from the lower address to the higher one, and back
    std::vector<Held> held;
  };
  Sink sink;
  CheckerOptions options;
  TraceTime start_of_trace = kNotYet, newest = kNotYet;
  std::int64_t epoch = 0;  // of the trace's times
  Recent<EndName, Connecting, 65'536, EndHash> connecting;
  Recent<GhostName, Ghost, 1024, GhostHash> ghosts;
  std::array<bool, static_cast<std::size_t>(Kept::kCount)> told_forgotten{};
  bool joined_told = false;
  std::uint64_t faults = 0;  // reported or suppressed
  bool hushed = false;
  ConnectionTable connections;
  Recent<EndName, Endpoint, 1024, EndHash> endpoints;
  Recent<StationPair, Ways, 1024, StationHash> stations;
};

inline EndName source_of(const Decoded& frame) {
  return {frame.frame.src.to_u64(), frame.frame.header.s_port};
}
inline EndName target_of(const Decoded& frame) {
  return {frame.frame.dst.to_u64(), frame.frame.header.d_port};
}

// The first word of the option payload, or 0 if there is none or the capture cut it.
std::uint32_t option_word(const Decoded& frame);

// "Blocksize 12": text for the expected and the seen value.
std::string named(const char* name, std::uint64_t value);
std::string named_hex(const char* name, std::uint64_t value);

}  // namespace stp::replay
