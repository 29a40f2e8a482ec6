// The planted truth behind generated click logs. Private.
//
// Note [Planted truth]
// A row is one key per field and a few counts, and its click probability is sigmoid(bias + scale * logit), where logit
// is the weighted sum of four terms, each with mean 0 and variance 1 over the rows:
//   linear       an effect for every key of every field;
//   interaction  products of two keys' latent vectors, over all pairs of the interacting fields;
//   dense linear a linear form of the standardised ln(1 + count);
//   dense curved bumps and products of a few of them.
// Effects and latent vectors have mean 0 under the keys' own distribution, and fields are independent, so the
// interaction is orthogonal to every additive model. The first latent component of a key is its linear effect, so that
// the linear effects also predict interactions. Without that, a factorisation model starts at a saddle and needs many
// more rows than a click log of a million has. The effects of rare keys fade, as there is not enough data to learn
// them.
// `bias` and `scale` are solved for on a sample, so that click-through rate and AUC of the probabilities are the
// requested ones for every seed.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/util/philox.h"

namespace tercel::data {

struct ClickField {
  int64_t size = 2;       // keys
  double exponent = 1.5;  // the key of rank r has a probability proportional to (r + 1)^-exponent
};

struct ClickModelSpec {
  std::vector<ClickField> fields;
  int64_t dense_dim = 0;           // at least 4
  int64_t interacting_fields = 0;  // at least 2; which ones, the seed says
  double ctr = 0.25;
  double auc = 0.8;
  int64_t sample_rows = int64_t{1} << 18;  // that rate and AUC are solved for
};

/** Memory for generated rows, in order; `keys` has one key per field, each from 0. */
struct ClickRows {
  float* labels = nullptr;
  float* dense = nullptr;
  int64_t* keys = nullptr;
  float* logits = nullptr;
};

class ClickModel {
 public:
  ClickModel(const ClickModelSpec& spec, uint64_t seed);
  /** Most memory that the constructor needs at once, in bytes. */
  static size_t memory_of(const ClickModelSpec& spec);

  /** Rows [first, first + count): pure functions of seed and row number. Thread-safe. */
  void generate(int64_t first, int64_t count, const ClickRows& out) const;

  /** Moments of ln(1 + count) that dense values are standardised with. */
  const std::vector<double>& dense_mean() const { return dense_mean_; }
  const std::vector<double>& dense_std() const { return dense_std_; }
  /** Mean and standard deviation of the logits. */
  double logit_mean() const { return logit_mean_; }
  double logit_std() const { return logit_std_; }

 private:
  static constexpr int kLatentDim = 4;
  static constexpr int kMaxWords = 512;

  // Draws a key in constant time: column c of n is itself or another key (Walker's alias method).
  struct AliasEntry {
    uint32_t threshold;
    uint32_t other;
  };
  struct Latent {
    float value[kLatentDim];
  };
  /** The four terms of one row. */
  struct Terms {
    double linear, interaction, dense_linear, dense_curved;
  };

  void plant_fields(uint64_t seed);
  void plant_dense(uint64_t seed);
  void calibrate(uint64_t seed);

  int words_per_row() const;
  void draw_words(const Philox& random, int64_t row, uint32_t* words) const;
  void draw_keys(const uint32_t* words, int64_t* keys) const;
  void draw_counts(const uint32_t* words, float* log_counts) const;
  void standardise(float* log_counts) const;
  float linear_term(const int64_t* keys) const;
  float interaction_term(const int64_t* keys) const;
  float dense_linear_term(const float* dense) const;
  float dense_curved_term(const float* dense) const;

  ClickModelSpec spec_;
  Philox rows_;
  std::vector<int64_t> first_key_;            // of each field, in the tables below
  std::vector<AliasEntry> alias_;             // [keys of all fields]
  std::vector<float> effect_;                 // [keys of all fields]; scaled once calibrated
  std::vector<int64_t> interacting_;          // fields
  std::vector<Latent> latent_;                // [keys of all fields]; zero but for interacting ones
  std::vector<float> log_mean_, log_spread_;  // of the counts before rounding, per dense feature
  std::vector<int64_t> curved_;               // the dense features of the curved term
  std::vector<float> dense_effect_;           // per dense feature; scaled once calibrated
  std::vector<double> dense_mean_, dense_std_;
  std::vector<float> dense_shift_, dense_factor_;
  float interaction_scale_ = 1, curved_scale_ = 1, bias_ = 0;
  double logit_mean_ = 0, logit_std_ = 1;
};

}  // namespace tercel::data
