// SPDX-License-Identifier: BSD-3-Clause
// One struct per operation, with the operation's own names for its fields. Generated from the table
// in operations.h.
//
//   const auto rts = decode_as<RequestToSend>(header);   // header.op() is kRequestToSend
//   if (rts.t_len > ...) ...
//   encode_to(ClearToSend{.blocksize = 20, ...}, header);  // sets Op and the operation's fields
//
// Ports, Key, Cksum and flags belong to every header and keep their values.
#pragma once

#include "stp/wire/operations.h"

namespace stp::wire {

template <Word word>
struct WordType {
  using Type = std::uint32_t;
};
template <>
struct WordType<Word::kParam> {
  using Type = std::uint16_t;
};
template <>
struct WordType<Word::kMx> {
  using Type = std::uint16_t;
};
template <>
struct WordType<Word::kTLen> {
  using Type = std::uint64_t;
};

#define STP_MEMBER(word, member, name) WordType<Word::k##word>::Type member = 0;
#define STP_READ(word, member, name) \
  member = static_cast<WordType<Word::k##word>::Type>(word_of(header, Word::k##word));
#define STP_WRITE(word, member, name) set_word(header, Word::k##word, member);
// clang-format off
#define STP_STRUCT(operation, fields, ...)                                \
  struct operation {                                                      \
    static constexpr Op kOp = Op::k##operation;                           \
    STP_FIELDS_##fields(STP_MEMBER)                                       \
    constexpr void read_from(const Header& header) {                      \
      STP_FIELDS_##fields(STP_READ)                                       \
    }                                                                     \
    constexpr void write_to(Header& header) const {                       \
      STP_FIELDS_##fields(STP_WRITE)                                      \
    }                                                                     \
    friend bool operator==(const operation&, const operation&) = default; \
  };
// clang-format on
STP_OPERATIONS(STP_STRUCT)
#undef STP_STRUCT
#undef STP_WRITE
#undef STP_READ
#undef STP_MEMBER

// Reads the fields of a DATA in place, for the path of each STU: copies nothing. The header must
// outlive it.
class DataView {
 public:
  explicit constexpr DataView(const Header& header) : header_(header) {}

#define STP_ACCESSOR(word, member, name)                                                \
  [[nodiscard]] constexpr WordType<Word::k##word>::Type member() const {                \
    return static_cast<WordType<Word::k##word>::Type>(word_of(header_, Word::k##word)); \
  }
  STP_FIELDS_DATA(STP_ACCESSOR)
#undef STP_ACCESSOR
  [[nodiscard]] constexpr bool has(std::uint16_t flag) const {
    return header_.has(flag);
  }
  [[nodiscard]] constexpr std::uint16_t s_port() const {
    return header_.s_port;
  }

 private:
  const Header& header_;
};

// The header's op must be T's.
template <typename T>
constexpr T decode_as(const Header& header) {
  T operation;
  operation.read_from(header);
  return operation;
}
// A header with only the operation's fields; set Ports and Key afterwards.
template <typename T>
constexpr Header to_header(const T& operation, std::uint16_t flags = 0) {
  Header header;
  header.op_flags = op_flags(T::kOp, flags);
  operation.write_to(header);
  return header;
}
// Leaves flags and words that the operation does not use unchanged.
template <typename T>
constexpr void encode_to(const T& operation, Header& header) {
  header.op_flags = op_flags(T::kOp, header.op_flags);
  operation.write_to(header);
}

}  // namespace stp::wire
