// Sums of dense gradients over ranks, in parts that begin while backward still runs.
//
// Note [Buckets]
// Backward completes the gradients of the last layers first. The arena is divided into ranges of about a megabyte, and
// the sum of a range begins when its last gradient is complete: the thread of the group exchanges it while backward
// computes the others. Ranges begin in one order, from the end of the arena to its beginning, on all ranks, whatever
// the order in which they are completed. Each element is the sum in the order of the ranks, as without ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/autograd/hooks.h"
#include "tercel/distributed/process_group.h"
#include "tercel/nn/parameter_arena.h"

namespace tercel::recsys {

/** See Note [Buckets]. The arena, which is allocated, and the group must outlive it. */
class TERCEL_API GradientBuckets {
 public:
  static constexpr int64_t kBytes = int64_t{1} << 20;

  /** Buckets have at least so many bytes, but for the first one. */
  GradientBuckets(const nn::ParameterArena& arena, distributed::ProcessGroup& group, int64_t bytes = kBytes);
  /** Removes its hooks. */
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /** Waits for the sums of a step that failed, which change gradients. */
  void settle();
  /** Before backward: sums begin as gradients are completed. */
  void begin();
  /** After backward, or without begin(): begins the sums that are left. */
  void start();
  /** The same, and waits for all. DistributedError. */
  void finish();
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    Tensor gradients;  // a part of the arena's
    int64_t parameters = 0, missing = 0;
  };
  void note(size_t bucket);
  void start_complete();

  distributed::ProcessGroup& group_;
  std::vector<Bucket> buckets_;  // from the end of the arena to its beginning
  std::vector<HookHandle> hooks_;
  std::vector<distributed::Work> works_;
  bool is_open_ = false;
};

}  // namespace tercel::recsys
