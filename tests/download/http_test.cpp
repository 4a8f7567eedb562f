// Downloads, against a server that also cuts connections, stalls, ignores ranges and serves wrong bytes.
#include "gradstep/download/http.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <random>

#include "download/digest.h"
#include "gradstep/base/error.h"
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

std::string random_bytes(size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class HttpDownload : public ::testing::Test {
 protected:
  Download wanted(const HttpServer& server) {
    return {.url = server.url("/file"), .path = dir_.file("file"), .size = content_.size(), .md5 = md5_};
  }
  DownloadOptions quick(int num_tries = 5) {
    return {.num_tries = num_tries,
            .pause_seconds = 0.001,
            .stall_seconds = 10,
            .on_retry = [this](const std::string& reason, double) { reasons_.push_back(reason); }};
  }
  // What a download that must fail says: one line with the address and the cure. Nothing is left at its path.
  std::string refusal(const Download& download, const DownloadOptions& options) {
    const std::string message = message_of<DataError>([&] { http_download(download, options); });
    EXPECT_THAT(message, AllOf(HasSubstr(download.url), HasSubstr("; "), Not(HasSubstr("\n"))));
    EXPECT_FALSE(std::filesystem::exists(download.path));
    return message;
  }
  void expect_whole() {
    EXPECT_EQ(dir_.read("file"), content_);
    EXPECT_EQ(dir_.num_entries(), 1);
  }

  const std::string content_ = random_bytes(300'000);
  ScratchDir dir_;
  const std::string md5_ = [this] {
    const std::string path = dir_.write("for md5", content_);
    const std::string md5 = md5_file(path);
    std::filesystem::remove(path);
    return md5;
  }();
  std::vector<std::string> reasons_;
};

TEST_F(HttpDownload, FetchesOnceAndReportsProgress) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  DownloadOptions options = quick();
  uint64_t last = 0;
  options.on_progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, content_.size());
    last = done;
  };
  EXPECT_TRUE(http_download(wanted(server), options));
  EXPECT_EQ(last, content_.size());
  expect_whole();
  EXPECT_FALSE(http_download(wanted(server), options));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].path, "/file");
}

// Debian's file has another size than the list says, and nothing else is to be had.
TEST_F(HttpDownload, R56_TheOldFileStaysUntilANewOneIsThere) {
  const std::string mine = dir_.write("file", "another version");
  const HttpServer server([&](const HttpRequest&) { return HttpReply{.status = 404}; });
  EXPECT_THAT(message_of<DataError>([&] { http_download(wanted(server), quick()); }), HasSubstr("404"));
  EXPECT_EQ(dir_.read("file"), "another version");
  const HttpServer good([&](const HttpRequest& request) { return serve(request, content_); });
  EXPECT_TRUE(http_download(wanted(good), quick()));
  expect_whole();
}

TEST_F(HttpDownload, R65_AnAddressThatIsNoneIsRefusedBeforeItIsLookedUp) {
  for (const char* url : {"", "htp://a/b", "localhost/x", "http://a b/c", "file:///etc/passwd"})
    EXPECT_THAT(message_of<ConfigError>([&] { http_download({.url = url, .path = dir_.file("x")}, {}); }),
                HasSubstr("an address begins with http:// or https://"))
        << url;
}

TEST_F(HttpDownload, MakesFoldersAndChecksSha256) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, "abc"); });
  const Download download{.url = server.url("/x"),
                          .path = dir_.file("a/b/c"),
                          .size = 3,
                          .sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"};
  EXPECT_TRUE(http_download(download, quick()));
  EXPECT_EQ(dir_.read("a/b/c"), "abc");
}

TEST_F(HttpDownload, ContinuesACutConnection) {
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve(request, content_);
    reply.cut_after = 100'000;
    return reply;
  });
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  const std::vector<HttpRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_FALSE(requests[0].range_begin);
  EXPECT_EQ(requests[1].range_begin, 100'000U);
  EXPECT_EQ(requests[2].range_begin, 200'000U);
  EXPECT_EQ(reasons_.size(), 2U);
}

// Without a length a cut looks like the end: the known size tells.
TEST_F(HttpDownload, ContinuesACutWithoutLength) {
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve(request, content_);
    reply.send_length = false;
    if (!request.range_begin) reply.cut_after = 123'456;
    return reply;
  });
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  EXPECT_EQ(server.requests()[1].range_begin, 123'456U);
}

TEST_F(HttpDownload, ContinuesThePartOfAnEarlierCall) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  dir_.write("file.part", content_.substr(0, 250'000));
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].range_begin, 250'000U);
}

TEST_F(HttpDownload, AWholePartNeedsNoRequest) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  dir_.write("file.part", content_);
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  EXPECT_EQ(server.requests().size(), 0U);
}

TEST_F(HttpDownload, AServerThatIgnoresRangesStartsOver) {
  const HttpServer server([&](const HttpRequest&) { return HttpReply{.body = content_}; });
  dir_.write("file.part", random_bytes(1000) + "something else");
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(HttpDownload, AServerThatSendsAnotherRangeStartsOver) {
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve(request, content_);
    if (request.range_begin) reply.headers = {"Content-Range: bytes 0-299999/300000"};
    return reply;
  });
  dir_.write("file.part", content_.substr(0, 1000));
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
}

// The old part is of another file: found out by the hash of the whole, then fetched in one piece.
TEST_F(HttpDownload, AWrongPartStartsOver) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  for (const size_t size : {size_t{250'000}, content_.size(), content_.size() + 5}) {
    std::filesystem::remove(dir_.file("file"));
    dir_.write("file.part", std::string(size, 'x'));
    EXPECT_TRUE(http_download(wanted(server), quick()));
    expect_whole();
    EXPECT_FALSE(server.requests().back().range_begin);
  }
}

TEST_F(HttpDownload, APartIsNotTrustedWithoutAHash) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  dir_.write("file.part", content_.substr(0, 1000));
  Download download = wanted(server);
  download.md5.clear();
  EXPECT_TRUE(http_download(download, quick()));
  expect_whole();
  EXPECT_FALSE(server.requests()[0].range_begin);
}

TEST_F(HttpDownload, AWrongFileIsReplaced) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  dir_.write("file", "wrong");
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
}

TEST_F(HttpDownload, WrongBytesAreRefusedAtOnce) {
  std::string wrong = content_;
  wrong[77] ^= 1;
  const HttpServer server([&](const HttpRequest& request) { return serve(request, wrong); });
  EXPECT_THAT(refusal(wanted(server), quick()), HasSubstr("expected md5 " + md5_ + ", found "));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(dir_.num_entries(), 0);
}

TEST_F(HttpDownload, WrongSizeIsRefusedBeforeItIsFetched) {
  for (const bool send_length : {true, false}) {
    const HttpServer server([&](const HttpRequest& request) {
      HttpReply reply = serve(request, content_ + "x");
      reply.send_length = send_length;
      return reply;
    });
    EXPECT_THAT(
        refusal(wanted(server), quick()),
        HasSubstr(send_length ? "expected 300000 bytes, found 300001" : "expected 300000 bytes, found more"));
    EXPECT_EQ(server.requests().size(), 1U);
    EXPECT_EQ(dir_.num_entries(), 0);
  }
}

TEST_F(HttpDownload, NotFoundIsNotTriedAgain) {
  const HttpServer server(
      [](const HttpRequest&) { return HttpReply{.status = 404, .body = "no such page"}; });
  EXPECT_THAT(refusal(wanted(server), quick()), HasSubstr("the server answered 404"));
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(HttpDownload, ServerErrorsAreTriedAgain) {
  for (const int status : {500, 503, 429, 408}) {
    std::filesystem::remove(dir_.file("file"));
    int num_requests = 0;
    const HttpServer server([&](const HttpRequest& request) {
      return ++num_requests < 3 ? HttpReply{.status = status, .body = "error page"}
                                : serve(request, content_);
    });
    EXPECT_TRUE(http_download(wanted(server), quick()));
    expect_whole();
  }
  EXPECT_THAT(reasons_, ::testing::Contains("the server answered 503"));
}

TEST_F(HttpDownload, TriesAreCounted) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{.status = 500}; });
  EXPECT_THAT(refusal(wanted(server), quick(3)), HasSubstr("the server answered 500"));
  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(reasons_.size(), 2U);
}

TEST_F(HttpDownload, AStallIsGivenUpAndContinued) {
  int num_requests = 0;
  const HttpServer server([&](const HttpRequest& request) {
    HttpReply reply = serve(request, content_);
    if (++num_requests == 1) {
      reply.cut_after = 150'000;
      reply.stall_seconds = 60;
    }
    return reply;
  });
  DownloadOptions options = quick();
  options.stall_seconds = 0.2;
  EXPECT_TRUE(http_download(wanted(server), options));
  expect_whole();
  EXPECT_THAT(reasons_, ::testing::ElementsAre(HasSubstr("stalled")));
  EXPECT_EQ(server.requests()[1].range_begin, 150'000U);
}

TEST_F(HttpDownload, RedirectsAreFollowed) {
  const HttpServer server([&](const HttpRequest& request) {
    if (request.path == "/file")
      return HttpReply{.status = 302, .body = "moved", .headers = {"Location: /other"}};
    if (request.path == "/loop") return HttpReply{.status = 302, .headers = {"Location: /loop"}};
    return serve(request, content_);
  });
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  std::filesystem::remove(dir_.file("file"));
  Download endless = wanted(server);
  endless.url = server.url("/loop");
  refusal(endless, quick());
}

TEST_F(HttpDownload, OtherProtocolsAreRefused) {
  dir_.write("secret", "x");
  const Download local{.url = "file://" + dir_.file("secret"), .path = dir_.file("file")};
  EXPECT_THAT(message_of<ConfigError>([&] { http_download(local, quick()); }),
              AllOf(HasSubstr(local.url), HasSubstr("http:// or https://")));
  EXPECT_FALSE(std::filesystem::exists(local.path));
  const HttpServer server([&](const HttpRequest&) {
    return HttpReply{.status = 302, .headers = {"Location: file://" + dir_.file("secret")}};
  });
  refusal(wanted(server), quick());
}

TEST_F(HttpDownload, NobodyListens) {
  Download download;
  {
    const HttpServer server([](const HttpRequest&) { return HttpReply{}; });
    download = wanted(server);
  }
  refusal(download, quick(2));
  EXPECT_EQ(reasons_.size(), 1U);
}

TEST_F(HttpDownload, AnEmptyFileIsAFile) {
  const HttpServer server([](const HttpRequest&) { return HttpReply{}; });
  const Download download{.url = server.url("/"),
                          .path = dir_.file("file"),
                          .size = 0,
                          .md5 = "d41d8cd98f00b204e9800998ecf8427e"};
  EXPECT_TRUE(http_download(download, quick()));
  EXPECT_EQ(dir_.read("file"), "");
}

TEST_F(HttpDownload, ACallbackThatThrowsKeepsThePart) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  DownloadOptions options = quick();
  options.on_progress = [](uint64_t done, uint64_t) {
    if (done > 100'000) throw std::runtime_error("enough");
  };
  EXPECT_THROW(http_download(wanted(server), options), std::runtime_error);
  EXPECT_GT(dir_.read("file.part").size(), 100'000U);
  EXPECT_TRUE(http_download(wanted(server), quick()));
  expect_whole();
  EXPECT_TRUE(server.requests()[1].range_begin);
}

TEST_F(HttpDownload, TwoProcessesDoNotShareAPart) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  const int fd = ::open(dir_.write("file.part", "").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(message_of<DataError>([&] { http_download(wanted(server), quick()); }),
              HasSubstr("another process"));
  ::close(fd);
  EXPECT_TRUE(http_download(wanted(server), quick()));
}

TEST_F(HttpDownload, AFolderThatCannotBeWrittenIsNamed) {
  const HttpServer server([&](const HttpRequest& request) { return serve(request, content_); });
  Download download = wanted(server);
  download.path = "/dev/null/file";
  EXPECT_THAT(message_of<DataError>([&] { http_download(download, quick()); }), HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace gradstep
