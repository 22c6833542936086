// SPDX-License-Identifier: BSD-3-Clause
// Frames as text: a line for people, a JSON object for programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk_port/link/link.h"
#include "stp/wire/operations.h"
#include "tools/replay/capture.h"
#include "tools/replay/check/connection.h"

namespace stp::replay {

// The names of each operation's fields, for traces and scripts.

using Field = wire::Word;
using FieldName = wire::FieldName;

// The fields that the operation uses, with its own names, in the order of the header's words. Empty
// for an unknown operation. A NOP's fields are opaque and have the header's names.
std::span<const FieldName> fields_of(wire::Op op);

// The names of the header's fields: Param, D_Port, S_Port, D_Key, ...
std::string_view header_name(Field field);

// "RTS", or "0x1f" for an unknown code.
std::string op_name(const wire::Header& header);
// The function of a GET: "Get", "Fetch_Add", ...
std::string_view function_name(wire::Function function);

struct FlagName {
  std::uint16_t flag;
  std::string_view name;
};
std::span<const FlagName> flag_names();

// The flags that the operation uses (docs/protocol.md, rule 3.5).
std::uint16_t used_flags(wire::Op op);

// What the managed layer says in a frame: one value.
struct Detail {
  std::string_view name;  // "message", "tag", "taken", ...
  std::string text;       // of the value
  bool quoted = false;    // it is a word, and not a number
};

// "12 0.000345678 02:..:01 > 02:..:02 RTS CTS_req=1 ...", without a newline; of a datagram with
// addresses and UDP ports. Times count from
// `start`. `details`: of the managed layer.
std::string line_of(const Decoded& frame, std::int64_t start,
                    const std::vector<Detail>& details = {});

// One JSON object, without a newline.
std::string json_of(const Decoded& frame, const std::vector<Detail>& details = {});

// Seconds with nine decimal digits. `epoch`: the seconds of time 0.
std::string seconds(std::int64_t nanoseconds, std::int64_t epoch = 0);
using port::to_string;  // 02:00:00:00:00:01
// The stations of a frame: 02:00:00:00:00:01, or of a datagram 10.0.0.5/8181.
std::string sender_of(const Decoded& frame);
std::string receiver_of(const Decoded& frame);
// A station in such words.
std::optional<MacAddr> parse_station(const std::string& text);
// What those words are, for help and errors.
inline constexpr char kStationWords[] =
    "02:00:00:00:00:01, of datagrams 10.0.0.5/8181 or [2001:db8::5]/8181, of IP protocol 118 "
    "10.0.0.5 or [2001:db8::5]";

// Looks for a station in a trace, and knows others that are there.
class StationSearch {
 public:
  explicit StationSearch(const MacAddr& wanted) : wanted_(wanted) {}
  void see(const Decoded& frame);
  [[nodiscard]] bool found() const { return found_; }
  // "10.0.0.1/8181, 10.0.0.2/8181"; "and others" if there are many.
  [[nodiscard]] std::string others() const;

 private:
  static constexpr std::size_t kMost = 8;  // a trace may have any number
  MacAddr wanted_;
  bool found_ = false, has_more_ = false;
  std::vector<std::string> others_;
};
std::string hex(std::uint64_t value);

// The operation and its fields, as in a line. Also used to show two frames side by side.
std::string operation_text(const Decoded& frame);

// What the managed layer says in a frame: requests and answers of connections, numbers and tags of
// messages, slots taken, names of regions. It follows a trace just far enough to know that: which
// connections are managed, and what each id stands for.
class ManagedView {
 public:
  // Call it with each frame of a trace, in order. Empty if the frame says nothing of that kind.
  std::vector<Detail> look(const Decoded& frame);

 private:
  enum class What { kWrite, kRegion, kRing };
  struct Place {
    What what = What::kWrite;
    std::uint32_t i_id = 0, word = 0;  // number of the message, or name of the region
  };
  struct Side {
    Recent<std::uint32_t, std::uint32_t, 256> writes, regions;  // asked for: the word of each I_id
    Recent<std::uint32_t, Place, 256> places;                   // where it receives, by R_id
  };
  struct Pair {
    bool managed = false;
    Side low, high;  // of the lower and the higher end
  };
  struct PairName {
    EndName low, high;
    friend bool operator==(const PairName&, const PairName&) = default;
  };
  struct PairHash {
    std::size_t operator()(const PairName& name) const {
      return EndHash()(name.low) * 31 + EndHash()(name.high);
    }
  };
  struct Said {
    const Decoded& frame;
    const wire::Header& h;
    Pair& pair;
    Side& from;
    Side& to;
  };

  static std::vector<Detail> on_request(const Said& said);
  static std::vector<Detail> on_region(const Said& said);
  static std::vector<Detail> on_data(const Said& said);
  static std::vector<Detail> on_hello(const Said& said);

  Recent<PairName, Pair, 1024, PairHash> pairs_;
};

}  // namespace stp::replay
