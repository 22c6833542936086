// SPDX-License-Identifier: BSD-3-Clause
// What a receiver has of what a sender sends.
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <fstream>
#include <future>
#include <tuple>

#include "libst/os/unique_fd.h"
#include "tests/files/transfer_fixture.h"
#include "tests/unprivileged.h"
#include "tools/files/note.h"

namespace stp::files {
namespace {

TEST_F(TransferTest, files_of_every_size_arrive) {
  const std::vector<std::size_t> sizes{0, 1, 5, 1024, kChunk - 1, kChunk, kChunk + 1, 5'000'000};
  {
    Client client(stop_sender_);
    for (const auto size : sizes)
      EXPECT_EQ(client.send(FileReader::single(make_file("f" + std::to_string(size), size))), size);
  }
  await_receiver();
  EXPECT_TRUE(complete_);
  for (const auto size : sizes) EXPECT_TRUE(arrived("f" + std::to_string(size))) << size;
}

// The receiver's directory is a disk of a MiB.
class SmallDiskTest : public TransferTest {
 protected:
  SmallDiskTest() : TransferTest(true, [](ReceiverContext& context) { mount_at(context); }) {
    struct statvfs space {};
    small_ = ::statvfs(context_.directory.c_str(), &space) == 0 &&
             space.f_blocks * space.f_frsize == kRoom;
  }
  ~SmallDiskTest() override {
    if (small_) ::umount2(context_.directory.c_str(), MNT_DETACH);
  }
  // For this thread, and those that it starts.
  static void mount_at(const ReceiverContext& context) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return;
    ::mount("", context.directory.c_str(), "tmpfs", 0, "size=1m");
  }
  static constexpr std::uint64_t kRoom = std::uint64_t{1} << 20;
  bool small_ = false;
};

TEST_F(SmallDiskTest, has_too_little_room_for_all_files_which_is_told_before_they_come) {
  if (!small_) GTEST_SKIP() << "only root may mount a small disk";
  const ErrorLog log(directory_.path() + "/log");
  Client client(stop_sender_);
  for (const char* name : {"a", "b", "c"})
    client.sender.offer(FileReader::single(make_file(name, 400'000)));
  client.sender.finish();
  EXPECT_TRUE(
      log.says("the receiver's directory has room for 1048576 bytes, and what is to come "
               "takes 12"));
  EXPECT_NE(client.failure.find("not enough space"), std::string::npos) << client.failure;
}

TEST_F(SmallDiskTest, is_asked_how_much_room_it_has_where_nothing_is_sent) {
  if (!small_) GTEST_SKIP() << "only root may mount a small disk";
  const ErrorLog log(directory_.path() + "/log");
  Client client(stop_sender_);
  for (const char* name : {"a", "b", "c"}) {
    auto file = FileReader::single(make_file(name, 400'000), "missing/" + std::string(name));
    file.only_ask();
    client.sender.offer(std::move(file));
  }
  client.sender.finish();
  EXPECT_TRUE(log.says("the receiver's directory has room for 1048576 bytes"));
}

TEST_F(SmallDiskTest, has_room_for_one_after_the_other_and_for_what_is_mostly_a_hole) {
  if (!small_) GTEST_SKIP() << "only root may mount a small disk";
  const ErrorLog log(directory_.path() + "/log");
  Client client(stop_sender_);
  for (const char* name : {"a", "b"})
    EXPECT_EQ(client.send(FileReader::single(make_file(name, 400'000))), 400'000U);
  for (const char* name : {"c", "d"}) {
    const auto path = make_file(name, 1'000);
    std::filesystem::resize_file(path, 200'000);
    client.sender.offer(FileReader::single(path));
  }
  client.sender.finish();
  EXPECT_EQ(client.failure, "");
  EXPECT_FALSE(log.says("has room for"));
}

// As standard input from a terminal, or from a program that has nothing to say for a while.
TEST_F(TransferTest, a_stream_of_which_nothing_comes_does_not_keep_the_sender_from_ending) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd out(pipe[0]);
  os::UniqueFd in(pipe[1]);
  auto sender = std::async(std::launch::async, [&] {
    Client client(stop_sender_);
    client.send(FileReader::stream(out.get(), "stream"));
  });
  ASSERT_EQ(::write(in.get(), "x", 1), 1);
  int unread = 1;
  while (unread != 0 && ::ioctl(out.get(), FIONREAD, &unread) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop_sender_ = true;
  EXPECT_EQ(sender.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  in.reset();
  EXPECT_THROW(sender.get(), Stopped);
}

// So the time without progress begins anew while one long file is under way.
TEST_F(TransferTest, a_sender_tells_how_much_of_a_file_has_reached_the_receiver) {
  constexpr std::uint64_t kSize = 20'000'000;
  Client client(stop_sender_);
  std::set<std::uint64_t> reached;
  client.sender.tell_of_more([&] { reached.insert(client.sender.reached()); });
  client.send(FileReader::single(make_file("file", kSize)));
  EXPECT_GT(reached.size(), 3U) << "also half way";
  EXPECT_EQ(*reached.rbegin(), kSize + 1);
  client.send(FileReader::single((directory_ / "file").string()));
  EXPECT_EQ(*reached.rbegin(), 2 * kSize + 2) << "unchanged";
}

TEST_F(TransferTest, a_file_that_is_refused_costs_only_itself) {
  std::filesystem::create_directory(directory_ / "out/taken");
  const auto good = make_file("good", 100'000);
  Client client(stop_sender_);
  EXPECT_THROW(client.send(FileReader::single(make_file("taken", 10))), FileFailure);
  client.send(FileReader::single(good));
  EXPECT_TRUE(arrived("good"));
}

// Small ones go in packs, large ones alone.
TEST_F(TransferTest, a_file_that_changed_before_its_turn_arrives_as_it_is_then) {
  {
    Client client(stop_sender_);
    for (const auto& [name, before, after] :
         {std::tuple("grown", 100U, 500'000U), std::tuple("grown_a_bit", 100U, 200U),
          std::tuple("shrunk", 500'000U, 100U), std::tuple("emptied", 200'000U, 0U)}) {
      const auto path = make_file(name, before);
      auto file = FileReader::single(path);
      make_file("new", after);
      std::filesystem::permissions(directory_ / "new", std::filesystem::perms(0640));
      std::filesystem::rename(directory_ / "new", path);
      EXPECT_EQ(client.send(std::move(file)), after) << name;
    }
  }
  await_receiver();
  EXPECT_TRUE(complete_);
  for (const std::string name : {"grown", "grown_a_bit", "shrunk", "emptied"}) {
    EXPECT_TRUE(arrived(name)) << name;
    EXPECT_EQ(std::filesystem::last_write_time(directory_ / ("out/" + name)),
              std::filesystem::last_write_time(directory_ / name));
    EXPECT_EQ(std::filesystem::status(directory_ / ("out/" + name)).permissions(),
              std::filesystem::perms(0640) & std::filesystem::perms(permitted(0777)));
  }
}

TEST_F(TransferTest, a_file_that_is_changed_in_place_while_it_is_sent_arrives_whole) {
  const auto path = make_file("file", 4'000'000);
  std::thread writer([&] {
    const auto begun = [this] {
      for (const auto& entry : std::filesystem::directory_iterator(directory_ / "out"))
        if (std::filesystem::file_size(entry) > 1'000'000) return true;
      return false;
    };
    while (!begun()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::fstream(path, std::ios::in | std::ios::out).put('~');
  });
  Client client(stop_sender_);
  client.pace = Pace(20'000'000);
  client.send(FileReader::single(path));
  writer.join();
  EXPECT_TRUE(arrived("file"));
}

// It costs only itself.
TEST_F(TransferTest, a_file_that_changes_again_and_again_is_an_error) {
  const auto path = make_file("file", 3'000'000);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::fstream file(path, std::ios::in | std::ios::out);
    while (!done) {
      file.seekp(0).put('~').flush();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  {
    Client client(stop_sender_);
    client.pace = Pace(50'000'000);
    EXPECT_THROW(client.send(FileReader::single(path)), FileFailure);
    client.pace = Pace();
    client.send(FileReader::single(make_file("next", 10)));
  }
  done = true;
  writer.join();
  await_receiver();
  EXPECT_FALSE(complete_);
  EXPECT_TRUE(arrived("next"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out/file"));
}

TEST_F(TransferTest, a_file_without_a_true_size_arrives_with_its_content) {
  Client client(stop_sender_);
  EXPECT_GT(client.send(FileReader::single("/proc/sys/kernel/ostype")), 0U);
  EXPECT_EQ(directory_.content("out/ostype"), "Linux\n");
  const std::string in_pages = "/sys/kernel/kexec_loaded";  // says that it has 4096 bytes
  if (!std::filesystem::exists(in_pages)) GTEST_SKIP() << "no " << in_pages;
  EXPECT_EQ(client.send(FileReader::single(in_pages)), 2U);
}

TEST_F(TransferTest, a_sender_that_stops_half_way_leaves_what_can_be_resumed) {
  const auto path = make_file("file", 8'000'000);
  std::thread stopper([this] {
    const auto begun = [this] {
      for (const auto& entry : std::filesystem::directory_iterator(directory_ / "out"))
        if (std::filesystem::file_size(entry) > 1'000'000) return true;
      return false;
    };
    while (!begun()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop_sender_ = true;
  });
  EXPECT_THROW(
      {
        Client client(stop_sender_);
        client.pace = Pace(8'000'000);
        client.send(FileReader::single(path));
      },
      Stopped);
  stopper.join();
  await_receiver();
  EXPECT_FALSE(complete_);
  stop_sender_ = false;
  receiver_.reset();
  receiver_.emplace(":3000", context_);
  thread_ = std::thread([this] { complete_ = receiver_->run(true); });
  {
    Client client(stop_sender_);
    EXPECT_LT(client.send(FileReader::single(path)), 7'500'000U);
  }
  await_receiver();
  EXPECT_TRUE(arrived("file"));
}

TEST_F(TransferTest, thousands_of_files_arrive_and_the_second_time_none_is_sent) {
  constexpr int kFiles = kMostOffered + 100;  // more than may be in progress
  std::filesystem::create_directories(directory_ / "tree");
  for (int i = 0; i < kFiles; ++i) {
    const auto below = "tree/d" + std::to_string(i % 100);
    std::filesystem::create_directories(directory_ / below);
    make_file(below + "/f" + std::to_string(i), static_cast<std::size_t>(i % 300));
  }
  make_file("tree/large", 3'000'000);
  make_file("tree/middle", kMostPacked + 1);
  Client client(stop_sender_);
  const auto send = [&] {
    client.sent = 0;
    walk_tree((directory_ / "tree").string(), "tree", {},
              [&](const TreeEntry& entry) { client.sender.offer(FileReader::in_tree(entry)); },
              [&](const std::string& path, const std::string&) { FAIL() << path; });
    client.sender.finish();
    return client.sent;
  };
  EXPECT_GT(send(), 3'000'000U);
  EXPECT_EQ(client.failure, "");
  for (int i = 0; i < kFiles; i += 97)
    EXPECT_TRUE(arrived("tree/d" + std::to_string(i % 100) + "/f" + std::to_string(i))) << i;
  EXPECT_TRUE(arrived("tree/large"));
  EXPECT_TRUE(arrived("tree/middle"));
  EXPECT_EQ(send(), 0U);
  EXPECT_EQ(client.failure, "");
}

TEST_F(TransferTest, a_stream_arrives_under_the_name_that_it_is_given) {
  const auto path = make_file("stream", 3'000'000);
  os::UniqueFd const in(::open(path.c_str(), O_RDONLY));
  Client client(stop_sender_);
  EXPECT_EQ(client.send(FileReader::stream(in.get(), "stream")), 3'000'000U);
  EXPECT_TRUE(arrived("stream"));
}

TEST_F(TransferTest, a_tree_arrives_with_names_modes_times_and_links) {
  std::filesystem::create_directories(directory_ / "tree/sub/empty");
  make_file("tree/a", 100);
  make_file("tree/sub/b", 2'000'000);
  std::filesystem::create_symlink("../a", directory_ / "tree/sub/link");
  std::filesystem::permissions(directory_ / "tree/a", std::filesystem::perms(0640));
  std::filesystem::permissions(directory_ / "tree/sub", std::filesystem::perms(0710));
  const auto then = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000);
  for (const auto* name : {"tree/a", "tree/sub/b", "tree/sub"})
    std::filesystem::last_write_time(directory_ / name, then);

  Sending sending;
  sending.paths = {(directory_ / "tree").string()};
  sending.destination = "localhost:3000";
  sending.trees = true;
  EXPECT_EQ(send_all(sending, stop_sender_, progress_), 0U);
  await_receiver();
  EXPECT_TRUE(complete_);
  for (const auto* name : {"tree/a", "tree/sub/b"}) EXPECT_TRUE(arrived(name)) << name;
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "out/tree/sub/empty"));
  EXPECT_EQ(std::filesystem::read_symlink(directory_ / "out/tree/sub/link"), "../a");
  for (const auto* name : {"tree/a", "tree/sub/b", "tree/sub"}) {
    const auto copy = directory_ / (std::string("out/") + name);
    EXPECT_EQ(std::filesystem::last_write_time(copy), then) << name;
    EXPECT_EQ(std::filesystem::status(copy).permissions(),
              std::filesystem::status(directory_ / name).permissions())
        << name;
  }
}

// Each batch is settled with the disk in another thread, which tells when it is done.
class FewDescriptorsTest : public TransferTest {
 protected:
  FewDescriptorsTest()
      : TransferTest(true, [](ReceiverContext& context) {
          context.descriptors = descriptors_within(64, context.most_senders);
        }) {}
};

TEST_F(FewDescriptorsTest, many_directories_arrive) {
  constexpr int kDirectories = 150;
  Sending sending;
  sending.paths = {(directory_ / "tree").string()};
  sending.destination = "localhost:3000";
  sending.trees = true;
  for (int i = 0; i < kDirectories; ++i) {
    const auto name = "tree/" + std::to_string(i);
    std::filesystem::create_directories(directory_ / name);
    std::ofstream(directory_ / (name + "/file")) << i;
  }
  EXPECT_EQ(send_all(sending, stop_sender_, progress_), 0U);
  await_receiver();
  EXPECT_TRUE(complete_);
}

class NamesOfOneFile : public TransferTest {
 protected:
  void send_tree_with_names(const std::vector<std::string>& paths = {"tree"}) {
    Sending sending;
    for (const auto& path : paths) sending.paths.push_back((directory_ / path).string());
    sending.destination = "localhost:3000";
    sending.trees = sending.hard_links = true;
    const ErrorLog log(directory_ / "said");
    EXPECT_EQ(send_all(sending, stop_sender_, progress_), 0U);
    await_receiver();
  }
};

TEST_F(NamesOfOneFile, are_so_where_arguments_overlap) {
  std::filesystem::create_directories(directory_ / "tree/sub");
  make_file("tree/sub/a", 100);
  std::filesystem::create_hard_link(directory_ / "tree/sub/a", directory_ / "tree/sub/b");
  send_tree_with_names({"tree", "tree/sub"});
  for (const std::string name : {"tree/sub/b", "sub/a", "sub/b"})
    EXPECT_TRUE(
        std::filesystem::equivalent(directory_ / "out/tree/sub/a", directory_ / ("out/" + name)))
        << name;
}

TEST_F(NamesOfOneFile, arrive_as_such) {
  std::filesystem::create_directories(directory_ / "tree/sub");
  make_file("tree/small", 100);
  make_file("tree/large", 1'000'000);
  make_file("outside", 10);
  for (const auto& [to, from] :
       {std::pair("tree/sub/small", "tree/small"), std::pair("tree/sub/large", "tree/large"),
        std::pair("tree/z", "tree/small"), std::pair("tree/inside", "outside")})
    std::filesystem::create_hard_link(directory_ / from, directory_ / to);
  send_tree_with_names();
  const auto are_one = [this](const std::string& name, const std::string& other) {
    return std::filesystem::equivalent(directory_ / ("out/" + name), directory_ / ("out/" + other));
  };
  EXPECT_TRUE(are_one("tree/small", "tree/sub/small"));
  EXPECT_TRUE(are_one("tree/small", "tree/z"));
  EXPECT_TRUE(are_one("tree/large", "tree/sub/large"));
  EXPECT_EQ(std::filesystem::hard_link_count(directory_ / "out/tree/inside"), 1U);
  for (const std::string name : {"tree/sub/small", "tree/sub/large", "tree/inside"})
    EXPECT_TRUE(arrived(name)) << name;
}

// All further names come after all files: more than may be under way.
TEST_F(NamesOfOneFile, arrive_by_thousands) {
  constexpr int kFiles = 2'100;
  std::filesystem::create_directories(directory_ / "tree");
  for (int i = 0; i < kFiles; ++i) {
    const auto number = std::to_string(i);
    std::ofstream(directory_ / ("tree/a" + number)) << i;
    std::filesystem::create_hard_link(directory_ / ("tree/a" + number),
                                      directory_ / ("tree/z" + number));
  }
  send_tree_with_names();
  for (int i = 0; i < kFiles; i += 7) {
    const auto number = std::to_string(i);
    EXPECT_TRUE(std::filesystem::equivalent(directory_ / ("out/tree/a" + number),
                                            directory_ / ("out/tree/z" + number)))
        << i;
    EXPECT_TRUE(arrived("tree/z" + number)) << i;
  }
}

TEST_F(TransferTest, of_a_file_only_what_is_missing_is_sent) {
  const auto path = make_file("file", 3'000'000);
  stop_sender_ = false;
  {
    Client client(stop_sender_);
    const auto again = [&](bool checksum) {
      auto reader = FileReader::single(path);
      if (checksum) reader.ask_for_checksum();
      return client.send(std::move(reader));
    };
    EXPECT_EQ(again(false), 3'000'000U);
    EXPECT_EQ(again(false), 0U);
    EXPECT_EQ(again(true), 0U);
    // The same size and time, but another content: only the digest differs.
    const auto time = std::filesystem::last_write_time(path);
    std::fstream(path, std::ios::in | std::ios::out).put('~');
    std::filesystem::last_write_time(path, time);
    EXPECT_EQ(again(false), 0U);
    EXPECT_EQ(again(true), 3'000'000U);
  }
  await_receiver();
  EXPECT_TRUE(arrived("file"));
}

TEST_F(TransferTest, holes_stay_holes_and_are_not_sent) {
  constexpr std::uint64_t kSize = std::uint64_t{3} << 30;  // longer than one note may say
  const auto path = make_file("file", 100'000);
  std::filesystem::resize_file(path, kSize / 2);
  std::ofstream(path, std::ios::app) << "middle";
  std::filesystem::resize_file(path, kSize);
  struct statvfs space {};
  if (::statvfs((directory_ / "out").c_str(), &space) == 0 && !has_room(space, kSize))
    GTEST_SKIP() << "no room for a file of that length";
  Client client(stop_sender_);
  EXPECT_LT(client.send(FileReader::single(path)), 10'000'000U);
  struct stat found {};
  ASSERT_EQ(::stat((directory_ / "out/file").c_str(), &found), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(found.st_size), kSize);
  EXPECT_LT(found.st_blocks * 512, 10'000'000);
  std::ifstream copy(directory_ / "out/file", std::ios::binary);
  std::string text(6, ' ');
  copy.seekg(kSize / 2).read(text.data(), 6);
  EXPECT_EQ(text, "middle");
  EXPECT_EQ(client.send(FileReader::single(path)), 0U);
  EXPECT_EQ(client.unchanged, 1U);
}

TEST_F(TransferTest, an_empty_file_that_is_there_is_unchanged_as_any_other) {
  const auto empty = make_file("empty", 0), other = make_file("other", 1);
  Client client(stop_sender_);
  for (const auto& path : {empty, other}) client.send(FileReader::single(path));
  EXPECT_EQ(client.unchanged, 0U);
  for (const bool checksum : {false, true}) {
    for (const auto& path : {empty, other}) {
      auto reader = FileReader::single(path);
      if (checksum) reader.ask_for_checksum();
      EXPECT_EQ(client.send(std::move(reader)), 0U) << path;
    }
  }
  EXPECT_EQ(client.unchanged, 4U);
}

TEST_F(TransferTest, a_file_or_a_tree_arrives_under_the_name_that_it_is_given) {
  Sending sending;
  sending.destination = "localhost:3000";
  sending.name = "there/under";
  sending.paths = {make_file("file", 100)};
  // The receiver serves one sender.
  Client client(stop_sender_);
  client.send(FileReader::single(sending.paths[0], name_there(sending, sending.paths[0])));
  EXPECT_EQ(directory_.content("out/there/under"), directory_.content("file"));
  EXPECT_EQ(name_there(sending, "a/tree"), "there/under");
}

class DeletionTest : public TransferTest {
 protected:
  explicit DeletionTest(bool allowed = true)
      : TransferTest(false,
                     [allowed](ReceiverContext& context) { context.allow_delete = allowed; }) {
    for (const auto* name : {"tree/sub", "out/tree/sub/old", "out/tree/empty", "out/other"})
      std::filesystem::create_directories(directory_ / name);
    for (const auto* name : {"tree/a", "tree/sub/b", "out/tree/sub/gone", "out/tree/sub/old/file",
                             "out/tree/keep.o", "out/other/file"})
      std::ofstream(directory_ / name) << name;
    sending_.paths = {(directory_ / "tree").string()};
    sending_.destination = "localhost:3000";
    sending_.trees = sending_.remove = true;
    sending_.rules = {{false, "*.o"}};
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(directory_ / ("out/" + name));
  }
  std::size_t send() { return send_all(sending_, stop_sender_, progress_); }
  static void list(Client& client, const std::string& path) {
    client.sender.names_there(path, [](const NameThere&) {});
  }
  static void remove(Client& client, const std::string& path, const std::string& name) {
    NamesToRemove names;
    names.add(name);
    client.sender.remove_there(path, names);
  }

  Sending sending_;
};

TEST_F(DeletionTest, what_the_tree_does_not_have_goes_and_nothing_else) {
  sending_.dry = true;
  EXPECT_EQ(send(), 0U);
  EXPECT_TRUE(exists("tree/sub/gone"));
  sending_.dry = false;
  const auto then = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000);
  std::filesystem::last_write_time(directory_ / "tree/sub", then);
  EXPECT_EQ(send(), 0U);
  for (const auto* name : {"tree/a", "tree/sub/b", "tree/keep.o", "other/file"})
    EXPECT_TRUE(exists(name)) << name;
  for (const auto* name : {"tree/sub/gone", "tree/sub/old", "tree/empty"})
    EXPECT_FALSE(exists(name)) << name;
  EXPECT_EQ(std::filesystem::last_write_time(directory_ / "out/tree/sub"), then);
}

TEST_F(DeletionTest, the_receiver_s_directory_itself_is_cleaned_for_a_tree_without_a_name) {
  sending_.paths = {(directory_ / "tree/.").string()};
  EXPECT_EQ(send(), 0U);
  EXPECT_FALSE(exists("tree"));
  EXPECT_FALSE(exists("other"));
  EXPECT_TRUE(exists("sub/b"));
}

TEST_F(DeletionTest, nothing_goes_when_not_everything_has_arrived) {
  std::filesystem::create_directory_symlink("old", directory_ / "tree/sub/link");
  std::filesystem::create_directory(directory_ / "tree/dir");
  std::ofstream(directory_ / "tree/dir/file") << 1;
  std::filesystem::create_directory_symlink("sub", directory_ / "out/tree/dir");
  EXPECT_EQ(send(), 2U) << "no link is followed";
  EXPECT_TRUE(exists("tree/sub/gone"));
}

TEST_F(DeletionTest, a_directory_in_the_way_of_a_file_goes) {
  for (const auto* name : {"a", "sub/b"}) {
    std::filesystem::remove(directory_ / "out/tree" / name);
    std::filesystem::create_directories(directory_ / "out/tree" / name / "deep/down");
  }
  sending_.dry = true;
  EXPECT_EQ(send(), 0U);
  EXPECT_TRUE(exists("tree/a/deep/down"));
  sending_.dry = sending_.remove = false;
  EXPECT_EQ(send(), 2U) << "not unless it was asked for";
  EXPECT_TRUE(exists("tree/a/deep/down"));
  stop_receiver_ = true;
  await_receiver();
  EXPECT_FALSE(complete_);
  sending_.remove = true;
  const ErrorLog log(directory_ / "said");
  serve_one();
  EXPECT_EQ(send(), 0U);
  await_receiver();
  EXPECT_TRUE(complete_) << "what came on the second try has come";
  EXPECT_FALSE(log.says("Is a directory"));
  for (const auto* name : {"tree/a", "tree/sub/b"})
    EXPECT_EQ(directory_.content("out/" + std::string(name)), directory_.content(name));
  EXPECT_FALSE(exists("tree/sub/gone"));
}

// A dry run, and one that finds nothing to delete.
// A symbolic link, for example: said once on each side, and not for each of the files.
TEST_F(DeletionTest, something_else_where_a_directory_goes_is_named_once) {
  std::filesystem::remove_all(directory_ / "out/tree/sub");
  std::filesystem::create_symlink("/nowhere", directory_ / "out/tree/sub");
  for (int i = 0; i < 9; ++i) std::ofstream(directory_ / "tree/sub" / std::to_string(i)) << i;
  sending_.remove = false;
  const auto lines = [this](bool dry) {
    const auto said = directory_ / (dry ? "dry" : "said");
    sending_.dry = dry;
    {
      const ErrorLog log(said);
      EXPECT_EQ(send(), 11U);
    }
    std::ifstream in(said);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  };
  const auto once = lines(true);
  ASSERT_EQ(once.size(), 1U);
  EXPECT_EQ(once[0].find("test: tree/sub: the receiver cannot write into it: Not a directory"), 0U)
      << once[0];
  EXPECT_EQ(lines(false).size(), 2U) << "the receiver's line and the sender's";
  EXPECT_TRUE(exists("tree/a"));
}

TEST_F(DeletionTest, looking_for_names_changes_no_permissions) {
  const auto out = (directory_ / "out").string();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(out.c_str(), 65534, 65534), 0);
  }
  const test::Unprivileged unprivileged(directory_.path());
  std::filesystem::create_directory(directory_ / "mine");
  std::ofstream(directory_ / "mine/file") << 1;
  const auto read_only = std::filesystem::perms{0555};
  std::filesystem::permissions(directory_ / "mine", read_only);
  sending_.paths = {(directory_ / "mine").string()};
  for (const auto dry : {false, true, false}) {
    sending_.dry = dry;
    EXPECT_EQ(send(), 0U);
    EXPECT_EQ(std::filesystem::status(directory_ / "out/mine").permissions(), read_only);
  }
  for (const auto* name : {"mine", "out/mine"})
    std::filesystem::permissions(directory_ / name, std::filesystem::perms::owner_all);
}

TEST_F(DeletionTest, directories_that_are_closed_to_the_receiver_s_user_are_cleaned_too) {
  const auto out = (directory_ / "out").string();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(out.c_str(), 65534, 65534), 0);
  }
  const test::Unprivileged unprivileged(directory_.path());
  std::filesystem::create_directories(directory_ / "mine/sub");
  for (const auto* name : {"mine/file", "mine/sub/gone"}) std::ofstream(directory_ / name) << 1;
  sending_.paths = {(directory_ / "mine").string()};
  sending_.modes = ModeChanges::parse("D0");
  EXPECT_EQ(send(), 0U);
  std::filesystem::remove(directory_ / "mine/sub/gone");
  EXPECT_EQ(send(), 0U);
  const auto none = std::filesystem::perms::none, all = std::filesystem::perms::owner_all;
  const auto mine = directory_ / "out/mine", sub = directory_ / "out/mine/sub";
  EXPECT_EQ(std::filesystem::status(mine).permissions(), none);
  std::filesystem::permissions(mine, all);
  EXPECT_EQ(std::filesystem::status(sub).permissions(), none);
  std::filesystem::permissions(sub, all);
  EXPECT_FALSE(exists("mine/sub/gone"));
}

class NoDeletionTest : public DeletionTest {
 protected:
  NoDeletionTest() : DeletionTest(false) {}
};

TEST_F(NoDeletionTest, a_receiver_deletes_and_lists_nothing_unless_it_was_told_to) {
  EXPECT_EQ(send(), 1U);
  EXPECT_TRUE(exists("tree/sub/gone"));
  EXPECT_TRUE(exists("tree/sub/b")) << "the rest has arrived";
  Client client(stop_sender_);
  EXPECT_THROW(list(client, "other"), FileFailure);
  EXPECT_THROW(remove(client, "", "other"), FileFailure);
  EXPECT_TRUE(exists("other/file"));
}

TEST_F(DeletionTest, no_path_leads_out_of_the_receiver_s_directory) {
  std::ofstream(directory_ / "secret") << 1;
  std::filesystem::create_directory_symlink("..", directory_ / "out/up");
  Client client(stop_sender_);
  EXPECT_THROW(list(client, ".."), FileFailure);
  EXPECT_THROW(list(client, "up"), FileFailure);
  EXPECT_THROW(remove(client, "up", "secret"), FileFailure);
  EXPECT_THROW(remove(client, "other", "../../secret"), LinkFailure);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "secret"));
}

std::string why_no_channel(const char* link_text, const std::string& peer) {
  ::setenv("STP_LINK", link_text, 1);
  FileLink link;
  try {
    const Channel channel(link, peer, [] {}, {.receiver = std::chrono::milliseconds(300)});
  } catch (const LinkFailure& failure) {
    return failure.what();
  }
  return "a connection with nobody";
}

// The link knows the cause.
TEST(OverUdp, a_failure_to_connect_says_why) {
  const auto closed = why_no_channel("udp:127.0.0.1,port=0", "127.0.0.1/11:3000");
  EXPECT_NE(closed.find("127.0.0.1/11 has no socket for that port"), std::string::npos) << closed;
  const auto six = why_no_channel("udp:127.0.0.1,port=0", "[2001:db8::1]:3000");
  EXPECT_NE(six.find("has an IPv6 address only"), std::string::npos) << six;
  EXPECT_EQ(six.find("MAC"), std::string::npos) << six;
  EXPECT_EQ((closed + six).find("Ethernet"), std::string::npos);
}

}  // namespace
}  // namespace stp::files
