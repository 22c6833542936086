// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/progress.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dpdk_port/link/start_thread.h"
#include "libst/ipc/link_choice.h"
#include "stp/base/caught.h"
#include "stp/base/printable.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/files/failure.h"

namespace stp::files {
namespace {

constexpr std::string_view kGap = "...";
constexpr std::size_t kLeastName = 7, kUsualName = 16;

// wcwidth() and mbrtowc() depend on the locale, and that of this process is "C".
class Utf8 {
 public:
  Utf8() : before_(::uselocale(locale())) {}
  ~Utf8() { ::uselocale(before_); }
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;

 private:
  static locale_t locale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;  // 0 leaves the present one in use: each byte is then a column
  }
  const locale_t before_;
};

struct Glyph {
  std::string_view bytes;
  std::size_t columns = 0;
};

std::vector<Glyph> glyphs_of(std::string_view text) {
  const Utf8 utf8;
  std::vector<Glyph> glyphs;
  while (!text.empty()) {
    wchar_t character = 0;
    mbstate_t state{};
    auto length = ::mbrtowc(&character, text.data(), text.size(), &state);
    const auto valid = length != 0 && length <= text.size();
    if (!valid) length = 1;
    const auto width = valid ? ::wcwidth(character) : 1;
    glyphs.push_back({text.substr(0, length), width < 0 ? 1U : static_cast<std::size_t>(width)});
    text.remove_prefix(length);
  }
  return glyphs;
}

template <typename Iterator>
std::size_t take(Iterator at, Iterator end, std::size_t columns) {
  std::size_t count = 0;
  for (std::size_t used = 0; at != end && used + at->columns <= columns; ++at, ++count)
    used += at->columns;
  return count;
}

// "1.23 GB", or compact "1.23GB".
std::string amount(double bytes, bool compact) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  const auto digits = unit == 0 || bytes >= 99.5 ? 0 : bytes >= 9.95 ? 1 : 2;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f%s%s", digits, bytes, compact ? "" : " ",
                kUnits.at(unit));
  return text.data();
}

std::string time_text(double seconds) {
  constexpr double kMost = 359'999;
  if (!(seconds <= kMost)) return "-:--";
  const auto all = static_cast<unsigned>(seconds + 0.5);
  const auto hours = all / 3'600, minutes = all / 60 % 60, rest = all % 60;
  std::array<char, 48> text{};
  if (hours != 0)
    std::snprintf(text.data(), text.size(), "%u:%02u:%02u", hours, minutes, rest);
  else
    std::snprintf(text.data(), text.size(), "%u:%02u", minutes, rest);
  return text.data();
}

std::string part_text(const ProgressView& view) {
  if (!view.size) return {};
  const auto size = static_cast<double>(std::max<std::uint64_t>(*view.size, 1));
  const auto part = view.done >= *view.size ? 1 : static_cast<double>(view.done) / size;
  return std::to_string(static_cast<unsigned>(part * 100)) + "%";
}

std::string left_text(const ProgressView& view, bool compact) {
  if (!view.size || view.rate <= 0) return {};
  const auto left = *view.size - std::min(view.done, *view.size);
  return time_text(static_cast<double>(left) / view.rate) + (compact ? "" : " left");
}

std::string count_text(const ProgressView& view, bool compact) {
  if (view.files < 2) return {};
  const auto files = std::to_string(view.files) + (view.more ? "+" : "");
  const auto file = std::to_string(view.file);
  return compact ? file + "/" + files : "file " + file + " of " + files;
}

// The fields after the name, in their order; those that are left out first come last.
std::vector<std::string> fields_of(const ProgressView& view, bool compact) {
  std::vector<std::string> fields;
  const auto add = [&fields](std::string field) {
    if (!field.empty()) fields.push_back(std::move(field));
  };
  if (view.moves) {
    add(part_text(view));
    add(amount(view.rate, compact) + "/s");
    add(left_text(view, compact));
    add(amount(static_cast<double>(view.done), compact));
  }
  add(count_text(view, compact));
  return fields;
}

std::string text_of_fields(const std::vector<std::string>& fields, std::string_view between) {
  std::string text;
  for (const auto& field : fields) (text += between) += field;
  return text;
}

// Leaves out the end where the text is longer.
std::string begin_of(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const auto gap = columns > kGap.size() + 1 ? kGap : std::string_view();
  const auto glyphs = glyphs_of(text);
  std::string shorter;
  for (std::size_t i = 0, n = take(glyphs.begin(), glyphs.end(), columns - gap.size()); i < n; ++i)
    shorter += glyphs[i].bytes;
  return shorter.append(gap);
}

// "" if not even a short form of the name has room beside the text.
std::string with_name(const std::string& name, const std::string& text, std::size_t columns) {
  const auto used = columns_of(text);
  if (used + std::min(columns_of(name), kLeastName) > columns) return {};
  return shortened(name, columns - used) + text;
}

// A trouble says the cause first, then the remedy: whole, then shorter and shorter by one part.
std::vector<std::string> parts_of_trouble(std::string trouble) {
  std::vector<std::string> parts{trouble};
  for (;;) {
    const auto end = std::max(trouble.rfind(": ") + 1, trouble.rfind("; ") + 1);  // 0: none
    if (end == 0) return parts;
    parts.emplace_back(trouble.erase(end - 1));
  }
}

// The cause is what the user needs most. The name and the percent give way to it, then its remedy.
std::string stall_line(const ProgressView& view, std::size_t columns) {
  const auto stalled = "stalled " + std::to_string(view.stalled->count()) + " s";
  const auto percent = part_text(view);
  std::string cause = stalled;
  for (const auto& trouble : parts_of_trouble(view.trouble)) {
    const auto text = stalled + (trouble.empty() ? "" : ": " + trouble);
    for (const auto& behind : {percent.empty() ? "" : " " + percent, std::string()})
      if (auto line = with_name(view.name, behind + " " + text, columns); !line.empty())
        return line;
    if (columns_of(text) <= columns) return text;
    if (!trouble.empty()) cause = trouble;
  }
  return begin_of(cause, columns);
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const auto& glyph : glyphs_of(text)) columns += glyph.columns;
  return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  const auto glyphs = glyphs_of(text);
  std::string shorter;
  if (columns <= kGap.size() + 1) {
    const auto count = take(glyphs.begin(), glyphs.end(), columns);
    for (std::size_t i = 0; i < count; ++i) shorter += glyphs[i].bytes;
    return shorter;
  }
  const auto room = columns - kGap.size();
  const auto head = take(glyphs.begin(), glyphs.end(), (room + 1) / 2);
  const auto tail = take(glyphs.rbegin(), glyphs.rend(), room / 2);
  for (std::size_t i = 0; i < head; ++i) shorter += glyphs[i].bytes;
  shorter += kGap;
  for (auto i = glyphs.size() - tail; i < glyphs.size(); ++i) shorter += glyphs[i].bytes;
  return shorter;
}

std::string progress_line(const ProgressView& view, std::size_t columns) {
  if (view.stalled) return stall_line(view, columns);
  const auto name_columns = columns_of(view.name);
  auto fields = fields_of(view, false);
  auto text = text_of_fields(fields, "  ");
  if (columns_of(text) + std::min(name_columns, kUsualName) > columns) {
    fields = fields_of(view, true);
    text = text_of_fields(fields, " ");
    while (fields.size() > 1 && text.size() + std::min(name_columns, kLeastName) > columns) {
      fields.pop_back();
      text = text_of_fields(fields, " ");
    }
  }
  const auto room = columns - std::min(columns, text.size());
  return (shortened(view.name, room) + text).substr(view.name.empty() && !text.empty() ? 1 : 0);
}

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kRateOf = std::chrono::seconds(3);  // the time whose rate is shown

double gigabits(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
}

// Asked before each drawing, because the user may change the size of the window.
std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 80, kLeast = 10;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kLeast) return kUsual;
  return size.ws_col;
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::string rate_text(std::uint64_t bytes, double seconds) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%llu bytes in %.3f s, %.3f Gbit/s",
                static_cast<unsigned long long>(bytes), seconds, gigabits(bytes, seconds));
  return text.data();
}

Progress::Progress(std::string program, bool quiet, std::chrono::milliseconds stalled_after)
    : program_(std::move(program)),
      quiet_(quiet),
      stalled_after_(stalled_after),
      bar_(!quiet && ::isatty(STDERR_FILENO) == 1) {
  if (bar_) thread_ = start_thread([this] { run(); });
}

Progress::~Progress() {
  {
    const Lock lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const Lock lock(mutex_);
  erase();
}

Progress::Item::Item(Progress& progress, std::string name, std::optional<std::uint64_t> size)
    : progress_(progress), name_(std::move(name)), size_(size) {
  const Lock lock(progress_.mutex_);
  if (!progress_.is_busy()) progress_.moved_at_ = Clock::now();
  progress_.small_ = false;
  progress_.items_.insert(this);
}

Progress::Item::~Item() {
  const Lock lock(progress_.mutex_);
  progress_.items_.erase(this);
  if (!progress_.is_busy()) progress_.erase();
}

void Progress::Item::advance(std::uint64_t bytes) {
  if (!progress_.bar_ || bytes == 0) return;
  const Lock lock(progress_.mutex_);
  done_ += bytes;
  progress_.note(bytes);
}

void Progress::Item::skip(std::uint64_t bytes) {
  const Lock lock(progress_.mutex_);
  done_ += bytes;
}

Progress::Watch::Watch(Progress& progress, std::function<std::string()> trouble)
    : progress_(progress) {
  const Lock lock(progress_.watch_mutex_);
  progress_.trouble_ = std::move(trouble);
}

Progress::Watch::~Watch() {
  const Lock lock(progress_.watch_mutex_);
  progress_.trouble_ = nullptr;
}

void Progress::count(std::size_t finished, std::size_t files, bool more) {
  if (!bar_) return;
  const Lock lock(mutex_);
  if (finished != finished_ || !is_busy()) moved_at_ = Clock::now();
  finished_ = finished;
  files_ = files;
  more_ = more;
  if (!is_busy()) erase();
}

void Progress::sent(std::size_t files) {
  if (!bar_) return;
  const Lock lock(mutex_);
  sent_ = files;
}

void Progress::moved(std::uint64_t bytes) {
  if (!bar_) return;
  const Lock lock(mutex_);
  small_ = true;
  note(bytes);
}

void Progress::note(std::uint64_t bytes) {
  moved_ += bytes;
  moved_at_ = Clock::now();
  on_disk_ = false;
}

void Progress::await_disk() {
  if (!bar_) return;
  const Lock lock(mutex_);
  on_disk_ = true;
}

void Progress::pause() {
  if (!bar_) return;
  const Lock lock(mutex_);
  note(0);
}

void Progress::run() {
  Lock lock(mutex_);
  while (!end_) {
    const auto next = Clock::now() + kRedraw;
    while (!end_ && lock.wait_until(changed_, next)) {
    }
    if (!end_ && is_busy()) draw();
  }
}

// Does not hold the lock while it asks for the trouble: nobody waits for the answer but the line.
void Progress::draw() {
  const auto now = Clock::now();
  sample(now);
  std::string trouble;
  if (now - moved_at_ >= stalled_after_) {
    mutex_.unlock();
    {
      const Lock watch_lock(watch_mutex_);
      if (trouble_) trouble = trouble_();
    }
    mutex_.lock();
    if (!is_busy() || end_) return;
  }
  auto shown = view(Clock::now());
  shown.name = printable(shown.name);
  shown.trouble = printable(trouble);
  if (items_.empty() && on_disk_ && shown.trouble.empty()) shown.stalled = {};
  // The last column stays free: some terminals begin a new line behind it. The cursor waits at the
  // begin: where a terminal that becomes narrower breaks the line, it stays there, above the rest.
  const auto columns = terminal_columns() - 1;
  const auto line = progress_line(shown, columns);
  std::fprintf(stderr, "%s%s\r", clearing(columns), line.c_str());
  std::fflush(stderr);
  drawn_ = true;
  drawn_columns_ = columns_of(line);
}

void Progress::sample(Clock::time_point now) {
  samples_.emplace_back(now, moved_);
  while (now - samples_.front().first > kRateOf) samples_.pop_front();
}

ProgressView Progress::view(Clock::time_point now) const {
  ProgressView shown;
  std::optional<std::uint64_t> size = 0;
  for (const auto* item : items_) {
    shown.done += item->done_;
    size = size && item->size_ ? std::optional(*size + *item->size_) : std::nullopt;
  }
  if (items_.empty()) {
    shown.done = moved_;
    shown.moves = on_disk_ || small_;
    shown.name = on_disk_ ? "the receiver writes to its disk"
                          : (small_ ? "small files" : "asking the receiver");
  } else {
    shown.size = size;
    shown.name =
        items_.size() == 1 ? (*items_.begin())->name_ : std::to_string(items_.size()) + " files";
  }
  const auto& [since, before] = samples_.front();
  const auto seconds = std::chrono::duration<double>(now - since).count();
  shown.rate = seconds > 0 ? static_cast<double>(moved_ - before) / seconds : 0;
  shown.file = std::min(finished_ + sent_ + 1, files_);
  shown.files = files_;
  shown.more = more_;
  if (now - moved_at_ >= stalled_after_)
    shown.stalled = std::chrono::duration_cast<std::chrono::seconds>(now - moved_at_);
  return shown;
}

// What clears the line that was drawn, and its rest below it where the terminal has become
// narrower.
const char* Progress::clearing(std::size_t columns) const {
  return drawn_ && drawn_columns_ > columns ? "\r\033[J" : "\r\033[K";
}

void Progress::erase() {
  if (!drawn_) return;
  std::fputs(clearing(terminal_columns() - 1), stderr);
  drawn_ = false;
  std::fflush(stderr);
}

void Progress::say(const std::vector<std::string>& lines) {
  if (quiet_ || lines.empty()) return;
  const Lock lock(mutex_);
  erase();
  for (const auto& line : lines) cli::print(line);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const auto what = "cannot write to standard output: " + error_text(errno);
  if (only_tells_) throw std::runtime_error(what);
  if (std::exchange(unwritten_, true)) return;
  cli::say(program_, what + "; files are still transferred");
}

bool Progress::could_say_all() {
  const Lock lock(mutex_);
  return !unwritten_;
}

void Progress::complain(const std::string& line) {
  const Lock lock(mutex_);
  erase();
  cli::say(program_, line);
  complaint_ = line;
}

int Progress::run(bool quiet, const std::function<bool()>& body) {
  const auto choice = ipc::choose_link();
  if (choice.is_loop()) {
    complain(ipc::no_link(choice));
    return EXIT_FAILURE;
  }
  if (!quiet) complain(ipc::describe(choice));
  try {
    return body() && could_say_all() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const WrongUsage& failure) {
    return cli::usage_error(program_, failure.what(), cli::kWrongUsage);
  } catch (const std::exception& failure) {
    const std::string why = what_of(failure);
    if (const Lock lock(mutex_); complaint_ == why) return EXIT_FAILURE;
    complain(why);
    return EXIT_FAILURE;
  }
}

}  // namespace stp::files
