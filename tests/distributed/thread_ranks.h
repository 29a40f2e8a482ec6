// Ranks that are threads of the test.
#pragma once

#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tercel/distributed/error.h"
#include "tercel/distributed/process_group.h"
#include "tercel/distributed/transport.h"

namespace tercel::distributed::test {

/** Messages on their way, by sender, receiver and tag. */
struct Mail {
  std::mutex mutex;
  std::map<std::tuple<int64_t, int64_t, int32_t>, std::deque<std::vector<char>>> boxes;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Mail> mail, int64_t rank, int64_t size)
      : Transport(rank, size), mail_(std::move(mail)) {}

  std::string_view name() const override { return "thread"; }
  Ticket send(int64_t to, int32_t tag, const void* data, int64_t bytes) override {
    check_open();
    const auto* const begin = static_cast<const char*>(data);
    const std::lock_guard lock(mail_->mutex);
    mail_->boxes[{rank(), to, tag}].emplace_back(begin, begin + bytes);
    return add({});
  }
  Ticket receive(int64_t from, int32_t tag, void* data, int64_t bytes) override {
    check_open();
    return add({from, tag, data, bytes});
  }
  bool is_done(Ticket ticket) override {
    check_open();
    const Receipt& receipt = open_.at(ticket);
    if (receipt.from >= 0) {
      const std::lock_guard lock(mail_->mutex);
      std::deque<std::vector<char>>& box = mail_->boxes[{receipt.from, rank(), receipt.tag}];
      if (box.empty()) return false;
      const std::vector<char> message = std::move(box.front());
      box.pop_front();
      TERCEL_CHECK(static_cast<int64_t>(message.size()) == receipt.bytes, DistributedError, "expected ", receipt.bytes,
                   " bytes, found ", message.size());
      if (receipt.bytes > 0) std::memcpy(receipt.data, message.data(), message.size());
    }
    open_.erase(ticket);
    return true;
  }
  /** As MPI_Finalize(): by the thread that has begun, and the last call. */
  void finish() override {
    check_open();
    TERCEL_CHECK(std::this_thread::get_id() == owner_, InternalError, "finish() is called by another thread");
    is_open_ = false;
  }
  void abort(int) noexcept override { std::terminate(); }

 private:
  void check_open() const { TERCEL_CHECK(is_open_, InternalError, "a call after finish()"); }

  struct Receipt {
    int64_t from = -1;  // -1: what is sent is done at once
    int32_t tag = 0;
    void* data = nullptr;
    int64_t bytes = 0;
  };
  Ticket add(const Receipt& receipt) {
    open_[next_] = receipt;
    return next_++;
  }

  std::shared_ptr<Mail> mail_;
  const std::thread::id owner_ = std::this_thread::get_id();
  bool is_open_ = true;
  std::map<Ticket, Receipt> open_;
  Ticket next_ = 0;
};

/** Runs f(transport) for each rank on a thread of its own, and throws the first error of a rank. */
inline void run_transports(int64_t size, const std::function<void(Transport&)>& f) {
  const auto mail = std::make_shared<Mail>();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        ThreadTransport transport(mail, r, size);
        f(transport);
      } catch (...) {
        errors[static_cast<size_t>(r)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

/** Runs f(group) for each rank, and closes the groups. f must not throw. */
inline void run_ranks(int64_t size, const std::function<void(ProcessGroup&)>& f) {
  const auto mail = std::make_shared<Mail>();
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      ProcessGroup group(
          [&]() -> std::unique_ptr<Transport> { return std::make_unique<ThreadTransport>(mail, r, size); });
      f(group);
      group.close();
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tercel::distributed::test
