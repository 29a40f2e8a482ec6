#include <algorithm>
#include <cmath>
#include <numeric>

#include "tercel/data/click_model_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"

namespace tercel::data {

namespace {

/** Random streams: rows, and one for every kind of parameter, so that they do not depend on each other's length. */
enum Stream : uint64_t {
  kRows,
  kSample,
  kEffects,
  kLatents,
  kFieldWeights,
  kInteracting,
  kDenseOrder,
  kDenseEffects,
};

// Shares of the logit's variance.
constexpr double kLinearShare = 0.63;
constexpr double kInteractionShare = 0.16;
constexpr double kDenseLinearShare = 0.14;
constexpr double kDenseCurvedShare = 0.07;

// Weights of the latent components in a product; the first one is the linear effect.
constexpr float kLatentWeights[4] = {1.0f, 0.15f, 0.1f, 0.1f};

// Keys rarer than this have smaller effects, in proportion.
constexpr double kFadeBelow = 0.06;

// Share of a dense feature's variance (before the exponential) that all of a row's features have in common.
constexpr float kCommonShare = 0.25f;

constexpr int kNumCurved = 4;
constexpr int64_t kGrainRows = 1024;

class Normals {
 public:
  Normals(uint64_t seed, Stream stream) : random_{seed, stream} {}
  double next() {
    if (have_second_) {
      have_second_ = false;
      return second_;
    }
    const PhiloxBlock block = random_(index_++);
    const NormalPairF64 pair =
        normal_f64(random_u64(block.word[0], block.word[1]), random_u64(block.word[2], block.word[3]));
    second_ = pair.second;
    have_second_ = true;
    return pair.first;
  }

 private:
  Philox random_;
  uint64_t index_ = 0;
  double second_ = 0;
  bool have_second_ = false;
};

/** The numbers below `count` in a random order. */
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, Stream stream) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const Philox random{seed, stream};
  for (int64_t i = count - 1; i > 0; --i) {
    const PhiloxBlock block = random(static_cast<uint64_t>(i));
    const auto j =
        static_cast<int64_t>(uniform_int(random_u64(block.word[0], block.word[1]), static_cast<uint64_t>(i) + 1));
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

std::vector<double> power_law(const ClickField& field) {
  std::vector<double> p(static_cast<size_t>(field.size));
  double sum = 0;
  for (size_t r = 0; r < p.size(); ++r) sum += p[r] = std::pow(static_cast<double>(r) + 1, -field.exponent);
  for (double& value : p) value /= sum;
  return p;
}

/** Normal effects that decrease with rarity, of mean 0 and variance 1 under p. */
std::vector<double> draw_effects(const std::vector<double>& p, Normals& normals) {
  std::vector<double> effects(p.size());
  double mean = 0;
  for (size_t k = 0; k < p.size(); ++k) {
    effects[k] = normals.next() * std::min(1.0, p[k] / kFadeBelow);
    mean += p[k] * effects[k];
  }
  double variance = 0;
  for (size_t k = 0; k < p.size(); ++k) {
    effects[k] -= mean;
    variance += p[k] * effects[k] * effects[k];
  }
  for (double& effect : effects) effect /= std::sqrt(variance);
  return effects;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/** A distribution of logits as weighted values, ascending. */
struct LogitBins {
  std::vector<double> value, weight;

  explicit LogitBins(const std::vector<double>& logits) {
    constexpr int64_t kBins = 1024;
    const auto [low, high] = std::minmax_element(logits.begin(), logits.end());
    const double width = std::max((*high - *low) / kBins, 1e-12);
    std::vector<double> sum(kBins), count(kBins);
    for (const double logit : logits) {
      const auto bin = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>((logit - *low) / width), kBins - 1));
      sum[bin] += logit;
      count[bin] += 1;
    }
    for (size_t bin = 0; bin < sum.size(); ++bin) {
      if (count[bin] == 0) continue;
      value.push_back(sum[bin] / count[bin]);
      weight.push_back(count[bin] / static_cast<double>(logits.size()));
    }
  }

  double ctr(double scale, double bias) const {
    double sum = 0;
    for (size_t i = 0; i < value.size(); ++i) sum += weight[i] * sigmoid(scale * value[i] + bias);
    return sum;
  }
  /** The AUC of these probabilities on labels drawn from them. */
  double auc(double scale, double bias) const {
    double clicks = 0, others = 0, ordered = 0;
    for (size_t i = 0; i < value.size(); ++i) {
      const double p = sigmoid(scale * value[i] + bias);
      ordered += weight[i] * p * (others + weight[i] * (1 - p) / 2);
      clicks += weight[i] * p;
      others += weight[i] * (1 - p);
    }
    return ordered / (clicks * others);
  }
};

/** The argument at which an increasing function reaches `target`, between low and high. */
template <class F>
double solve(double low, double high, double target, F function) {
  for (int i = 0; i < 45; ++i) {
    const double middle = (low + high) / 2;
    (function(middle) < target ? low : high) = middle;
  }
  return (low + high) / 2;
}

struct Moments {
  double mean = 0, std = 1;
};

Moments moments(const std::vector<double>& values) {
  Moments result;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  result.mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.std = std::sqrt(squares / static_cast<double>(values.size()));
  if (!(result.std > 0)) result.std = 1;
  return result;
}

}  // namespace

ClickModel::ClickModel(const ClickModelSpec& spec, uint64_t seed) : spec_(spec), rows_{seed, Stream::kRows} {
  TERCEL_ASSERT(spec.dense_dim >= kNumCurved && spec.interacting_fields >= 2 &&
                spec.interacting_fields <= static_cast<int64_t>(spec.fields.size()) && words_per_row() <= kMaxWords);
  plant_fields(seed);
  plant_dense(seed);
  calibrate(seed);
}

size_t ClickModel::memory_of(const ClickModelSpec& spec) {
  size_t keys = 0, most = 0;
  for (const ClickField& field : spec.fields) {
    keys += static_cast<size_t>(field.size);
    most = std::max(most, static_cast<size_t>(field.size));
  }
  // The tables, and while a field is planted its probabilities, effects, a latent component, shares and columns.
  return keys * (sizeof(float) + sizeof(Latent) + sizeof(AliasEntry)) +
         most * (3 * sizeof(double) + 2 * sizeof(uint32_t));
}

void ClickModel::plant_fields(uint64_t seed) {
  const size_t num_fields = spec_.fields.size();
  size_t keys = 0;
  for (const ClickField& field : spec_.fields) keys += static_cast<size_t>(field.size);
  effect_.reserve(keys);
  latent_.reserve(keys);
  alias_.reserve(keys);
  interacting_ = shuffled(static_cast<int64_t>(num_fields), seed, Stream::kInteracting);
  interacting_.resize(static_cast<size_t>(spec_.interacting_fields));

  std::vector<double> weights(num_fields);
  double norm = 0;
  const Philox weight_random{seed, Stream::kFieldWeights};
  for (size_t f = 0; f < num_fields; ++f) {
    weights[f] = 0.5 + uniform_f32(weight_random(f).word[0]);
    norm += weights[f] * weights[f];
  }

  Normals effect_normals(seed, Stream::kEffects), latent_normals(seed, Stream::kLatents);
  for (size_t f = 0; f < num_fields; ++f) {
    const ClickField& field = spec_.fields[f];
    const std::vector<double> p = power_law(field);
    const std::vector<double> effects = draw_effects(p, effect_normals);
    const size_t first = effect_.size();
    first_key_.push_back(static_cast<int64_t>(first));
    for (const double effect : effects) effect_.push_back(static_cast<float>(effect * weights[f] / std::sqrt(norm)));

    latent_.resize(effect_.size());
    if (std::find(interacting_.begin(), interacting_.end(), static_cast<int64_t>(f)) != interacting_.end()) {
      for (int d = 0; d < kLatentDim; ++d) {
        const std::vector<double> component = d == 0 ? effects : draw_effects(p, latent_normals);
        for (size_t k = 0; k < p.size(); ++k)
          latent_[first + k].value[d] = static_cast<float>(component[k]) * std::sqrt(kLatentWeights[d]);
      }
    }

    // Columns below the average are filled from those above it.
    const double columns = static_cast<double>(p.size());
    std::vector<double> share(p.size());
    std::vector<uint32_t> poor, rich;
    for (size_t k = 0; k < p.size(); ++k) {
      share[k] = p[k] * columns;
      (share[k] < 1 ? poor : rich).push_back(static_cast<uint32_t>(k));
    }
    alias_.resize(effect_.size(), {UINT32_MAX, 0});
    for (size_t k = 0; k < p.size(); ++k) alias_[first + k].other = static_cast<uint32_t>(k);
    while (!poor.empty() && !rich.empty()) {
      const uint32_t small = poor.back(), large = rich.back();
      poor.pop_back();
      alias_[first + small] = {static_cast<uint32_t>(share[small] * 0x1p32), large};
      share[large] -= 1 - share[small];
      if (share[large] < 1) {
        rich.pop_back();
        poor.push_back(large);
      }
    }
  }
}

void ClickModel::plant_dense(uint64_t seed) {
  const auto dim = static_cast<size_t>(spec_.dense_dim);
  for (size_t d = 0; d < dim; ++d) {
    const auto place = static_cast<float>(d) / static_cast<float>(dim - 1);
    log_mean_.push_back(6 * place);
    log_spread_.push_back(1 + place);
  }
  const std::vector<int64_t> order = shuffled(spec_.dense_dim, seed, Stream::kDenseOrder);
  curved_.assign(order.begin(), order.begin() + kNumCurved);
  dense_effect_.resize(dim);
  Normals normals(seed, Stream::kDenseEffects);
  // A third of the features has no effect.
  for (size_t i = 0; i < dim - dim / 3; ++i)
    dense_effect_[static_cast<size_t>(order[i])] = static_cast<float>(normals.next());
}

void ClickModel::calibrate(uint64_t seed) {
  const auto dim = static_cast<size_t>(spec_.dense_dim);
  const auto fields = spec_.fields.size();
  const auto rows = static_cast<size_t>(spec_.sample_rows);
  std::vector<float> dense(rows * dim);
  std::vector<double> linear(rows), interaction(rows), dense_linear(rows), dense_curved(rows);

  const Philox random{seed, Stream::kSample};
  parallel_for(0, spec_.sample_rows, kGrainRows, [&](int64_t begin, int64_t end) {
    uint32_t words[kMaxWords];
    std::vector<int64_t> keys(fields);
    for (int64_t row = begin; row < end; ++row) {
      const auto i = static_cast<size_t>(row);
      draw_words(random, row, words);
      draw_keys(words, keys.data());
      draw_counts(words, &dense[i * dim]);
      linear[i] = linear_term(keys.data());
      interaction[i] = interaction_term(keys.data());
    }
  });

  for (size_t d = 0; d < dim; ++d) {
    std::vector<double> column(rows);
    for (size_t i = 0; i < rows; ++i) column[i] = dense[i * dim + d];
    const Moments m = moments(column);
    dense_mean_.push_back(m.mean);
    dense_std_.push_back(m.std);
    dense_shift_.push_back(static_cast<float>(m.mean));
    dense_factor_.push_back(static_cast<float>(1 / m.std));
  }
  parallel_for(0, spec_.sample_rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto i = static_cast<size_t>(row);
      standardise(&dense[i * dim]);
      dense_linear[i] = dense_linear_term(&dense[i * dim]);
      dense_curved[i] = dense_curved_term(&dense[i * dim]);
    }
  });

  // Linear effects and interactions have mean 0 and a known variance; counts have no simple distribution.
  double latent_variance = 0;
  for (const float weight : kLatentWeights) latent_variance += static_cast<double>(weight) * weight;
  const auto partners = static_cast<double>(spec_.interacting_fields - 1);
  const double pairs = static_cast<double>(spec_.interacting_fields) * partners / 2;
  const double linear_factor = std::sqrt(kLinearShare);
  const double interaction_factor = std::sqrt(kInteractionShare / (pairs * latent_variance));
  const Moments dense_moments = moments(dense_linear), curved_moments = moments(dense_curved);
  const double dense_factor = std::sqrt(kDenseLinearShare) / dense_moments.std;
  const double curved_factor = std::sqrt(kDenseCurvedShare) / curved_moments.std;
  std::vector<double> logits(rows);
  for (size_t i = 0; i < rows; ++i) {
    logits[i] = linear_factor * linear[i] + interaction_factor * interaction[i] + dense_factor * dense_linear[i] +
                curved_factor * dense_curved[i];
  }

  const LogitBins bins(logits);
  const auto bias_for = [&](double scale) {
    return solve(-60, 60, spec_.ctr, [&](double bias) { return bins.ctr(scale, bias); });
  };
  const double scale = solve(0, 30, spec_.auc, [&](double s) { return bins.auc(s, bias_for(s)); });
  const double bias = bias_for(scale);

  for (float& effect : effect_) effect *= static_cast<float>(scale * linear_factor);
  for (float& effect : dense_effect_) effect *= static_cast<float>(scale * dense_factor);
  interaction_scale_ = static_cast<float>(scale * interaction_factor);
  curved_scale_ = static_cast<float>(scale * curved_factor);
  bias_ = static_cast<float>(bias);
  const Moments logit_moments = moments(logits);
  logit_mean_ = bias + scale * logit_moments.mean;
  logit_std_ = scale * logit_moments.std;
}

// One word for each key, a pair for two normals (the first normal is common to all counts), one for the label.
int ClickModel::words_per_row() const {
  return static_cast<int>(spec_.fields.size()) + static_cast<int>(spec_.dense_dim / 2 + 1) * 2 + 1;
}

void ClickModel::draw_words(const Philox& random, int64_t row, uint32_t* words) const {
  const int blocks = (words_per_row() + 3) / 4;
  const uint64_t first = static_cast<uint64_t>(row) * static_cast<uint64_t>(blocks);
  for (int i = 0; i < blocks; ++i) {
    const PhiloxBlock block = random(first + static_cast<uint64_t>(i));
    for (int j = 0; j < 4; ++j) words[4 * i + j] = block.word[j];
  }
}

void ClickModel::draw_keys(const uint32_t* words, int64_t* keys) const {
  for (size_t f = 0; f < spec_.fields.size(); ++f) {
    const uint64_t product = static_cast<uint64_t>(words[f]) * static_cast<uint64_t>(spec_.fields[f].size);
    const auto column = static_cast<uint32_t>(product >> 32);
    const AliasEntry entry = alias_[static_cast<size_t>(first_key_[f]) + column];
    keys[f] = first_key_[f] + (static_cast<uint32_t>(product) <= entry.threshold ? column : entry.other);
  }
}

// ln(1 + count).
void ClickModel::draw_counts(const uint32_t* words, float* log_counts) const {
  const uint32_t* const pairs = words + spec_.fields.size();
  const NormalPairF32 start = normal_f32(pairs[0], pairs[1]);
  const float common = std::sqrt(kCommonShare) * start.first;
  const float own = std::sqrt(1 - kCommonShare);
  NormalPairF32 pair = start;
  for (int64_t d = 0; d < spec_.dense_dim; ++d) {
    if (d % 2 == 1) pair = normal_f32(pairs[d + 1], pairs[d + 2]);
    const float normal = d % 2 == 1 ? pair.first : pair.second;
    const auto i = static_cast<size_t>(d);
    const float count = std::floor(std::exp(log_mean_[i] + log_spread_[i] * (common + own * normal)));
    log_counts[d] = std::log1p(count);
  }
}

void ClickModel::standardise(float* log_counts) const {
  for (size_t d = 0; d < dense_shift_.size(); ++d) log_counts[d] = (log_counts[d] - dense_shift_[d]) * dense_factor_[d];
}

float ClickModel::linear_term(const int64_t* keys) const {
  float sum = 0;
  for (size_t f = 0; f < spec_.fields.size(); ++f) sum += effect_[static_cast<size_t>(keys[f])];
  return sum;
}

float ClickModel::interaction_term(const int64_t* keys) const {
  // The sum over products of pairs is half of (the square of the sum minus the sum of the squares).
  Latent sum{};
  float squares = 0;
  for (const int64_t f : interacting_) {
    const Latent& latent = latent_[static_cast<size_t>(keys[f])];
    for (int d = 0; d < kLatentDim; ++d) {
      sum.value[d] += latent.value[d];
      squares += latent.value[d] * latent.value[d];
    }
  }
  float square = 0;
  for (const float value : sum.value) square += value * value;
  return (square - squares) / 2;
}

float ClickModel::dense_linear_term(const float* dense) const {
  float sum = 0;
  for (size_t d = 0; d < dense_effect_.size(); ++d) sum += dense_effect_[d] * dense[d];
  return sum;
}

float ClickModel::dense_curved_term(const float* dense) const {
  const auto bump = [](float x) { return (x * x - 1) * std::exp(-0.25f * x * x); };
  float x[kNumCurved];
  for (int i = 0; i < kNumCurved; ++i) x[i] = dense[curved_[static_cast<size_t>(i)]];
  return bump(x[0]) - bump(x[1]) + std::tanh(x[2]) * std::tanh(x[3]);
}

void ClickModel::generate(int64_t first, int64_t count, const ClickRows& out) const {
  const auto fields = static_cast<int64_t>(spec_.fields.size());
  const int label_word = words_per_row() - 1;
  parallel_for(0, count, kGrainRows, [&](int64_t begin, int64_t end) {
    uint32_t words[kMaxWords];
    for (int64_t i = begin; i < end; ++i) {
      int64_t* const keys = out.keys + i * fields;
      float* const dense = out.dense + i * spec_.dense_dim;
      draw_words(rows_, first + i, words);
      draw_keys(words, keys);
      draw_counts(words, dense);
      standardise(dense);
      const float logit = bias_ + linear_term(keys) + interaction_scale_ * interaction_term(keys) +
                          dense_linear_term(dense) + curved_scale_ * dense_curved_term(dense);
      out.logits[i] = logit;
      out.labels[i] = words[label_word] * 0x1p-32 < sigmoid(logit) ? 1.0f : 0.0f;
    }
  });
}

}  // namespace tercel::data
