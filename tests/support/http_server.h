// HttpServer: a server on 127.0.0.1 inside the test, which answers as the test says, also wrongly.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace gradstep::testing {

struct HttpRequest {
  std::string path;                     // "/file"
  std::optional<uint64_t> range_begin;  // of "Range: bytes=N-"
};

struct HttpReply {
  int status = 200;
  std::string body{};
  std::vector<std::string> headers{};  // besides Content-Length
  bool send_length = true;
  size_t cut_after = std::string::npos;  // bytes of the body, then the connection is closed
  double stall_seconds = 0;              // silence after those bytes, before the close
};

// The whole `content`, or the part that was asked for.
inline HttpReply serve(const HttpRequest& request, const std::string& content) {
  if (!request.range_begin) return {.body = content};
  const uint64_t begin = *request.range_begin;
  if (begin >= content.size()) return {.status = 416};
  return {.status = 206,
          .body = content.substr(begin),
          .headers = {"Content-Range: bytes " + std::to_string(begin) + "-" +
                      std::to_string(content.size() - 1) + "/" + std::to_string(content.size())}};
}

class HttpServer {
 public:
  explicit HttpServer(std::function<HttpReply(const HttpRequest&)> handler) : handler_(std::move(handler)) {
    ::setenv("no_proxy", "*", 1);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      throw std::runtime_error("cannot listen on 127.0.0.1");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~HttpServer() {
    stopping_ = true;
    thread_.join();
    ::close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  // All so far, in order.
  [[nodiscard]] std::vector<HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void run() {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 5) <= 0) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      answer(connection);
      ::close(connection);
    }
  }

  void answer(int connection) {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n")) {
      if (::recv(connection, &byte, 1, 0) != 1) return;
      head += byte;
    }
    HttpRequest request;
    request.path = head.substr(4, head.find(' ', 4) - 4);
    if (const size_t at = head.find("Range: bytes="); at != std::string::npos) {
      request.range_begin = std::strtoull(head.c_str() + at + 13, nullptr, 10);
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const HttpReply reply = handler_(request);
    std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " Some\r\nConnection: close\r\n";
    if (reply.send_length) text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    for (const std::string& header : reply.headers) text += header + "\r\n";
    text += "\r\n" + reply.body.substr(0, reply.cut_after);
    if (!send_all(connection, text)) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(reply.stall_seconds);
    while (!stopping_ && std::chrono::steady_clock::now() < end && !gone(connection)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::shutdown(connection, SHUT_WR);
    // Until the client has read everything: closing with unread bytes would reset the connection.
    while (::recv(connection, &byte, 1, 0) > 0) {
    }
  }

  static bool send_all(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  static bool gone(int connection) {
    char byte = 0;
    return ::recv(connection, &byte, 1, MSG_DONTWAIT) == 0;
  }

  const std::function<HttpReply(const HttpRequest&)> handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::thread thread_;
};

}  // namespace gradstep::testing
