// Messages between the processes of a job.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel::distributed {

/**
 * Carries bytes between the ranks of a job. All calls are of one thread at a time. Messages of one rank to another with
 * the same tag arrive in the order in which they were sent. Nothing waits: send() and receive() begin a transfer, which
 * is_done() advances.
 */
class TERCEL_API Transport {
 public:
  /** A transfer that has begun. */
  using Ticket = int64_t;
  /** Tags are from 0 on. */
  static constexpr int32_t kMostTag = 32767;

  virtual ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  /** "mpi". */
  virtual std::string_view name() const = 0;

  /** The bytes must stay as they are until the transfer is done. */
  virtual Ticket send(int64_t to, int32_t tag, const void* data, int64_t bytes) = 0;
  /** Exactly so many bytes. */
  virtual Ticket receive(int64_t from, int32_t tag, void* data, int64_t bytes) = 0;
  /**
   * Whether a transfer is done; the ticket is invalid then. DistributedError if it failed, also where a message has
   * other bytes than those that are received.
   */
  virtual bool is_done(Ticket ticket) = 0;

  /** Ends the work with the other ranks, once all of them do and no transfer is open. */
  virtual void finish() = 0;
  /** Ends all processes of the job, this one too, with an exit code. */
  virtual void abort(int code) noexcept = 0;

 protected:
  Transport(int64_t rank, int64_t size) : rank_(rank), size_(size) {}

 private:
  int64_t rank_, size_;
};

}  // namespace tercel::distributed
