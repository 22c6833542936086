// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/app.h"

#include <netdb.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <vector>

#include "stp/base/suggestion.h"
#include "tools/cli/say.h"

namespace stp::cli {
namespace {

// Runs what may throw an error of CLI11.
template <typename F>
void guarded_parse(const F& parse) {
  try {
    parse();
  } catch (const CLI::Error& error) {
    throw ParseError(error);
  }
}

// A ValidationError on its way through CLI11, which knows only its own errors.
struct WrongValues : CLI::ValidationError {
  explicit WrongValues(const stp::cli::ValidationError& error)
      : CLI::ValidationError(error.what()), what_each(error.what_each) {}
  std::vector<std::string> what_each;
};

template <typename T>
std::function<void(const T&)> with_errors_of_cli11(const std::function<void(const T&)>& take) {
  return [take](const T& value) {
    try {
      take(value);
    } catch (const ValidationError& error) {
      throw WrongValues(error);
    }
  };
}

template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
};
template <typename T>
struct Plain<std::vector<T>> {
  using Type = T;
};

// "" is the value of an unset variable in a script, and would be taken for no option at all.
std::string empty_value(const std::string& what) {
  return "the value is empty: write " + what + ", or leave the option out";
}

std::string reason_against_empty(const std::string& text) {
  return text.empty() ? empty_value("one") : "";
}

// CLI11 takes the largest number that there is for one that is larger, and for -1 where there is
// none below 0; and nan, which is within any limits.
template <typename T>
std::string reason_against_number(const std::string& text) {
  if (text.empty()) return empty_value("a number");
  if constexpr (std::is_floating_point_v<T>) {
    double number = 0;
    const auto is_number = CLI::detail::lexical_cast(text, number) && !std::isnan(number);
    return is_number ? "" : text + " is no number: write digits, as 2 or 0.5";
  } else {
    if (std::is_unsigned_v<T> && text.starts_with('-'))
      return text + " is less than 0: write 0 or more";
    T number{};
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const auto is_hexadecimal = text.starts_with("0x");
    if (!is_hexadecimal && (read.ec == std::errc::invalid_argument || read.ptr != end))
      return "'" + text + "' is no whole number: write digits, as 8";
    const auto is_out_of_range = read.ec == std::errc::result_out_of_range && read.ptr == end;
    return is_out_of_range ? text + " is beyond " + std::to_string(std::numeric_limits<T>::max()) +
                                 ": write less"
                           : "";
  }
}

// Columns of a text in the help, beside the names of options.
constexpr std::size_t kTextWidth = 70;

// Breaks lines between words, but not before one that begins with a dash: completion takes such a
// line for an option's.
std::string in_lines(const std::string& text) {
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kTextWidth) {
      auto end = word.starts_with('-') ? line.rfind(' ') : line.size();
      while (end != line.npos && end < line.size() && line[end + 1] == '-')
        end = line.rfind(' ', end - 1);
      if (end != line.npos) {
        lines += line.substr(0, end) + '\n';
        line.erase(0, end + 1);
      }
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

// "1G" for 2^30, because options for sizes take that, too.
template <typename T>
std::string limit_in_help(T limit) {
  std::ostringstream text;
  if constexpr (std::is_floating_point_v<T>) {
    std::array<char, 32> digits{};
    const auto* const end =
        std::to_chars(digits.begin(), digits.end(), limit, std::chars_format::fixed).ptr;
    text.write(digits.data(), end - digits.data());
  } else {
    constexpr auto kMebi = std::uint64_t{1} << 20, kGibi = std::uint64_t{1} << 30;
    const auto number = static_cast<std::uint64_t>(limit);
    if (number == 0 || number % kMebi != 0)
      text << limit;
    else
      text << number / (number % kGibi == 0 ? kGibi : kMebi) << (number % kGibi == 0 ? 'G' : 'M');
  }
  return text.str();
}

// Returns the exponent of the power of two that a unit stands for: "K", "kb" and "KiB" are 10.
std::optional<unsigned> unit_bits(const std::string& text) {
  const auto unit = CLI::detail::to_lower(text);
  if (unit.empty() || unit == "b") return 0;
  const auto at = std::string_view("kmgtpe").find(unit.front());
  const auto rest = unit.substr(1);
  if (at == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "i" || rest == "ib"))
    return std::nullopt;
  return 10 * (static_cast<unsigned>(at) + 1);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string each_behind_a_blank(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += ' ' + word;
  return text;
}

// Of several wrong values each has its line.
int usage_errors(const std::string& program, const std::vector<std::string>& what, int status) {
  for (const auto& each : what) say(program, each);
  std::fputs("Run with --help for more information.\n", stderr);
  return status;
}

// Of the long options of a command and of those above it, with the dashes; "": nobody knows.
std::string similar_option(const CLI::App& command, const std::string& name) {
  if (!name.starts_with('-') || name.size() == 2) return {};
  std::vector<std::string_view> names;
  for (const auto* at = &command; at != nullptr; at = at->get_parent())
    for (const auto* const option : at->get_options())
      for (const auto& each : option->get_lnames())
        if (std::ranges::find(names, each) == names.end()) names.emplace_back(each);
  // One dash may be missing, too.
  const auto similar =
      similar_word(std::string_view(name).substr(name.starts_with("--") ? 2 : 1), names);
  return similar.empty() ? "" : "--" + std::string(similar);
}

// What CLI11 says of --flag=value, in other words; "": it said something else.
std::string wrong_value_of_flag(const std::string& said) {
  constexpr std::string_view kConversion = "Could not convert: ", kIs = " = ";
  const auto is = said.find(kIs);
  if (!said.starts_with(kConversion) || is == said.npos) return {};
  const auto name = said.substr(kConversion.size(), is - kConversion.size());
  return name + "=" + said.substr(is + kIs.size()) + ": write " + name +
         " alone, which takes no value";
}

// The same of an option with one value that is given several times.
std::string given_too_often(const std::string& said) {
  constexpr std::string_view kAtMost = ": At Most 1 required but received ";
  const auto at = said.find(kAtMost);
  if (at == said.npos) return {};
  return said.substr(0, at) + ": it is given " + said.substr(at + kAtMost.size()) +
         " times, and takes one value" +
         (said.starts_with("--link:") ? "; several links stand in a file (stpd --config)" : "");
}

}  // namespace

ValidationError::ValidationError(const std::vector<std::string>& each)
    : std::runtime_error(joined(each)), what_each(each) {}

ParseError::ParseError(const CLI::Error& error)
    : std::runtime_error(error.what()),
      error_(std::make_shared<CLI::Error>(error)),
      what_each_{error.what()} {
  if (const auto* const values = dynamic_cast<const WrongValues*>(&error))
    what_each_ = values->what_each;
}

ParseError ParseError::missing(const std::string& names) {
  return ParseError(CLI::RequiredError(names));
}

bool ParseError::asks_for_help() const {
  return error_->get_exit_code() == 0;
}

// ---- Option

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::type_name(const std::string& name) {
  type_ = name;
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

// Another check has refused what is no number.
template <typename T>
void Option::refuse_outside(T least, std::optional<T> most, const std::string& limits) {
  const auto wrong = [=](const std::string& text) -> std::string {
    T number{};
    const bool is_below_all = std::is_unsigned_v<T> && text.starts_with('-');
    const bool is_number = !text.empty() && CLI::detail::lexical_cast(text, number);
    if (is_below_all || (is_number && number < least))
      return text + " is too small: write " + limits;
    return is_number && number > most.value_or(number) ? text + " is too large: write " + limits
                                                       : "";
  };
  // CLI11 makes a transform() before all checks, so it tells the limits first. A value with a unit
  // becomes a number only after it.
  option_->transform(CLI::Validator(wrong, ""));
  option_->check(wrong);
}

template <typename T>
Option* Option::between(T least, T most) {
  const auto text = limit_in_help(least) + " to " + limit_in_help(most);
  refuse_outside<T>(least, most, text);
  return limits(text);
}
template Option* Option::between(int, int);
template Option* Option::between(unsigned, unsigned);
template Option* Option::between(std::size_t, std::size_t);
template Option* Option::between(double, double);

Option* Option::positive() {
  constexpr char kText[] = "1 or more";
  refuse_outside<std::uint64_t>(1, std::nullopt, kText);
  return limits(kText);
}

Option* Option::limits(const std::string& text) {
  limits_ = text;
  return this;
}

Option* Option::size() {
  const auto convert = [](std::string& text) {
    if (text.empty()) return empty_value("a size");
    const auto bytes = size_of(text);
    if (!bytes) return "'" + text + "' is no size: write " + kSizeWords;
    text = std::to_string(*bytes);
    return std::string();
  };
  option_->transform(CLI::Validator(convert, ""));
  return this;
}

Option* Option::check(const std::function<std::string(const std::string&)>& wrong) {
  option_->check(wrong);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

bool Option::empty() const {
  return option_->empty();
}

const std::vector<std::string>& Option::results() const {
  return option_->results();
}

// ---- App

struct App::Parts {
  explicit Parts(const std::string& description, const std::string& name)
      : app(description, name) {}
  CLI::App app;
  [[nodiscard]] const Option* find(const CLI::Option* wanted) const {
    for (const auto& option : options)
      if (option.option_ == wanted) return &option;
    return nullptr;
  }
  std::deque<Option> options;
  std::vector<std::unique_ptr<App>> subcommands;
  std::string usage_end;
};

// Writes "--name TYPE   text (limits); needs --this; not with --that [default]".
class App::Help : public CLI::Formatter {
 public:
  explicit Help(const Parts& parts) : parts_(parts) {}

  std::string make_usage(const CLI::App* app, std::string name) const override {
    auto usage = CLI::Formatter::make_usage(app, std::move(name));
    if (parts_.usage_end.empty()) return usage;
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + ' ' + parts_.usage_end + '\n';
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const auto* const known = parts_.find(option);
    return is_positional && known != nullptr && known->is_typed()
               ? known->type_
               : CLI::Formatter::make_option_name(option, is_positional);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const auto* const known = parts_.find(option);
    if (known == nullptr || known->type_.empty()) return "";  // takes no value
    std::string text = option->get_positional() ? "" : ' ' + known->type_;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return option->get_required() ? text + " REQUIRED" : text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    auto text = option->get_description();
    const auto* const known = parts_.find(option);
    if (known != nullptr && !known->limits_.empty()) text += " (" + known->limits_ + ')';
    text += names_of("; needs", option->get_needs());
    text += names_of("; not with", option->get_excludes());
    const auto usual = option->get_default_str();
    return in_lines(usual.empty() ? text : text + " [" + usual + ']');
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream text;
    CLI::detail::format_help(text, command->get_name(), in_lines(command->get_description()),
                             column_width_);
    return text.str();
  }

 private:
  // In the order of the alphabet: CLI11 keeps them in that of their addresses.
  static std::string names_of(const std::string& relation, const std::set<CLI::Option*>& options) {
    std::set<std::string> names;
    for (const auto* const option : options) names.insert(option->get_name());
    std::string text;
    for (const auto& name : names) text += (text.empty() ? relation + ' ' : ", ") + name;
    return text;
  }

  const Parts& parts_;
};

App::App(const std::string& description, const std::string& name)
    : owned_(std::make_unique<Parts>(description, name)), parts_(*owned_), app_(owned_->app) {
  app_.formatter(std::make_shared<Help>(parts_));
}
App::App(CLI::App& app, Parts& parts) : parts_(parts), app_(app) {}
App::~App() = default;

Option* App::own(CLI::Option* option) {
  return &parts_.options.emplace_back(Option(option));
}

void App::description(const std::string& text) {
  app_.description(text);
}

void App::name(const std::string& text) {
  app_.name(text);
}

void App::footer(const std::string& text) {
  app_.footer(text);
}

void App::usage_end(const std::string& text) {
  parts_.usage_end = text;
}

void App::set_version_flag(const std::string& names, const std::string& version) {
  app_.set_version_flag(names, version);
}

void App::no_help() {
  app_.set_help_flag();
}

void App::group(const std::string& title) {
  app_.option_defaults()->group(title);
}

template <typename T>
Option* App::add_option(const std::string& names, T& value, const std::string& text) {
  auto* const option = app_.add_option(names, value, text);
  constexpr bool kIsNumber = std::is_arithmetic_v<typename Plain<T>::Type>;
  if constexpr (kIsNumber)
    option->check(reason_against_number<typename Plain<T>::Type>);
  else
    option->check(reason_against_empty);
  return own(option)->type_name(kIsNumber ? "N" : Option::kAnyText);
}
template Option* App::add_option(const std::string&, std::string&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::uint16_t>&,
                                 const std::string&);
template Option* App::add_option(const std::string&, double&, const std::string&);
template Option* App::add_option(const std::string&, std::uint16_t&, const std::string&);
template Option* App::add_option(const std::string&, int&, const std::string&);
template Option* App::add_option(const std::string&, unsigned&, const std::string&);
template Option* App::add_option(const std::string&, long&, const std::string&);
template Option* App::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<std::string>&,
                                 const std::string&);
template Option* App::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<unsigned>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<long>&, const std::string&);
template Option* App::add_option(const std::string&, std::optional<std::uint64_t>&,
                                 const std::string&);

Option* App::add_flag(const std::string& names, bool& value, const std::string& text) {
  return own(app_.add_flag(names, value, text))->type_name("");
}

Option* App::add_text(const std::string& names, const std::function<void(const std::string&)>& take,
                      const std::string& text) {
  auto* const option =
      app_.add_option_function<std::string>(names, with_errors_of_cli11(take), text);
  option->check(reason_against_empty);
  return own(option);
}

Option* App::add_texts(const std::string& names,
                       const std::function<void(const std::vector<std::string>&)>& take,
                       const std::string& text) {
  auto* const option =
      app_.add_option_function<std::vector<std::string>>(names, with_errors_of_cli11(take), text);
  option->check(reason_against_empty);
  return own(option);
}

App* App::add_subcommand(const std::string& name, const std::string& text) {
  auto* const sub = app_.add_subcommand(name, text);
  return parts_.subcommands.emplace_back(new App(*sub, parts_)).get();
}

void App::require_subcommand(std::size_t least, std::size_t most) {
  app_.require_subcommand(least, most);
}

void App::fallthrough() {
  app_.fallthrough();
}

void App::allow_extras() {
  app_.allow_extras();
}

void App::final_callback(const std::function<void()>& callback) {
  app_.final_callback(callback);
}

// CLI11 takes the next word for the value.
void App::refuse_empty(const std::string& word) const {
  if (!word.starts_with("--") || word.find('=') != word.size() - 1) return;
  const auto name = word.substr(0, word.size() - 1);
  for (const auto& option : parts_.options)
    if (!option.type_.empty() && option.option_->check_name(name))
      throw CLI::ValidationError(name, empty_value("one"));
}

void App::parse(int argc, const char* const* argv) {
  guarded_parse([&] {
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) refuse_empty(argv[i]);
    app_.parse(argc, argv);
  });
}

void App::parse(const std::vector<std::string>& arguments) {
  guarded_parse([&] {
    for (const auto& argument : arguments) refuse_empty(argument);
    app_.parse(std::vector<std::string>(arguments));
  });
}

bool App::parsed() const {
  return app_.parsed();
}

bool App::has_subcommand() const {
  return !app_.get_subcommands().empty();
}

std::vector<std::string> App::option_names() const {
  std::vector<std::string> names;
  for (const auto* const option : app_.get_options()) names.push_back(option->get_single_name());
  return names;
}

std::vector<std::string> App::given() const {
  std::vector<std::string> names;
  for (const auto* const option : app_.parse_order()) names.push_back(option->get_single_name());
  return names;
}

bool App::has_option(const std::string& name) const {
  return app_.get_option_no_throw(name) != nullptr;
}

std::vector<std::string> App::remaining(bool of_subcommands) const {
  return app_.remaining(of_subcommands);
}

std::vector<const Option*> App::parse_order() const {
  std::vector<const Option*> order;
  for (const auto* const given : app_.parse_order())
    for (const auto& option : parts_.options)
      if (option.option_ == given) order.push_back(&option);
  return order;
}

std::string App::command() const {
  std::string words = app_.get_name();
  for (const auto* at = &app_; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    words += ' ' + at->get_name();
  }
  return words;
}

std::string App::wrong_option() const {
  for (const std::string& word : remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    const auto name = word.substr(0, word.find('='));
    const auto* at = &app_;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    if (at != &app_ && at->get_option_no_throw(name) != nullptr)
      return name + " is an option of '" + command() + "': it stands behind that";
    const auto meant = similar_option(*at, name);
    return "there is no option " + word + ": " +
           (meant.empty() ? "'" + command() + " --help' lists those there are"
                          : "did you mean " + meant + "?");
  }
  return {};
}

std::vector<std::string> App::commands() const {
  const auto* at = &app_;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> names;
  for (const auto* const command : at->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::string App::wrong_command() const {
  const auto words = remaining(true), there = commands();
  if (words.empty() || there.empty()) return {};
  auto before = command().substr(app_.get_name().size());  // of the wrong word: " trace"
  before = before.empty() ? before : before.substr(1) + ' ';
  const auto similar =
      similar_word(words.front(), std::vector<std::string_view>(there.begin(), there.end()));
  const auto meant =
      similar.empty() ? "" : "; did you mean '" + before + std::string(similar) + "'?";
  return "there is no command '" + before + words.front() + "'; there are" +
         each_behind_a_blank(there) + meant;
}

std::string App::missing_command() const {
  return has_subcommand() ? ""
                          : "a command is missing; there are" + each_behind_a_blank(commands());
}

std::string App::option_not_of(const App& own) const {
  for (const auto* const given : app_.parse_order())
    if (const auto name = given->get_name(); !own.has_option(name)) return name;
  return {};
}

std::string App::name_in_help(const std::string& name) const {
  for (const auto& option : parts_.options)
    if (option.option_->get_positional() && option.option_->get_name() == name && option.is_typed())
      return option.type_;
  return name;
}

std::optional<int> App::parse_or_report(int argc, const char* const* argv, int wrong) {
  try {
    parse(argc, argv);
    return std::nullopt;
  } catch (const ParseError& error) {
    return report(error, wrong);
  }
}

int App::report(const ParseError& error, int status) const {
  auto wrong = wrong_option();
  // The help of a command that there is not would be that of another one.
  if (error.asks_for_help() && (!wrong.empty() || wrong_command().empty()))
    return app_.exit(*error.error_);
  if (wrong.empty()) wrong = wrong_command();
  const std::string of_cli11 = CLI::RequiredError::Subcommand(1).what();
  if (wrong.empty() && error.what() == of_cli11) wrong = missing_command();
  if (wrong.empty()) wrong = wrong_value_of_flag(error.what());
  if (wrong.empty()) wrong = given_too_often(error.what());
  if (const auto words = remaining(true); wrong.empty() && !words.empty())
    wrong = "nothing takes '" + words.front() + "': '" + command() +
            " --help' shows what may stand there";
  if (wrong.empty()) wrong = error.what();
  constexpr std::string_view kNoValue = ": 1 required ", kRequired = " is required";
  if (const auto at = wrong.find(kNoValue); at != std::string::npos && wrong.ends_with(" missing"))
    wrong = wrong.substr(0, at) + ": the value is missing: '" + command() +
            " --help' shows what it may be";
  if (wrong.ends_with(kRequired))
    wrong = name_in_help(wrong.substr(0, wrong.size() - kRequired.size())) + " is missing: '" +
            command() + " --help' shows where it stands";
  if (wrong == error.what()) return usage_errors(app_.get_name(), error.what_each(), status);
  return usage_error(app_.get_name(), wrong, status);
}

void add_link_option(App& app, std::string& link) {
  app.add_option("--link", link,
                 std::string("Link to use: ") + kLinksToOthers + kLinkOptions +
                     "; not loop, which reaches only this program")
      ->type_name("LINK")
      ->default_str("STP_LINK, else the stpd of this host, if it runs");
}

namespace {

// As libst looks for it.
bool is_service(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(nullptr, name.c_str(), &hints, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

}  // namespace

std::string reason_against_name(const std::string& text) {
  const auto colon = text.rfind(':'), bracket = text.rfind(']');
  const auto is_inside = bracket != std::string::npos && colon < bracket;
  if (colon == std::string::npos || colon + 1 == text.size() || is_inside)
    return "'" + text + "' does not have the form host:port (10.9.0.2:3000, or :3000 of this host)";
  const auto port = text.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != std::string::npos)
    return is_service(port) ? ""
                            : "no service is called '" + port + "'" +
                                  (port.find('/') == std::string::npos
                                       ? ""
                                       : ": a UDP port stands in front of the colon, "
                                         "HOST/UDPPORT:PORT");
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (parsed.ec == std::errc() && number >= 1) return {};
  return "'" + text + "': port '" + port + "' is not in 1..4294967295";
}

std::optional<std::uint64_t> size_of(const std::string& text) {
  const auto is_hexadecimal = text.starts_with("0x");
  const auto* const end = text.data() + text.size();
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data() + (is_hexadecimal ? 2 : 0), end, number,
                                    is_hexadecimal ? 16 : 10);
  const auto bits = unit_bits(trimmed(std::string(read.ptr, end)));
  const auto has_letters = is_hexadecimal && read.ptr != end;  // 0x1g: a unit, or a mistake
  if (read.ec != std::errc() || !bits || has_letters || number > ~std::uint64_t{0} >> *bits)
    return std::nullopt;
  return number << *bits;
}

int usage_error(const std::string& program, const std::string& what, int status) {
  return usage_errors(program, {what}, status);
}

ConfigLine parse_config_line(const std::string& line) {
  std::istringstream one(line);
  const auto items = CLI::ConfigTOML().from_config(one);
  if (items.empty() || !items[0].parents.empty()) return {};
  return {items[0].name, items[0].inputs};
}

std::string trimmed(const std::string& text) {
  return CLI::detail::trim_copy(text);
}

}  // namespace stp::cli
