// SPDX-License-Identifier: BSD-3-Clause
// Generates the table of operations and their fields in stp-st.lua. `stp-dissector-table --write
// FILE` replaces the lines between the two markers there.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "stp/wire/operations.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"

namespace {

using stp::wire::Op;
using stp::wire::Word;

constexpr const char* kBegin =
    "-- Made by stp-dissector-table from stp/wire/operations.h: begin.\n";
constexpr const char* kEnd = "-- Made by stp-dissector-table: end.\n";
constexpr std::size_t kLineLength = 100;

const char* lua_word(Word word) {
  switch (word) {
    case Word::kParam:
      return "PARAM";
    case Word::kMx:
      return "MX";
    case Word::kBufx:
      return "BUFX";
    case Word::kOffset:
      return "OFFSET";
    case Word::kSync:
    case Word::kTLen:  // T_len begins at Sync
      return "SYNC";
    case Word::kBNum:
      return "B_NUM";
    case Word::kDId:
      return "D_ID";
    case Word::kSId:
      return "S_ID";
  }
  return "";
}

// A GET's T_len has 16 bits, that of other operations 64: two fields in Wireshark.
std::string lua_name(Op op, const stp::wire::FieldName& field) {
  return op == Op::kGet && field.name == "T_len" ? "Length" : std::string(field.name);
}

std::string table() {
  std::string text = std::string(kBegin) + "local OPS = {\n";
  for (const auto& operation : stp::wire::operations()) {
    char begin[32];
    std::snprintf(begin, sizeof begin, "  [0x%02x] = { \"%s\"", static_cast<unsigned>(operation.op),
                  operation.short_name);
    std::string line = begin;
    for (const auto& field : operation.fields) {
      if (field.name == "EtherType") continue;  // always 0 (rule 3.14), so not shown
      const std::string next =
          "{ \"" + lua_name(operation.op, field) + "\", " + lua_word(field.word) + " }";
      line += ',';
      if (line.size() + next.size() + 4 > kLineLength) {
        text += line + '\n';
        line = std::string(12, ' ');
      }
      line += ' ' + next;
    }
    text += line + " },\n";
  }
  return text + "}\n" + kEnd;
}

int write_into(const std::string& path) {
  errno = 0;
  std::ifstream in(path);
  if (!in) {
    stp::cli::say("stp-dissector-table", path + ": " + std::strerror(errno));
    return 1;
  }
  std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto begin = whole.find(kBegin), end = whole.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    stp::cli::say("stp-dissector-table", path + " has no lines that begin and end the table");
    return 1;
  }
  whole.replace(begin, end + std::strlen(kEnd) - begin, table());
  std::ofstream out(path);
  out << whole;
  out.close();
  if (out) return 0;
  stp::cli::say("stp-dissector-table", path + " cannot be written: " + std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  stp::cli::App app("Makes the table of operations of Wireshark's dissector.",
                    "stp-dissector-table");
  std::string path;
  app.add_option("--write", path, "Replace the lines of the table in this file")
      ->type_name("FILE")
      ->default_str("print them");
  app.set_version_flag("--version", "stp-dissector-table " STP_VERSION);
  if (const auto status = app.parse_or_report(argc, argv, stp::cli::kWrongUsage)) return *status;
  return path.empty() ? std::fputs(table().c_str(), stdout) < 0 : write_into(path);
}
