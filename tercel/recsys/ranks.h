// Tensors of all ranks of a job, and what rank 0 tells the others.
//
// Sums are in the order of the ranks, so that they have the same bits on every rank and in every run with as many. All
// ranks must make the same calls in the same order; DistributedError if one is lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Gives x, contiguous, the sum of all ranks' x. */
TERCEL_API void sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x);
/** The same, while the caller goes on: x may be read and changed when it is done. */
[[nodiscard]] TERCEL_API distributed::Work start_sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x);
/** The sum of all ranks' x, recorded like any op: its gradient is the sum of all ranks' gradients. */
TERCEL_API Tensor recorded_sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x);
/** The number of each rank. */
TERCEL_API std::vector<int64_t> numbers_of_ranks(distributed::ProcessGroup& group, int64_t number);
/** The text of the first rank that has one; empty if none has. */
TERCEL_API std::string text_of_ranks(distributed::ProcessGroup& group, const std::string& text);
/** The rows [n, ...] of all ranks, one after the other, where rank r has counts[r]; other sizes are equal. */
TERCEL_API Tensor rows_of_ranks(distributed::ProcessGroup& group, const Tensor& rows, Span<int64_t> counts);

/** Gives all ranks the text of rank 0, and returns it. */
TERCEL_API std::string text_of_first(distributed::ProcessGroup& group, const std::string& text = {});
/** The text of each rank. */
TERCEL_API std::vector<std::string> texts_of_ranks(distributed::ProcessGroup& group, const std::string& text);

/**
 * Does what each rank has to do for all: an error of one is thrown on all of them, here the own one, else an IoError
 * that names the first rank that has one. All ranks call it; without a group it is work().
 */
TERCEL_API void do_together(distributed::ProcessGroup* group, FunctionRef<void()> work);
/** The same for what rank 0 alone does. */
TERCEL_API void do_on_first(distributed::ProcessGroup* group, FunctionRef<void()> work);

/** What rank 0 tells the others to do. */
enum class RankCommand : int64_t { Step, Skip, Validate, Test, CheckFinite, Save, Load, LoadNewData, WarmStart, End };

/** A command, with the text of one: the folder of a checkpoint to load or to begin with. */
struct RankMessage {
  RankCommand command = RankCommand::End;
  std::string text;
};

/** Gives all ranks the message of rank 0, and returns it. */
TERCEL_API RankMessage message_of_first(distributed::ProcessGroup& group, const RankMessage& message = {});

}  // namespace tercel::recsys
