// SPDX-License-Identifier: BSD-3-Clause
// stpd --check: each mistake of a file is named with its line and with what would be right.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/stpd/program.h"
#include "tests/temporary_directory.h"

namespace stp::stpd {
namespace {

class StpdCheck : public testing::Test {
 protected:
  // Its exit status.
  int check(const std::string& text) {
    std::ofstream(config) << text;
    return check_file(config);
  }
  int check_file(const std::string& path) {
    program = std::make_unique<test::Program>(std::vector<std::string>{STPD_PATH, "--check", path});
    return program->wait();
  }
  bool says(const std::string& what) const {
    return program->output().find(what) != std::string::npos;
  }
  // `line` 0: of the whole file
  bool says(int line, const std::string& what) const {
    const auto& said = program->output();
    const auto begin = config + (line == 0 ? "" : ":" + std::to_string(line)) + ": ";
    for (auto at = said.find(begin); at != std::string::npos; at = said.find(begin, at + 1))
      if (said.substr(at, said.find('\n', at) - at).find(what) != std::string::npos) return true;
    return false;
  }
  // Of one line that is wrong below a first one that is right.
  void refuses(const std::string& line, const std::string& remedy) {
    EXPECT_EQ(check("link = loop\n" + line + "\n"), 1) << line;
    EXPECT_TRUE(says(2, remedy)) << line << ": " << program->output();
  }

  test::TemporaryDirectory directory;
  const std::string config = directory.path() + "/stpd.conf";
  std::unique_ptr<test::Program> program;
};

// One that is no configuration at all, say.
TEST_F(StpdCheck, ShowsNothingOfAFileThatControlsTheTerminal) {
  EXPECT_EQ(check("link = loop\na\033[31mb = 1\nuser = \033]0;c\007\n\xff\n"), 1);
  EXPECT_TRUE(says(2, "there is no option 'a?[31mb' here")) << program->output();
  EXPECT_TRUE(says(3, "--user ?]0;c?: there is no such user")) << program->output();
  EXPECT_TRUE(says(4, "'?' is no option")) << program->output();
}

TEST_F(StpdCheck, NamesTheLineWhereAListOrQuotesBeginThatDoNotEnd) {
  EXPECT_EQ(check("lisen = all:7\nlink = loop\nlisten = [\n  all:1,\n  \nsocket = /run/x\n"), 1);
  EXPECT_TRUE(says(1, "did you mean 'listen'?")) << program->output();
  EXPECT_TRUE(says(3, "a list begins here and does not end")) << program->output();
  EXPECT_EQ(program->output().find(":6:"), std::string::npos) << program->output();
  EXPECT_EQ(check("link = \"loop\nlisten = all:7\n"), 1);
  EXPECT_TRUE(says(1, "the quotes of link do not end")) << program->output();
  EXPECT_FALSE(says("where no link is")) << program->output();
}

TEST_F(StpdCheck, NamesEveryMistakeWithItsLineAndRemedy) {
  EXPECT_EQ(check("log-level = loud\n"
                  "frobnicate = 1\n"
                  "link = iface:eth0,mtu=9000\n"
                  "cpus = 77777\n"
                  "listen = [\"user:no-such-user-here:1\", \"all:7-3\",\n"
                  "          \"all:2\", \"group:no-such-group-here:1\"]\n"
                  "[links.a]\n"
                  "[link.b]\n"
                  "link = \"loop,frob=1\"\n"
                  "log-format = json\n"
                  "poll = busy\n"
                  "poll = busy\n"
                  "hello\n"),
            1);
  EXPECT_TRUE(says(1, "error|warning|info|debug")) << program->output();
  EXPECT_TRUE(says(2, "there is no option 'frobnicate' here; there are: link, "))
      << program->output();
  EXPECT_TRUE(says(3, "double quotes")) << program->output();
  EXPECT_TRUE(says(4, "write numbers")) << program->output();
  for (const auto* wrong :
       {"no user 'no-such-user-here'", "'all:7-3'", "no group 'no-such-group-here'"})
    EXPECT_TRUE(says(6, wrong)) << program->output();
  EXPECT_TRUE(says(7, "[link.NAME]")) << program->output();
  EXPECT_TRUE(says(9, "frob")) << program->output();
  EXPECT_TRUE(says(10, "move it above")) << program->output();
  EXPECT_TRUE(says(12, "line 11")) << program->output();
  EXPECT_TRUE(says(13, "name = value")) << program->output();
}

TEST_F(StpdCheck, FindsWhatWouldFailLater) {
  const auto finds = [&](const std::string& text, int line, const std::string& what) {
    EXPECT_EQ(check(text + "\n"), 1) << text;
    EXPECT_TRUE(says(line, what)) << text << ": " << program->output();
  };
  finds("link = loop\nsocket = run/stpd.sock", 2, "beginning with /");
  finds("link = loop\npcap = trace.pcapng", 2, "beginning with /");
  finds("link = loop\npcap = /nowhere/at/all/trace.pcapng", 2, "no directory /nowhere/at/all");
  const std::string two = "[link.a]\nlink = \"iface:eth0\"\n[link.b]\nlink = \"iface:eth0";
  finds(two + ",mtu=1500\"", 4, "'a' and 'b' are on one device");
  EXPECT_EQ(check(two + ",mac=02:00:00:00:00:07\"\n"), 0) << program->output();
  const auto pair = [](const std::string& one, const std::string& other) {
    return "[link.a]\nlink = \"" + one + "\"\n[link.b]\nlink = \"" + other + "\"\n";
  };
  finds(pair("udp:", "udp:127.0.0.1"), 4, "have one UDP port");
  finds(pair("ip:", "ip:127.0.0.1"), 4, "have one address");
  EXPECT_EQ(check(pair("ip:", "ip:[::1]")), 0) << program->output();
  for (const auto* other : {"udp:127.0.0.1", "udp:eth0", "udp:", "udp:[::]"})
    finds(pair("udp:0.0.0.0", other), 4, "have one UDP port");
  finds(pair("udp:[::1]", "udp:[0::1]"), 4, "have one UDP port");
  finds(pair("udp:eth0", "udp:127.0.0.1"), 4, "have one UDP port");
  EXPECT_EQ(check(pair("udp:eth0", "udp:eth1")), 0) << program->output();
  for (const auto* other : {"udp:[::1]", "udp:::1"})
    EXPECT_EQ(check(pair("udp:0.0.0.0", other)), 0) << program->output();
  EXPECT_EQ(check(pair("ip:", "ip:::1")), 0) << program->output();
  finds(pair("udp:[::1]", "udp:::"), 4, "have one UDP port");
  finds(pair("ip:::1", "ip:[::]"), 4, "have one address");
  EXPECT_EQ(check(pair("udp:127.0.0.2", "udp:127.0.0.1")), 0) << program->output();
  EXPECT_EQ(check(pair("udp:,port=9000", "udp:")), 0) << program->output();
  finds(pair("memif:/x/m,role=server", "memif:/x/m,role=server"), 4, "serve one memif");
  EXPECT_EQ(check(pair("memif:/x/m,role=server", "memif:/x/m,role=server,id=1")), 0)
      << program->output();
  finds("link = loop\nsocket = /nowhere/at/all.sock", 2, "no directory /nowhere");
  finds("listen = []\nlink = loop", 1, "lets everybody listen");
  EXPECT_EQ(check("listen = \"user:root:1\"\nlink = loop\n"), 0) << program->output();
  finds("pcap = /x.pcapng\n[link.a]\nlink = loop", 1, "write it into the section of its link");
  EXPECT_EQ(check("poll = busy\n[link.a]\nlink = loop\n"), 0) << program->output();
  finds("group = root\nlink = loop", 1, "--group is for --user");
  finds("user = root", 0, "no link");
  const auto pcap = "pcap = \"" + directory.path() + "/trace.pcapng\"\n";
  EXPECT_EQ(check("link = loop\n" + pcap), 0) << program->output();
  finds("[link.a]\nlink = loop\n" + pcap + "[link.b]\nlink = loop\n" + pcap, 6,
        "the pcap file of link 'b' is the pcap file of link 'a'");
}

// However they are named, and of whatever kind.
TEST_F(StpdCheck, NoFileIsWrittenOrMadeTwice) {
  const auto& folder = directory.path();
  std::filesystem::create_symlink(folder, folder + "/other");
  std::filesystem::create_symlink("trace", folder + "/dangling");
  std::filesystem::create_symlink("stpd.conf", folder + "/linked");
  const auto link = [](const std::string& name, const std::string& lines) {
    return "[link." + name + "]\nlink = loop\n" + lines + '\n';
  };
  const auto socket = "socket = " + folder + "/", pcap = "pcap = " + folder + "/";
  const auto finds = [&](const std::string& text, int line, const std::string& what) {
    EXPECT_EQ(check(text), 1) << text;
    EXPECT_TRUE(says(line, what)) << text << ": " << program->output();
  };
  for (const auto* name : {"stpd.conf", "./stpd.conf", "other/stpd.conf", "linked"})
    finds(link("a", pcap + name), 3, " is the configuration file, " + config);
  finds(link("a", socket + "stpd.conf"), 3, "the socket of link 'a' is the configuration file");
  finds(link("a", socket + "s") + link("b", socket + "./s"), 6,
        "the socket of link 'b', " + folder + "/./s, is the socket of link 'a', " + folder + "/s:");
  finds(link("a", pcap + "trace") + link("b", pcap + "dangling"), 6,
        "is the pcap file of link 'a'");
  finds(link("a", socket + "s\n" + pcap + "s"), 4, "is the socket of link 'a'");
  finds(link("a", socket + "s") + link("b", socket + "s.admin"), 6,
        "is the administrators' socket of link 'a'");
  const auto memif = "[link.m]\nlink = \"memif:" + folder + "/m,role=server\"\n";
  finds(memif + link("a", pcap + "m"), 5, "is the memif socket of link 'm'");
  EXPECT_EQ(check(link("a", pcap + "trace") + link("b", pcap + "another")), 0) << program->output();
  std::ofstream(config) << "link = loop\n";
  test::Program daemon({STPD_PATH, "--config", config, "--pcap", config});
  EXPECT_EQ(daemon.wait(), 2);
  EXPECT_TRUE(daemon.says("stpd: the pcap file of link 'stpd' is the configuration file"))
      << daemon.output();
  EXPECT_EQ(std::filesystem::file_size(config), 12U);
  const auto log = folder + "/log";
  std::ofstream(config) << link("a", pcap + "log");
  test::Program logs({"/bin/sh", "-c", STPD_PATH " --check " + config + " 2>" + log});
  EXPECT_EQ(logs.wait(), 1);
  EXPECT_NE(directory.content("log").find(":3: the pcap file of link 'a', " + log +
                                          ", is what stpd logs to, /dev/stderr:"),
            std::string::npos);
}

TEST_F(StpdCheck, WhatDriversOfVdevLinksWriteMakeAndTakeIsComparedToo) {
  const auto& folder = directory.path();
  const auto links = [](const std::string& one, const std::string& other) {
    return "[link.a]\nlink = \"" + one + "\"\n[link.b]\nlink = \"" + other + "\"\n";
  };
  const auto finds = [&](const std::string& text, int line, const std::string& what) {
    EXPECT_EQ(check(text), 1) << text;
    EXPECT_TRUE(says(line, what)) << text << ": " << program->output();
  };
  const auto fine = [&](const std::string& text) {
    EXPECT_EQ(check(text), 0) << text << program->output();
  };
  const auto out = "tx_pcap=" + folder + "/out", in = "rx_pcap=" + folder + "/";
  const auto first = "vdev:net_pcap0," + in + "in," + out;
  finds(links(first, "vdev:net_pcap0"), 4, "'a' and 'b' are one device: give one of them another");
  finds(links(first, "vdev:net_pcap1," + in + "in," + out), 4,
        "the tx_pcap file of link 'b' is the tx_pcap file of link 'a'");
  finds(links(first, "vdev:net_pcap1," + in + "out,tx_pcap=/dev/null"), 4,
        "the rx_pcap file of link 'b' is the tx_pcap file of link 'a'");
  finds(links(first, "loop") + "pcap = " + folder + "/out\n", 5,
        "the pcap file of link 'b' is the tx_pcap file of link 'a'");
  finds("link = \"vdev:net_pcap0,tx_pcap=" + config + "\"\n", 1,
        "the tx_pcap file of link 'stpd' is the configuration file");
  fine(links(first, "vdev:net_pcap1," + in + "in,tx_pcap=" + folder + "/other"));
  fine(links("vdev:net_pcap0,tx_pcap=/dev/null", "vdev:net_pcap1,tx_pcap=/dev/null"));
  fine("[link.a]\nlink = loop\npcap = /dev/null\n[link.b]\nlink = loop\npcap = /dev/null\n");
  const auto memif = "vdev:net_memif0,role=server,socket-abstract=no,socket=" + folder + "/m";
  finds(links(memif, "memif:" + folder + "/m,role=server"), 4,
        "the memif socket of link 'b' is the driver's socket of link 'a'");
  finds(links(memif, "vdev:net_memif1,role=server,socket-abstract=no,id=0,socket=" + folder + "/m"),
        4, "'a' and 'b' serve one memif");
  fine(links(memif, "vdev:net_memif1,role=server,socket-abstract=no,id=1,socket=" + folder + "/m"));
  fine(links(memif, "memif:" + folder + "/m,role=client"));
  finds(links("vdev:net_vhost0,iface=" + folder + "/v",
              "vdev:net_virtio_user0,server=1,path=" + folder + "/v"),
        4, "the driver's socket of link 'b' is the driver's socket of link 'a'");
  fine(links("vdev:net_vhost0,iface=" + folder + "/v",
             "vdev:net_virtio_user0,path=" + folder + "/v"));
  finds(links("iface:eth0", "vdev:net_af_packet0,iface=eth0"), 4, "are on one device");
  fine(links("iface:eth0", "vdev:net_af_packet0,iface=eth0,mac=02:00:00:00:00:07"));
  fine(links("iface:eth0", "vdev:net_pcap0,iface=eth0"));
  finds(links("vdev:net_tap0,iface=t", "vdev:net_tap1,iface=t"), 4, "make one interface");
}

TEST_F(StpdCheck, AnAddressThatStandsInTheLinkTooIsNamedAsWhatItIs) {
  EXPECT_EQ(check("[link.a]\nlink = \"loop,address=10.9.0.1/24\"\naddress = 10.9.0.2/24\n"), 1);
  EXPECT_TRUE(says(3, "has address= already: keep one of them")) << program->output();
  EXPECT_EQ(check("address = 10.9.0.1/24\nlink = \"udp:\"\n"), 1);
  EXPECT_TRUE(says(1, "--address 10.9.0.1/24: ")) << program->output();
}

// The line is not that of what the command line has put into its place.
TEST_F(StpdCheck, OfWhatTheCommandLineSaysNoLineIsNamed) {
  std::ofstream(config) << "link = loop\naddress = 10.9.0.1/24\n";
  test::Program daemon({STPD_PATH, "--config", config, "--link", "loop,address=10.9.0.1/24",
                        "--address", "1.2.3.4/8"});
  EXPECT_EQ(daemon.wait(), 2);
  EXPECT_NE(daemon.output().find("stpd: --address 1.2.3.4/8: "), std::string::npos)
      << daemon.output();
}

TEST_F(StpdCheck, NamesWhatIsInThePlaceOfTheSocketOrOfTheTrace) {
  const auto& folder = directory.path();
  std::ofstream(folder + "/file") << "text";
  EXPECT_EQ(check("link = loop\nsocket = " + folder + "\n"), 1);
  EXPECT_TRUE(says(2, "it is a directory: name a file in it, as " + folder + "/stpd.sock"))
      << program->output();
  EXPECT_EQ(check("link = loop\nsocket = " + folder + "/file\n"), 1);
  EXPECT_TRUE(says("a file that is no socket is there")) << program->output();
  EXPECT_EQ(check("link = loop\npcap = " + folder + "\n"), 1);
  EXPECT_TRUE(says("it is a directory: name a file in it")) << program->output();
  const auto socket = folder + "/a.sock";
  test::Program daemon({STPD_PATH, "--link", "loop", "--socket", socket});
  ASSERT_TRUE(daemon.says("ready")) << daemon.output();
  EXPECT_EQ(check("link = loop\nsocket = " + socket + "\n"), 0) << "a file in use is no mistake";
  EXPECT_TRUE(says("a daemon serves " + socket + " at present")) << program->output();
  test::Program second({STPD_PATH, "--link", "loop", "--socket", socket});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.output().find("another daemon answers there: stop it"), std::string::npos)
      << second.output();
  test::Program on_folder({STPD_PATH, "--link", "loop", "--socket", folder});
  EXPECT_EQ(on_folder.wait(), 1);
  EXPECT_NE(on_folder.output().find("it is a directory"), std::string::npos) << on_folder.output();
}

TEST_F(StpdCheck, TakesOptionsOfATraceOnlyWithOne) {
  for (const std::string option : {"pcap-frames = 3", "pcap-snap = 80", "pcap-buffer = 1M"}) {
    EXPECT_EQ(check("link = loop\n" + option + "\n"), 1) << option;
    EXPECT_TRUE(says(2, "is for a trace: name its file, too (--pcap)")) << program->output();
  }
}

TEST_F(StpdCheck, OfAGoodFileOpensNothing) {
  EXPECT_EQ(check("link = \"iface:nosuchinterface\"\n"), 0) << program->output();
  EXPECT_TRUE(says("nothing is wrong"));
}

TEST_F(StpdCheck, TakesAFileWithAByteOrderMark) {
  EXPECT_EQ(check("\xef\xbb\xbflink = loop\n"), 0) << program->output();
}

TEST_F(StpdCheck, AFileThatCannotBeReadIsNamedWithTheReason) {
  EXPECT_EQ(check_file(directory.path() + "/nowhere"), 1);
  EXPECT_TRUE(says("/nowhere: No such file")) << program->output();
  EXPECT_EQ(check_file(directory.path()), 1);
  EXPECT_TRUE(says("directory")) << program->output();
}

TEST_F(StpdCheck, TakesCountsThatAreWholeNumbersInTheirRange) {
  for (const std::string count : {"-1", "many", "1.5", "99999999999999999999", "\"1 000\""})
    refuses("max-clients = " + count, "whole number");
  for (const std::string share : {"0", "101", "half"})
    refuses("user-share = " + share, "user-share");
  refuses("total-mapped = 0", "a size above 0");
  EXPECT_EQ(check("link = loop\nuser-share = 100\ntotal-queues = 1GiB\ntotal-regions = 9\n"), 0);
  refuses("max-connections = 18446744073709551616", "from 0 to 18446744073709551615");
  refuses("pcap-frames = -1", "whole number");
  EXPECT_EQ(check("link = loop\nmax-clients = 1\nmax-connections = 4294967295\n"), 0);
}

TEST_F(StpdCheck, TakesSizesWithUnitsOf1024) {
  for (const std::string size :
       {"-1", "much", "4XB", "KiB", "1.5G", "99999999999999999999", "17179869184GiB"})
    for (const std::string name : {"max-mapped", "granted"})
      refuses(name + " = " + size, "write a size in bytes, as 4096, 0x1000, 64K");
  for (const std::string size : {"4096", "0x1000", "512k", "64MB", "\"4 GiB\"", "0"})
    EXPECT_EQ(check("link = loop\nmax-mapped = " + size + "\ngranted = " + size + "\n"), 0) << size;
}

TEST_F(StpdCheck, NamesWhatNoAddressSocketOrPortCanBe) {
  refuses("address = 10.9.0.1", "10.9.0.1/24");
  refuses("address = \"10.9.0.1/24,mtu=9000\"", "10.9.0.1/24");
  refuses("socket = /" + std::string(200, 'a'), "bytes at most");
  refuses("socket-mode = 888", "octal");
  refuses("listen = all:3000-4294967296", "4294967295");
  refuses("help = 1", "there is no option");
}

TEST_F(StpdCheck, AListMayHaveCommentsAndWhatIsOpenedHasToEnd) {
  EXPECT_EQ(check("link = loop\n"
                  "listen = [ # who\n"
                  "  \"all:1-2\",  # the first of them\n"
                  "  # and\n"
                  "  \"user:no-such-user:3\" ]\n"),
            1);
  EXPECT_TRUE(says(5, "no user 'no-such-user'")) << program->output();
  refuses("pcap = \"/x/a#b\"", "no value holds a #");
  refuses("pcap = \"/x/a", "quotes");
  EXPECT_EQ(check("link = loop\nlisten = [\"all:1\",\npoll = busy\n"), 1);
  EXPECT_TRUE(says(2, "close it")) << program->output();
}

TEST_F(StpdCheck, LinksThatCollideAreRefused) {
  const std::string first = "[link.a]\nlink = loop\nsocket = /x/a\n";
  EXPECT_EQ(check(first + "[link.a]\nlink = loop\n"), 1);
  EXPECT_TRUE(says(4, "named 'a'")) << program->output();
  EXPECT_EQ(check(first + "[link.b]\nlink = loop\nsocket = /x/a\n"), 1);
  EXPECT_TRUE(says(6, "the socket of link 'b' is the socket of link 'a', /x/a: give each"))
      << program->output();
  EXPECT_EQ(check(first + "[link.b]\n[link.c]\nlink = loop\n"), 1);
  EXPECT_TRUE(says(4, "names no link")) << program->output();
  EXPECT_EQ(check(first + "[link.b/c]\nlink = loop\n"), 1);
  EXPECT_TRUE(says(4, "write letters")) << program->output();
  EXPECT_EQ(check("link = loop\n[link.stpd]\nlink = loop\nsocket = /x/a\n"), 1);
  EXPECT_TRUE(says(2, "named 'stpd'")) << program->output();
}

}  // namespace
}  // namespace stp::stpd
