// SPDX-License-Identifier: BSD-3-Clause
// Command lines of programs: options, subcommands, help, and how a wrong one is reported. CLI11
// does the work. Only app.cpp includes it, because it takes 10 s to compile in each source that
// uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Error;
class Option;
}  // namespace CLI

namespace stp::cli {

// An option's value is wrong: callbacks of options throw it.
struct ValidationError : std::runtime_error {
  explicit ValidationError(const std::string& what) : std::runtime_error(what), what_each{what} {}
  // Several values are: what is wrong with each.
  explicit ValidationError(const std::vector<std::string>& each);
  std::vector<std::string> what_each;
};

// The command line is wrong, or asks for help or the version.
class ParseError : public std::runtime_error {
 public:
  explicit ParseError(const CLI::Error& error);
  // As if CLI11 had found that an option of these names is missing.
  static ParseError missing(const std::string& names);
  [[nodiscard]] bool asks_for_help() const;
  // what(), or of several wrong values each by itself.
  [[nodiscard]] const std::vector<std::string>& what_each() const { return what_each_; }

 private:
  friend class App;
  std::shared_ptr<const CLI::Error> error_;
  std::vector<std::string> what_each_;
};

class App;

// One option. Lives as long as the program's App.
class Option {
 public:
  Option* required();
  Option* expected(int least, int most);  // how many values; most -1: any number
  // false: a value behind another one needs the option's name again
  Option* allow_extra_args(bool allow);
  // Of the value, in the help. Of one without an option's name, as FILE, it replaces that word.
  Option* type_name(const std::string& name);
  Option* default_str(const std::string& text);
  Option* capture_default_str();  // the variable's value is the default in the help
  // Values: of the type T of the limits, which are allowed, too. T: int, unsigned, std::size_t,
  // double.
  template <typename T>
  Option* between(T least, T most);
  Option* positive();                       // 1 or more
  Option* limits(const std::string& text);  // tells them in the help, for whoever checks values
  Option* size();                           // as size_of()
  // `wrong` returns what is wrong with a value, or "".
  Option* check(const std::function<std::string(const std::string&)>& wrong);
  Option* needs(Option* other);
  Option* excludes(Option* other);
  [[nodiscard]] bool empty() const;  // it was not given
  [[nodiscard]] const std::vector<std::string>& results() const;

 private:
  friend class App;
  template <typename T>
  void refuse_outside(T least, std::optional<T> most, const std::string& limits);

  static constexpr char kAnyText[] = "TEXT";
  explicit Option(CLI::Option* option) : option_(option) {}
  [[nodiscard]] bool is_typed() const { return type_ != kAnyText; }
  CLI::Option* option_;
  std::string type_ = kAnyText, limits_;
};

// A program's command line, or one of its subcommands, which the program's App owns.
class App {
 public:
  explicit App(const std::string& description = "", const std::string& name = "");
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  void description(const std::string& text);
  void name(const std::string& text);
  void footer(const std::string& text);
  void usage_end(const std::string& text);  // behind what the help's first line has anyway
  void set_version_flag(const std::string& names, const std::string& version);
  void no_help();
  void group(const std::string& title);  // of the options that are added from now on

  // T: std::string, double, and whole numbers of 16 to 64 bits; std::optional of these; or
  // std::vector of std::string or of std::uint16_t. An empty value is refused, here and below.
  template <typename T>
  Option* add_option(const std::string& names, T& value, const std::string& text);
  Option* add_flag(const std::string& names, bool& value, const std::string& text);
  // `take` may throw ValidationError.
  Option* add_text(const std::string& names, const std::function<void(const std::string&)>& take,
                   const std::string& text);
  Option* add_texts(const std::string& names,
                    const std::function<void(const std::vector<std::string>&)>& take,
                    const std::string& text);

  App* add_subcommand(const std::string& name, const std::string& text);
  void require_subcommand(std::size_t least, std::size_t most);
  void fallthrough();   // options that it does not know may be its parent's
  void allow_extras();  // parse() does not throw for words that nobody has taken
  // Of a subcommand that was given, after those of its own subcommands.
  void final_callback(const std::function<void()>& callback);

  void parse(int argc, const char* const* argv);  // throws ParseError
  // The same for a program that need not know what is wrong. The exit status if it has no more to
  // do: its help or version has been printed, or, with `wrong`, what is wrong.
  std::optional<int> parse_or_report(int argc, const char* const* argv, int wrong);
  // Options with their values, the last one first.
  void parse(const std::vector<std::string>& arguments);

  [[nodiscard]] bool parsed() const;                            // this subcommand was given
  [[nodiscard]] bool has_subcommand() const;                    // one was given
  [[nodiscard]] std::vector<std::string> option_names() const;  // in the order they were added
  [[nodiscard]] bool has_option(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> remaining(bool of_subcommands = false) const;
  // The names of the options that were given, without dashes.
  [[nodiscard]] std::vector<std::string> given() const;
  // The options that were given, once for each time.
  [[nodiscard]] std::vector<const Option*> parse_order() const;
  // The program with the subcommands that were given, as it is written.
  [[nodiscard]] std::string command() const;
  // Tells of an option that there is not, which explains what else seems to be wrong. "": none was
  // given.
  [[nodiscard]] std::string wrong_option() const;
  // Tells of a command that there is not, and lists those there are, of the program or of the
  // command that was given. "": none is wrong, or what was given has no commands of its own.
  [[nodiscard]] std::string wrong_command() const;
  // An option that was given to this command, and that `own`, one of its own commands, does not
  // have; "": there is none.
  [[nodiscard]] std::string option_not_of(const App& own) const;
  // Lists the commands where none was given, else "".
  [[nodiscard]] std::string missing_command() const;

  // Prints help or version, or reports what is wrong. Returns 0 for help, else `status`.
  int report(const ParseError& error, int status) const;

 private:
  struct Parts;  // what the App of the program owns
  class Help;
  App(CLI::App& app, Parts& parts);
  // Throws if an option has an empty value, as --link=.
  void refuse_empty(const std::string& word) const;
  // The names of the commands of the program, or of the last command that was given.
  [[nodiscard]] std::vector<std::string> commands() const;
  // What the help calls a value that CLI11 knows by this name.
  [[nodiscard]] std::string name_in_help(const std::string& name) const;
  Option* own(CLI::Option* option);

  std::unique_ptr<Parts> owned_;
  Parts& parts_;
  CLI::App& app_;
};

// What is wrong with the form HOST:PORT of a name, or with its port; "": nothing. libst tells the
// rest.
std::string reason_against_name(const std::string& text);

// The bytes that a text stands for: 4096, or 0x1000; with a unit of powers of 1024 (4K, 4KB, 4KiB,
// up to E), also of small letters.
std::optional<std::uint64_t> size_of(const std::string& text);
// For the help of sizes, and whoever refuses one.
inline constexpr char kSizeWords[] = "bytes, as 4096, 0x1000, 64K, 1M or 2G";

// For the help of --link: the links that reach other programs.
inline constexpr char kLinksToOthers[] =
    "stpd:PATH, iface:NAME, udp:ADDRESS, ip:ADDRESS, pci:ADDRESS, memif:PATH or vdev:DEVICE";

// What may follow. The commas of a link are no end of it for those who read this.
inline constexpr char kLinkOptions[] =
    ", with options after commas: mtu=, queues=, over UDP also port= and congestion=on or off, and "
    "others of libst(7)";

// --link of a program that wants to reach others.
void add_link_option(App& app, std::string& link);

// The exit status of each program whose command line is wrong. 1: it could not do what was asked.
inline constexpr int kWrongUsage = 2;

// Says what is wrong (say.h), and where help is. Returns `status`.
int usage_error(const std::string& program, const std::string& what, int status);

// One line NAME = VALUE of a configuration file, in the syntax of TOML. `name` is "" if it is none.
struct ConfigLine {
  std::string name;
  std::vector<std::string> values;
};
ConfigLine parse_config_line(const std::string& line);

// Without blanks at both ends.
std::string trimmed(const std::string& text);

}  // namespace stp::cli
