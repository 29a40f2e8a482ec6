// Transfers of one collective, with a watch over the other ranks. Private.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/core/allocator.h"
#include "tercel/distributed/process_group.h"
#include "tercel/distributed/transport.h"

namespace tercel::distributed {

/** What a group does with its transport. All functions are of one thread at a time. */
class Exchange {
 public:
  /** The transport must outlive it. */
  Exchange(Transport& transport, const GroupOptions& options);

  int64_t rank() const { return transport_.rank(); }
  int64_t size() const { return transport_.size(); }

  /**
   * The following transfers are those of a collective, which messages call `name`; `call` says what must be the same
   * on all ranks.
   */
  void begin(const char* name, const std::string& call);
  void send(int64_t to, const void* data, int64_t bytes);
  void receive(int64_t from, void* data, int64_t bytes);
  /** Whether all of them are done; DistributedError that names the collective and the rank. Watches, too. */
  bool poll();
  /** Memory for so many bytes, until a call for more. */
  std::byte* scratch(int64_t bytes);

  /** Sends and expects signs of life; to be called at least every second. DistributedError if a rank is lost. */
  void watch();
  /** Ends that, once all ranks do. */
  void end_watch();
  /**
   * Tells the next rank, and through it all others, that the job ends with this exit code because of this rank, or of
   * the one that told it so, with the code of that. It waits for a moment at most: the other may not listen any more.
   */
  void tell_end(int code) noexcept;

  /** Ends the job with this exit code; -1: no. */
  std::atomic<int> abort_code = -1;
  /** Of collectives, so far. */
  std::atomic<int64_t> bytes_sent = 0;

 private:
  using Clock = std::chrono::steady_clock;
  struct Transfer {
    Transport::Ticket ticket;
    int64_t peer;
    bool is_receive;
  };

  bool is_done(Transport::Ticket ticket, int64_t peer);
  void watch(Clock::time_point now);
  void check_time(Clock::time_point now) const;
  int64_t successor() const { return (rank() + 1) % size(); }
  int64_t predecessor() const { return (rank() + size() - 1) % size(); }

  Transport& transport_;
  const GroupOptions options_;
  const char* name_ = "";
  Clock::time_point begun_;  // the transfers that are open
  int32_t tag_ = 0;
  std::vector<Transfer> open_;
  DataPtr scratch_;
  int64_t scratch_bytes_ = 0;

  /** A collective, and a hash of it and all before. */
  struct Call {
    std::string text;
    uint64_t digest = 0;
  };
  /** What a rank tells its successor: the collective that it works on. */
  struct Sign {
    int64_t number = 0;
    uint64_t digest = 0;
    char call[47] = {};
    bool is_last = false;
    int32_t ended_by = -1, exit_code = 0;  // the rank that ended the job, if one did
  };
  void compare(const Sign& other) const;
  Sign sign() const;
  void receive_sign();
  const Call& call_of(int64_t number) const;
  /** JobEndedError if the predecessor says so. */
  void check_end() const;

  Clock::time_point watched_, sent_, heard_;
  int64_t number_ = 0;                                  // collectives that have begun
  std::vector<Call> calls_;                             // the last ones, by number
  std::unique_ptr<Sign> sign_, heard_sign_, end_sign_;  // whose addresses are those of transfers
  Transport::Ticket sending_ = -1, receiving_ = -1;
};

}  // namespace tercel::distributed
