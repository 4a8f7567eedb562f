// gradstep fetch: the right files in the right folder, what is right left alone, and words for a person or a
// log.
#include "download/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/cifar.h"
#include "download/digest.h"
#include "download/fetch_list.h"
#include "gradstep/base/error.h"
#include "gradstep/data/dataset.h"
#include "support/archives.h"
#include "support/http_server.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::HttpReply;
using testing::HttpRequest;
using testing::HttpServer;
using testing::message_of;
using ::testing::Not;
using testing::ScratchDir;
using testing::serve;
using testing::tar_end;
using testing::tar_entry;

class Fetch : public ::testing::Test {
 protected:
  FetchFile file_of(const std::string& name, const std::string& content) {
    contents_[name] = content;
    const std::string path = scratch_.write("content", content);
    return {name, content.size(), md5_file(path)};
  }
  HttpReply answer(const HttpRequest& request) const {
    const auto found = contents_.find(request.path.substr(sizeof("/mirror/") - 1));
    return found == contents_.end() ? HttpReply{.status = 404} : serve(request, found->second);
  }
  FetchOptions options(const HttpServer& server) {
    return {.name = "toy", .data_dir = dir_.file("toy"), .base_url = server.url("/mirror"), .quiet = false};
  }
  // What a run prints.
  std::string printed(const FetchList& list, const FetchOptions& options, bool is_terminal = false) {
    const std::string path = scratch_.file("output");
    std::FILE* const out = std::fopen(path.c_str(), "w");
    try {
      EXPECT_EQ(fetch_files(list, options, {.num_tries = 3, .pause_seconds = 0.001}, out, is_terminal), 0);
    } catch (...) {
      std::fclose(out);
      throw;
    }
    std::fclose(out);
    return scratch_.read("output");
  }

  std::map<std::string, std::string> contents_;
  ScratchDir scratch_;
  ScratchDir dir_;
  const FetchList two_files_{"toy",
                             "http://127.0.0.1:9/",
                             {file_of("a.gz", "content of a"), file_of("b.gz", std::string(500'000, 'b'))},
                             {}};
};

TEST_F(Fetch, DownloadsOnceAndNamesWhatIsThere) {
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  EXPECT_THAT(printed(two_files_, options(server)),
              AllOf(HasSubstr("a.gz: 0.0 MB, done"), HasSubstr("b.gz: 0.5 MB, done"),
                    HasSubstr("toy is in " + dir_.file("toy"))));
  EXPECT_EQ(dir_.read("toy/a.gz"), "content of a");
  EXPECT_EQ(dir_.read("toy/b.gz"), std::string(500'000, 'b'));
  EXPECT_EQ(server.requests().size(), 2U);
  EXPECT_THAT(printed(two_files_, options(server)), AllOf(HasSubstr("a.gz: already there and right\n"),
                                                          HasSubstr("b.gz: already there and right\n")));
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(Fetch, ReplacesOnlyTheFileThatIsWrong) {
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  printed(two_files_, options(server));
  dir_.write("toy/a.gz", "content of A");
  EXPECT_THAT(printed(two_files_, options(server)),
              AllOf(HasSubstr("a.gz: 0.0 MB, done"), HasSubstr("b.gz: already there")));
  EXPECT_EQ(dir_.read("toy/a.gz"), "content of a");
}

TEST_F(Fetch, SaysThatItTriesAgain) {
  int num_requests = 0;
  const HttpServer server([&](const HttpRequest& request) {
    return ++num_requests == 1 ? HttpReply{.status = 503} : answer(request);
  });
  EXPECT_THAT(printed(two_files_, options(server)),
              HasSubstr("a.gz: the server answered 503; trying again in 0.001 s\n"));
}

TEST_F(Fetch, LogsHaveNoControlCharacters) {
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  EXPECT_THAT(printed(two_files_, options(server)), AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
}

// A slow server, so that the bar is drawn.
TEST_F(Fetch, ATerminalSeesABar) {
  int num_requests = 0;
  const HttpServer server([&](const HttpRequest& request) {
    if (++num_requests > 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    return answer(request);
  });
  EXPECT_THAT(printed(two_files_, options(server), true),
              AllOf(HasSubstr("\rb.gz "), HasSubstr("% ["), HasSubstr(" of 0.5 MB"),
                    HasSubstr("\rb.gz: 0.5 MB, done")));
}

TEST_F(Fetch, QuietPrintsNothing) {
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  FetchOptions quiet = options(server);
  quiet.quiet = true;
  EXPECT_EQ(printed(two_files_, quiet), "");
  EXPECT_EQ(printed(two_files_, quiet), "");
  EXPECT_TRUE(std::filesystem::exists(dir_.file("toy/b.gz")));
}

TEST_F(Fetch, WrongBytesAreAnErrorAndLeaveNothing) {
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  contents_["a.gz"] = "CONTENT OF A";
  EXPECT_THAT(message_of<DataError>([&] { printed(two_files_, options(server)); }),
              AllOf(HasSubstr("/mirror/a.gz: expected md5"), Not(HasSubstr("\n"))));
  EXPECT_TRUE(std::filesystem::is_empty(dir_.file("toy")));
}

TEST_F(Fetch, ACutConnectionIsContinued) {
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = answer(request);
    if (!request.range_begin) reply.cut_after = 5;
    return reply;
  });
  printed(two_files_, options(server));
  EXPECT_EQ(dir_.read("toy/a.gz"), "content of a");
  EXPECT_EQ(dir_.read("toy/b.gz"), std::string(500'000, 'b'));
}

TEST_F(Fetch, UnpacksAnArchiveThatTheReaderThenReads) {
  const auto records = [](char label, size_t count) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) bytes.append(1, label).append(3072, static_cast<char>(i));
    return bytes;
  };
  FetchList list{"toy", "", {}, {}};
  std::string archive = tar_entry("cifar/", "", '5') + tar_entry("cifar/readme.html", "text");
  const std::vector<std::string> names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                          "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string content = records(static_cast<char>(i), 3);
    archive += tar_entry("cifar/" + names[i], content);
    list.members.push_back({"cifar/" + names[i], names[i], content.size()});
  }
  list.files.push_back(file_of("cifar.tar.gz", testing::gzip(archive + tar_end())));
  const HttpServer server([this](const HttpRequest& request) { return answer(request); });
  printed(list, options(server));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("toy/cifar.tar.gz")));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("toy/readme.html")));
  EXPECT_EQ(load_cifar10(dir_.file("toy"), Split::kTrain)->size(), 15);
  EXPECT_EQ(load_cifar10(dir_.file("toy"), Split::kEval)->size(), 3);
  EXPECT_THAT(printed(list, options(server)), HasSubstr("test_batch.bin: already there and right\n"));
  EXPECT_EQ(server.requests().size(), 1U);
  // One lost file: the archive is fetched again.
  std::filesystem::remove(dir_.file("toy/data_batch_3.bin"));
  printed(list, options(server));
  EXPECT_TRUE(std::filesystem::exists(dir_.file("toy/data_batch_3.bin")));
}

TEST(FetchLists, AreComplete) {
  std::vector<std::string> names;
  for (const FetchList& list : known_fetch_lists()) {
    names.push_back(list.dataset);
    EXPECT_TRUE(list.base_url.starts_with("http") && list.base_url.ends_with("/"));
    for (const FetchFile& file : list.files) {
      EXPECT_GT(file.size, 0U);
      EXPECT_EQ(file.md5.size(), 32U);
      EXPECT_EQ(file.md5.find_first_not_of("0123456789abcdef"), std::string::npos);
    }
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(dataset_names()));
}

TEST(FetchLists, AnUnknownNameNamesTheKnown) {
  EXPECT_THAT(message_of<ConfigError>([] { (void)run_fetch({"mnits", "", "", false}, stdout, false); }),
              AllOf(HasSubstr("did you mean mnist?"), HasSubstr("cifar10"), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace gradstep
