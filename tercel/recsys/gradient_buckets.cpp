#include "tercel/recsys/gradient_buckets.h"

#include "tercel/autograd/autograd.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/ranks.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

GradientBuckets::GradientBuckets(const nn::ParameterArena& arena, distributed::ProcessGroup& group, int64_t bytes)
    : group_(group) {
  const std::vector<nn::ParameterArena::Entry>& entries = arena.entries();
  const auto item = static_cast<int64_t>(item_size(arena.gradients().dtype()));
  int64_t end = arena.size();
  Bucket open;
  for (size_t i = entries.size(); i-- > 0;) {
    ++open.parameters;
    hooks_.push_back(register_post_accumulate_grad_hook(
        entries[i].tensor, [this, bucket = buckets_.size()](const Tensor&) { note(bucket); }));
    const int64_t begin = i == 0 ? 0 : entries[i].offset;
    if (i > 0 && (end - begin) * item < bytes) continue;
    open.gradients = arena.gradients().narrow(0, begin, end - begin);
    buckets_.push_back(std::exchange(open, {}));
    end = begin;
  }
}

GradientBuckets::~GradientBuckets() {
  for (HookHandle& hook : hooks_) hook.remove();
}

void GradientBuckets::settle() {
  is_open_ = false;
  for (const distributed::Work& work : works_) work.wait();
  works_.clear();
}

void GradientBuckets::begin() {
  settle();
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  is_open_ = true;
}

/** A gradient of the bucket is complete. */
void GradientBuckets::note(size_t bucket) {
  if (!is_open_) return;  // a backward of somebody else
  --buckets_[bucket].missing;
  start_complete();
}

void GradientBuckets::start_complete() {
  while (works_.size() < buckets_.size() && buckets_[works_.size()].missing == 0)
    works_.push_back(start_sum_over_ranks(group_, buckets_[works_.size()].gradients));
}

void GradientBuckets::start() {
  is_open_ = false;
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  start_complete();
}

void GradientBuckets::finish() {
  start();
  settle();
}

}  // namespace tercel::recsys
