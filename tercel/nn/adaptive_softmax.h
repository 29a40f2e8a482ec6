// Adaptive softmax: log-probabilities of many classes without computing all of them (Grave et al. 2017, "Efficient
// softmax approximation for GPUs"); names and arguments are torch.nn's.
#pragma once

#include <memory>
#include <vector>

#include "tercel/nn/layers.h"
#include "tercel/nn/module.h"

namespace tercel::nn {

struct AdaptiveSoftmaxOptions {
  /** Cluster i projects its input to in_features / div_value^(i + 1) features. */
  double div_value = 4;
  bool head_bias = false;
};

/** The log-probability of each row's class [n], and the mean of their negatives. */
struct LogProbabilitiesAndLoss {
  Tensor output, loss;
};

/**
 * The head has an output for each class below cutoffs[0], and one for each cluster of rarer classes:
 * cutoffs[i] to cutoffs[i + 1], the last one to n_classes. ValueError unless cutoffs increase within [1, n_classes -
 * 1].
 */
class TERCEL_API AdaptiveLogSoftmaxWithLoss final : public Module {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             AdaptiveSoftmaxOptions options = {});

  using Module::forward;
  /** x [n, in_features] and target [n], or one row without n. RuntimeError for other sizes or classes out of range. */
  LogProbabilitiesAndLoss forward(const Tensor& x, const Tensor& target);
  LogProbabilitiesAndLoss operator()(const Tensor& x, const Tensor& target) { return forward(x, target); }
  /** Log-probabilities [n, n_classes] of all classes, for x [n, in_features]. */
  Tensor log_prob(const Tensor& x);
  /** The most probable class [n] of each row; clusters are computed only for rows that may be in one. */
  Tensor predict(const Tensor& x);
  const char* name() const override { return "AdaptiveLogSoftmaxWithLoss"; }

 private:
  int64_t shortlist() const { return cutoffs_.front(); }

  /** The cutoffs, with n_classes appended. */
  std::vector<int64_t> cutoffs_;
  std::shared_ptr<Linear> head_;
  std::shared_ptr<ModuleList> tail_;
};

}  // namespace tercel::nn
