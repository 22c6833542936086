// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <chrono>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/file_sender.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// What has become of one word of the command line.
struct Tally {
  std::size_t files = 0, others = 0;  // others: directories and symbolic links
  std::size_t unchanged = 0;          // files of which nothing had to be sent
  std::uint64_t sent = 0;             // bytes
};

std::string summary(const std::string& path, const Tally& tally, double seconds) {
  return "sent " + printable(path) + ": " + std::to_string(tally.files) + " files (" +
         std::to_string(tally.unchanged) + " unchanged), " + std::to_string(tally.others) +
         " directories and links, " + rate_text(tally.sent, seconds);
}

class Sender {
 public:
  Sender(FileSender& sender, Progress& progress) : sender_(sender), progress_(progress) {}

  void send_single(const std::string& path) {
    auto const began = Clock::now();
    guard(path, [&] {
      auto file = FileReader::single(path);
      send(file);
      progress_.say("sent " + printable(path) + ": " +
                    rate_text(file.metadata().size, seconds_since(began)));
    });
  }

  void send_tree(const std::string& root) {
    auto const began = Clock::now();
    Tally tally;
    walk_tree(
        root,
        [&](const TreeEntry& entry) {
          guard(entry.path, [&] {
            auto file = FileReader::in_tree(entry);
            count(tally, file.metadata(), send(file));
          });
        },
        [&](const std::string& path, const std::string& why) { fail(path, why); });
    progress_.say(summary(root, tally, seconds_since(began)));
  }

  [[nodiscard]] std::size_t failures() const { return failures_; }

 private:
  std::uint64_t send(FileReader& file) {
    Progress::Item bar(progress_, printable(file.metadata().path), file.metadata().size);
    return sender_.send(file, [&bar](std::uint64_t bytes) { bar.advance(bytes); });
  }

  static void count(Tally& tally, const Metadata& metadata, std::uint64_t sent) {
    if (metadata.kind != FileKind::kRegular) {
      ++tally.others;
      return;
    }
    ++tally.files;
    if (sent == 0 && metadata.size != 0) ++tally.unchanged;
    tally.sent += sent;
  }

  // A file that fails costs only itself; a link that fails, all that is left.
  template <typename Action>
  void guard(const std::string& path, const Action& action) {
    try {
      action();
    } catch (const FileFailure& failure) {
      fail(path, failure.what());
    } catch (const LinkFailure& failure) {
      throw LinkFailure(printable(path) + ": " + failure.what());
    }
  }

  void fail(const std::string& path, const std::string& why) {
    progress_.complain(printable(path) + ": " + why);
    ++failures_;
  }

  FileSender& sender_;
  Progress& progress_;
  std::size_t failures_ = 0;
};

}  // namespace

std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress) {
  Link link;
  Channel channel(link, sending.destination, [&stop] {
    if (stop) throw Stopped();
  });
  FileSender files(channel, stop);
  Sender sender(files, progress);
  for (auto const& path : sending.paths) {
    if (sending.trees)
      sender.send_tree(path);
    else
      sender.send_single(path);
  }
  return sender.failures();
}

}  // namespace stp::files
