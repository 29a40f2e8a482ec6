#include "tercel/ops/nn/ctc_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kImpossible ? high : high + std::log1p(std::exp(low - high));
}

/** A batch in the layout of the loops. */
struct Batch {
  Tensor log_probs;  // contiguous [time, n, classes]
  Tensor targets;    // int64, contiguous
  std::vector<int64_t> input_lengths, target_lengths, starts;
  int64_t blank;

  int64_t size() const { return log_probs.size(1); }
  int64_t classes() const { return log_probs.size(2); }
};

/**
 * One sample. A path passes through the states blank, label, blank, label ... blank: at each step it stays, advances by
 * one, or skips a blank between two different labels.
 */
template <class T>
class Sample {
 public:
  Sample(const Batch& batch, int64_t i)
      : batch_(batch),
        probs_(batch.log_probs.data<T>() + i * batch.classes()),
        target_(batch.targets.data<int64_t>() + batch.starts[static_cast<size_t>(i)]),
        time_(batch.input_lengths[static_cast<size_t>(i)]),
        states_(2 * batch.target_lengths[static_cast<size_t>(i)] + 1) {}

  /** -log of the total probability of all paths. */
  double loss() {
    if (time_ == 0) return states_ == 1 ? 0 : -kImpossible;
    walk_forward();
    const double* last = &forward_[at(time_ - 1, 0)];
    return -(states_ == 1 ? last[0] : log_sum(last[states_ - 1], last[states_ - 2]));
  }

  /** Writes the gradient of the sample's steps, in the layout of log_probs. */
  void gradient(T* out, double factor) {
    const double total = loss();
    // Log-probability from each state to the end, including the state's own emission.
    std::vector<double> backward(static_cast<size_t>(states_), kImpossible), next = backward;
    std::vector<double> share(static_cast<size_t>(batch_.classes()));
    for (int64_t t = time_ - 1; t >= 0; --t) {
      std::fill(share.begin(), share.end(), kImpossible);
      for (int64_t s = states_ - 1; s >= 0; --s) {
        double sum = kImpossible;
        if (t == time_ - 1) {
          if (s >= states_ - 2) sum = 0;
        } else {
          sum = next[static_cast<size_t>(s)];
          if (s + 1 < states_) sum = log_sum(sum, next[static_cast<size_t>(s + 1)]);
          if (s + 2 < states_ && leaves_out(s + 2)) sum = log_sum(sum, next[static_cast<size_t>(s + 2)]);
        }
        const int64_t label = label_of(s);
        double& of_label = share[static_cast<size_t>(label)];
        of_label = log_sum(of_label, forward_[at(t, s)] + sum);
        backward[static_cast<size_t>(s)] = sum + emission(t, label);
      }
      backward.swap(next);
      for (int64_t c = 0; c < batch_.classes(); ++c)
        out[t * step() + c] =
            static_cast<T>(factor * (std::exp(emission(t, c)) - std::exp(share[static_cast<size_t>(c)] + total)));
    }
  }

  int64_t time() const { return time_; }

 private:
  int64_t step() const { return batch_.size() * batch_.classes(); }
  size_t at(int64_t t, int64_t s) const { return static_cast<size_t>(t * states_ + s); }
  int64_t label_of(int64_t s) const { return s % 2 == 0 ? batch_.blank : target_[s / 2]; }
  bool leaves_out(int64_t s) const { return s >= 2 && label_of(s) != batch_.blank && label_of(s) != label_of(s - 2); }
  double emission(int64_t t, int64_t label) const { return static_cast<double>(probs_[t * step() + label]); }

  void walk_forward() {
    forward_.assign(static_cast<size_t>(time_ * states_), kImpossible);
    for (int64_t s = 0; s < std::min<int64_t>(states_, 2); ++s) forward_[at(0, s)] = emission(0, label_of(s));
    for (int64_t t = 1; t < time_; ++t) {
      for (int64_t s = 0; s < states_; ++s) {
        double sum = forward_[at(t - 1, s)];
        if (s > 0) sum = log_sum(sum, forward_[at(t - 1, s - 1)]);
        if (leaves_out(s)) sum = log_sum(sum, forward_[at(t - 1, s - 2)]);
        forward_[at(t, s)] = sum + emission(t, label_of(s));
      }
    }
  }

  const Batch& batch_;
  const T* probs_;
  const int64_t* target_;
  int64_t time_, states_;
  std::vector<double> forward_;  // [time, states]
};

template <class F>
void visit(const Tensor& x, F f) {
  visit_types<float, double>("ctc_loss", x.dtype(), f);
}

Tensor ctc_gradient(const Batch& batch, const Tensor& losses, const Tensor& grad, bool zero_infinity) {
  const Tensor out = zeros(batch.log_probs.sizes(), batch.log_probs.options());
  const Tensor factors = contiguous(grad);
  visit(out, [&]<class T> {
    parallel_for(0, batch.size(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (zero_infinity && std::isinf(losses.data<T>()[i])) continue;
        Sample<T>(batch, i).gradient(out.data<T>() + i * batch.classes(), static_cast<double>(factors.data<T>()[i]));
      }
    });
  });
  return out;
}

Batch make_batch(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                 int64_t blank) {
  constexpr const char* kOp = "ctc_loss";
  if (log_probs.dtype() != kFloat32 && log_probs.dtype() != kFloat64) refuse_dtype("ctc_loss_cpu", log_probs.dtype());
  const int64_t time = log_probs.size(0), n = log_probs.size(1), classes = log_probs.size(2);
  TERCEL_CHECK(blank >= 0 && blank < classes, RuntimeError, "blank must be in label range");
  TERCEL_CHECK(static_cast<int64_t>(input_lengths.size()) == n, RuntimeError,
               "input_lengths must be of size batch_size");
  TERCEL_CHECK(static_cast<int64_t>(target_lengths.size()) == n, RuntimeError,
               "target_lengths must be of size batch_size");
  TERCEL_CHECK(targets.dim() == 1 || targets.dim() == 2, RuntimeError, kOp,
               ": expected targets [n, longest] or concatenated, but got ", targets.sizes());
  Batch batch{contiguous(log_probs.detach()),
              contiguous(to(targets, kInt64)),
              input_lengths.to_vector(),
              target_lengths.to_vector(),
              {},
              blank};
  int64_t sum = 0, longest = 0;
  for (size_t i = 0; i < target_lengths.size(); ++i) {
    TERCEL_CHECK(input_lengths[i] >= 0 && target_lengths[i] >= 0, RuntimeError, "Expected ",
                 input_lengths[i] < 0 ? "input_lengths" : "target_lengths", " to have value at least 0, but got value ",
                 std::min(input_lengths[i], target_lengths[i]));
    TERCEL_CHECK(input_lengths[i] <= time, RuntimeError, "Expected input_lengths to have value at most ", time,
                 ", but got value ", input_lengths[i]);
    batch.starts.push_back(targets.dim() == 1 ? sum : static_cast<int64_t>(i) * targets.size(1));
    TERCEL_CHECK(!__builtin_add_overflow(sum, target_lengths[i], &sum), RuntimeError, kOp,
                 ": the sum of target_lengths does not fit 64 bits");
    longest = std::max(longest, target_lengths[i]);
  }
  if (targets.dim() == 1) {
    TERCEL_CHECK(targets.size(0) == sum, RuntimeError, "Expected tensor to have size ", sum,
                 " at dimension 0, but got size ", targets.size(0), " for argument #2 'targets'");
  } else {
    TERCEL_CHECK(targets.size(0) == n, RuntimeError, "Expected tensor to have size ", n,
                 " at dimension 0, but got size ", targets.size(0), " for argument #2 'targets'");
    TERCEL_CHECK(targets.size(1) >= longest, RuntimeError, "Expected tensor to have size at least ", longest,
                 " at dimension 1, but got size ", targets.size(1), " for argument #2 'targets'");
  }
  for (size_t i = 0; i < target_lengths.size(); ++i) {
    for (int64_t k = 0; k < target_lengths[i]; ++k) {
      const int64_t label = batch.targets.data<int64_t>()[batch.starts[i] + k];
      TERCEL_CHECK(label >= 0 && label < classes, RuntimeError, kOp, ": target ", label, " of sample ", i,
                   " is out of range for ", classes, " classes");
    }
  }
  return batch;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                int64_t blank, Reduction reduction, bool zero_infinity) {
  check_strided("ctc_loss", log_probs, "log_probs");
  check_strided("ctc_loss", targets, "targets");
  TERCEL_CHECK(log_probs.dim() == 2 || log_probs.dim() == 3, RuntimeError,
               "ctc_loss: expected log_probs [time, n, classes] or [time, classes] but got ", log_probs.sizes());
  if (log_probs.dim() == 2) {
    TERCEL_CHECK(targets.dim() == 1, RuntimeError, "ctc_loss: expected the targets of one sample but got ",
                 targets.sizes());
    const Tensor loss =
        ctc_loss(unsqueeze(log_probs, 1), targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
    return reduction == Reduction::None ? squeeze(loss, 0) : loss;
  }
  Batch batch = make_batch(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor losses, kept;
  {
    const NoRecordGuard no_record;
    losses = empty({batch.size()}, log_probs.options());
    visit(losses, [&]<class T> {
      parallel_for(0, batch.size(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) losses.data<T>()[i] = static_cast<T>(Sample<T>(batch, i).loss());
      });
    });
    kept = clone(losses);
    if (zero_infinity)
      visit(losses, [&]<class T> {
        for (int64_t i = 0; i < batch.size(); ++i)
          if (std::isinf(losses.data<T>()[i])) losses.data<T>()[i] = 0;
      });
  }
  if (should_record(log_probs))
    record("CtcLossBackward0", losses, {log_probs},
           once_differentiable([log_probs = SavedTensor(log_probs), targets = SavedTensor(targets),
                                input_lengths = std::move(batch.input_lengths),
                                target_lengths = std::move(batch.target_lengths), blank, kept = SavedTensor(kept),
                                zero_infinity](BackwardCall& call) {
             const Batch again = make_batch(log_probs.get(), targets.get(), input_lengths, target_lengths, blank);
             call.set(0, ctc_gradient(again, kept.get(), call.grad(), zero_infinity));
           }));
  if (reduction != Reduction::Mean) return reduce_loss(losses, reduction);
  const Tensor lengths = empty({static_cast<int64_t>(target_lengths.size())}, kFloat64);
  for (size_t i = 0; i < target_lengths.size(); ++i)
    lengths.data<double>()[i] = static_cast<double>(std::max<int64_t>(target_lengths[i], 1));
  return reduce_loss(div(losses, to(lengths, losses.dtype())), Reduction::Mean);
}

}  // namespace tercel
