#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>

#include "tercel/core/huge_pages_impl.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/exchange_impl.h"
#include "tercel/util/format.h"

namespace tercel::distributed {

namespace {

using std::chrono::milliseconds;

constexpr int32_t kLifeTag = Transport::kMostTag;
constexpr milliseconds kBetweenSigns(1000);
// In which the next rank takes the news that the job ends.
constexpr milliseconds kMostTelling(100);
// Between two looks for the end of a transfer of the watch itself.
constexpr std::chrono::microseconds kPause(20);
// A longer time between two looks means that this process was stopped itself, and has heard nobody therefore.
constexpr milliseconds kOwnPause(2000);
// Collectives that are known when another rank tells which it works on.
constexpr int64_t kRemembered = 1024;

// Calls are told apart by tags, so that messages of other ones are hardly ever taken for each other; the signs of life
// tell the rest.
constexpr int32_t kKinds = 251;

/** FNV-1a. */
uint64_t hash_of(std::string_view text, uint64_t hash = 14695981039346656037U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

double seconds_of(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Exchange::Exchange(Transport& transport, const GroupOptions& options)
    : transport_(transport),
      options_(options),
      watched_(Clock::now()),
      sent_(watched_ - kBetweenSigns),
      heard_(watched_),
      calls_(kRemembered),
      sign_(std::make_unique<Sign>()),
      heard_sign_(std::make_unique<Sign>()) {}

const Exchange::Call& Exchange::call_of(int64_t number) const {
  return calls_[static_cast<size_t>(number % kRemembered)];
}

void Exchange::begin(const char* name, const std::string& call) {
  name_ = name;
  begun_ = Clock::now();
  const uint64_t digest = hash_of(call, call_of(number_).digest);
  calls_[static_cast<size_t>(++number_ % kRemembered)] = {call, digest};
  tag_ = static_cast<int32_t>(number_ % (kLifeTag / kKinds)) * kKinds + static_cast<int32_t>(hash_of(call) % kKinds);
  compare(*heard_sign_);
}

Exchange::Sign Exchange::sign() const {
  Sign sign;
  const Call& call = call_of(number_);
  sign.number = number_;
  sign.digest = call.digest;
  std::strncpy(sign.call, call.text.c_str(), sizeof(sign.call) - 1);
  return sign;
}

/** DistributedError if the predecessor's collective, or one before it, is another one here. */
void Exchange::compare(const Sign& other) const {
  if (other.number <= 0 || other.number > number_ || other.number <= number_ - kRemembered) return;
  const Call& call = call_of(other.number);
  if (call.digest == other.digest) return;
  const std::string_view mine(call.text), found(other.call, strnlen(other.call, sizeof(other.call)));
  TERCEL_CHECK(mine.substr(0, sizeof(other.call) - 1) == found, DistributedError, "collective ", other.number, " is ",
               mine, " on rank ", rank(), ", and ", printable(found), " on rank ", predecessor(),
               ": all ranks must make the same calls");
  throw_error<DistributedError>({"of the collectives before number ", other.number, ", ", mine,
                                 ", one was another on rank ", rank(), " than on rank ", predecessor(),
                                 ": all ranks must make the same calls"});
}

void Exchange::send(int64_t to, const void* data, int64_t bytes) {
  bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
  open_.push_back({transport_.send(to, tag_, data, bytes), to, false});
}

void Exchange::receive(int64_t from, void* data, int64_t bytes) {
  open_.push_back({transport_.receive(from, tag_, data, bytes), from, true});
}

std::byte* Exchange::scratch(int64_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = {};
    scratch_ = cpu_allocator().allocate(bytes_in_huge_pages(static_cast<size_t>(bytes)));
    scratch_bytes_ = bytes;
  }
  return static_cast<std::byte*>(scratch_.get());
}

bool Exchange::is_done(Transport::Ticket ticket, int64_t peer) {
  try {
    return transport_.is_done(ticket);
  } catch (const DistributedError& e) {
    throw_error<DistributedError>({name_, ": rank ", peer, ": ", e.what()});
  }
}

bool Exchange::poll() {
  std::erase_if(open_, [this](const Transfer& transfer) { return is_done(transfer.ticket, transfer.peer); });
  const Clock::time_point now = Clock::now();
  if (open_.empty()) {
    begun_ = now;
    return true;
  }
  watch(now);
  check_time(now);
  return false;
}

void Exchange::check_time(Clock::time_point now) const {
  if (seconds_of(now - begun_) < options_.timeout_seconds) return;
  std::vector<int64_t> late;
  for (const Transfer& transfer : open_)
    if (std::find(late.begin(), late.end(), transfer.peer) == late.end()) late.push_back(transfer.peer);
  std::sort(late.begin(), late.end());
  throw_error<DistributedError>({name_, ": expected all ranks within ", options_.timeout_seconds, " s, but ", "ranks ",
                                 IntSpan(late), " have not answered"});
}

void Exchange::watch() { watch(Clock::now()); }

void Exchange::watch(Clock::time_point now) {
  if (const int code = abort_code.load(std::memory_order_relaxed); code >= 0) {
    tell_end(code);
    transport_.abort(code);
  }
  if (size() == 1) return;
  if (now - watched_ > kOwnPause) heard_ = now;
  watched_ = now;
  if (sending_ >= 0 && is_done(sending_, successor())) sending_ = -1;
  if (sending_ < 0 && now - sent_ >= kBetweenSigns) {
    *sign_ = sign();
    sending_ = transport_.send(successor(), kLifeTag, sign_.get(), sizeof(Sign));
    sent_ = now;
  }
  if (receiving_ >= 0 && is_done(receiving_, predecessor())) {
    receiving_ = -1;
    heard_ = now;
    check_end();
    compare(*heard_sign_);
  }
  if (receiving_ < 0 && !heard_sign_->is_last) receive_sign();
  // The last sign means that the other rank has ended its work.
  if (!heard_sign_->is_last && seconds_of(now - heard_) > options_.silence_seconds)
    throw_error<DistributedError>({"rank ", predecessor(), " has given no sign of life for ", options_.silence_seconds,
                                   " s: it is stopped, or its machine is"});
}

void Exchange::receive_sign() {
  receiving_ = transport_.receive(predecessor(), kLifeTag, heard_sign_.get(), sizeof(Sign));
}

void Exchange::check_end() const {
  if (heard_sign_->ended_by < 0) return;
  throw JobEndedError(static_cast<ExitCode>(heard_sign_->exit_code),
                      str_cat({"rank ", heard_sign_->ended_by, " has ended the job"}));
}

void Exchange::tell_end(int code) noexcept {
  try {
    end_sign_ = std::make_unique<Sign>(*heard_sign_);  // of its own: the last one may still be on its way
    if (heard_sign_->ended_by < 0) {
      *end_sign_ = sign();
      end_sign_->ended_by = static_cast<int32_t>(rank());
      end_sign_->exit_code = code;
    }
    if (end_sign_->ended_by == successor()) return;
    const Transport::Ticket ticket = transport_.send(successor(), kLifeTag, end_sign_.get(), sizeof(Sign));
    const Clock::time_point begin = Clock::now();
    while (!transport_.is_done(ticket) && Clock::now() - begin < kMostTelling) std::this_thread::sleep_for(kPause);
  } catch (...) {  // it is lost, too
  }
}

void Exchange::end_watch() {
  if (size() == 1) return;
  bool is_sent = false;
  for (;;) {
    if (sending_ >= 0 && is_done(sending_, successor())) sending_ = -1;
    if (sending_ < 0 && !is_sent) {
      *sign_ = sign();
      sign_->is_last = true;
      sending_ = transport_.send(successor(), kLifeTag, sign_.get(), sizeof(Sign));
      is_sent = true;
    }
    if (receiving_ >= 0 && is_done(receiving_, predecessor())) {
      receiving_ = -1;
      check_end();
      compare(*heard_sign_);
    }
    if (receiving_ < 0 && !heard_sign_->is_last) receive_sign();
    if (is_sent && sending_ < 0 && receiving_ < 0) return;
    check_time(Clock::now());
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tercel::distributed
