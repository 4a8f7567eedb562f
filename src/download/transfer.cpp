// no torch
// One transfer through libcurl. Callbacks never let an exception pass through C: it is kept and thrown
// afterwards.
#include "download/transfer.h"

#include <curl/curl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

namespace gradstep {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = TransferResult::Outcome;

constexpr long kMaxRedirects = 5;

void init_curl_once() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

bool worth_a_retry(long status) { return status == 408 || status == 429 || status >= 500; }

bool worth_a_retry(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

class Transfer {
 public:
  explicit Transfer(const TransferOptions& options)
      : options_(options), curl_(curl_easy_init(), &curl_easy_cleanup) {
    if (!curl_) throw std::bad_alloc();
    set(CURLOPT_URL, options_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "gradstep");
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.stall_seconds * 1000) + 1);
    set(CURLOPT_ERRORBUFFER, error_text_.data());
    set(CURLOPT_HEADERFUNCTION, &Transfer::header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Transfer::body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Transfer::progress);
    set(CURLOPT_XFERINFODATA, this);
    if (options_.begin > 0) set(CURLOPT_RANGE, (std::to_string(options_.begin) + "-").c_str());
  }

  TransferResult run() {
    const CURLcode code = curl_easy_perform(curl_.get());
    if (error_) std::rethrow_exception(error_);
    TransferResult result;
    result.resumed = offset_ ? first_offset_ > 0 : options_.begin > 0;
    if (refusal_) {
      result.outcome = refusal_->outcome;
      result.reason = refusal_->reason;
    } else if (code != CURLE_OK) {
      judge(code, result);
    } else if (!offset_) {
      // No byte came: the status alone decides, as for a file of no bytes.
      start();
      if (refusal_) result = {refusal_->outcome, refusal_->reason, options_.begin > 0};
    }
    return result;
  }

 private:
  struct Refusal {
    Outcome outcome;
    std::string reason;
  };

  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(curl_.get(), option, value);
    if (code != CURLE_OK) throw std::runtime_error(std::string("libcurl: ") + curl_easy_strerror(code));
  }

  [[nodiscard]] long status() const {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  void judge(CURLcode code, TransferResult& result) const {
    const std::string text = error_text_[0] != 0 ? error_text_.data() : curl_easy_strerror(code);
    if (stalled_) {
      result.outcome = Outcome::kRetry;
      result.reason = "no byte came for a while: the connection stalled";
    } else if (code == CURLE_HTTP_RETURNED_ERROR) {
      result.outcome = worth_a_retry(status()) ? Outcome::kRetry : Outcome::kFatal;
      result.reason = "the server answered " + std::to_string(status());
      // The range begins after the end of the file: the part is too long, or the server has another file.
      if (status() == 416 && options_.begin > 0) result.outcome = Outcome::kUseless;
    } else {
      result.outcome = worth_a_retry(code) ? Outcome::kRetry : Outcome::kFatal;
      result.reason = text;
    }
  }

  void refuse(Outcome outcome, std::string reason) {
    if (!refusal_) refusal_ = Refusal{outcome, std::move(reason)};
  }

  // At the first byte of the body: where does it belong, and can it be the file that is wanted?
  void start() {
    const bool partial = status() == 206;
    if (partial && range_begin_ != options_.begin) {
      return refuse(Outcome::kUseless, "the server sent another range than was asked for");
    }
    if (!partial && status() != 200) {
      return refuse(Outcome::kFatal, "the server answered " + std::to_string(status()));
    }
    offset_ = first_offset_ = partial ? options_.begin : 0;
    if (!partial && ::ftruncate(options_.fd, 0) != 0) {
      throw std::system_error(errno, std::generic_category(), "cannot empty the file");
    }
    curl_off_t length = -1;
    curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    total_ = length >= 0 ? *offset_ + static_cast<uint64_t>(length) : options_.size;
    if (options_.size != 0 && total_ != options_.size) {
      refuse(Outcome::kUseless,
             "expected " + std::to_string(options_.size) + " bytes, found " + std::to_string(total_));
    }
  }

  size_t store(const char* bytes, size_t size) {
    if (!offset_ && !refusal_) start();
    if (refusal_) return 0;
    if (options_.size != 0 && *offset_ + size > options_.size) {
      refuse(Outcome::kUseless, "expected " + std::to_string(options_.size) + " bytes, found more");
      return 0;
    }
    size_t done = 0;
    while (done < size) {
      const ssize_t count = ::pwrite(options_.fd, bytes + done, size - done, static_cast<off_t>(*offset_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw std::system_error(errno, std::generic_category(), "cannot write the file");
      done += static_cast<size_t>(count);
      *offset_ += static_cast<uint64_t>(count);
    }
    last_byte_ = Clock::now();
    if (options_.on_progress) options_.on_progress(*offset_, total_);
    return size;
  }

  // Content-Range of the last answer (a redirect has headers, too).
  void note(std::string_view line) {
    if (line.starts_with("HTTP/")) range_begin_.reset();
    unsigned long long begin = 0;
    const std::string text(line);
    constexpr size_t kNameBytes = sizeof("content-range:") - 1;
    if (line.size() > kNameBytes && curl_strnequal(text.c_str(), "content-range:", kNameBytes) != 0 &&
        std::sscanf(text.c_str() + kNameBytes, " bytes %llu-", &begin) == 1) {
      range_begin_ = begin;
    }
    last_byte_ = Clock::now();
  }

  // Runs a callback's work; an exception ends the transfer.
  template <typename Work>
  size_t guarded(Work work) noexcept {
    try {
      return work();
    } catch (...) {
      error_ = std::current_exception();
      return 0;
    }
  }

  static size_t header(char* bytes, size_t one, size_t size, void* self) {
    auto* const me = static_cast<Transfer*>(self);
    return me->guarded([&] {
      me->note({bytes, one * size});
      return one * size;
    });
  }
  static size_t body(char* bytes, size_t one, size_t size, void* self) {
    auto* const me = static_cast<Transfer*>(self);
    return me->guarded([&] { return me->store(bytes, one * size); });
  }
  // libcurl calls this about once a second while nothing comes.
  static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto* const me = static_cast<Transfer*>(self);
    const std::chrono::duration<double> silence = Clock::now() - me->last_byte_;
    me->stalled_ = silence.count() > me->options_.stall_seconds;
    return me->stalled_ ? 1 : 0;
  }

  const TransferOptions& options_;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  std::optional<uint64_t> range_begin_;  // as the server says
  std::optional<uint64_t> offset_;       // of the next byte in the file; empty before the first
  uint64_t first_offset_ = 0;
  uint64_t total_ = 0;
  Clock::time_point last_byte_ = Clock::now();
  bool stalled_ = false;
  std::optional<Refusal> refusal_;
  std::exception_ptr error_;
};

}  // namespace

TransferResult transfer(const TransferOptions& options) {
  init_curl_once();
  return Transfer(options).run();
}

}  // namespace gradstep
