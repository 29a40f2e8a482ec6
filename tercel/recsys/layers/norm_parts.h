// What layers that normalise have in common: scale and shift, running statistics.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tercel/nn/parameter_arena.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/enum_names.h"

namespace tercel::recsys {

/** Default is 1 for gamma and 0 for beta. */
enum class NormInit : uint8_t { Default, Zero };

constexpr auto enum_names(NormInit) {
  return std::to_array<EnumName<NormInit>>({{NormInit::Default, "Default"}, {NormInit::Zero, "Zero"}});
}

/** Parameters gamma [n] and beta [n] of a layer, in this order. */
struct GammaAndBeta {
  size_t gamma = 0, beta = 0;

  /** Reserves name.gamma and name.beta. Either choice for beta is 0. */
  static GammaAndBeta reserve(nn::ParameterArena& parameters, const std::string& name, int64_t n, NormInit gamma) {
    GammaAndBeta both;
    both.gamma = parameters.reserve(name + ".gamma", {n}, nn::Init::constant(gamma == NormInit::Zero ? 0 : 1));
    both.beta = parameters.reserve(name + ".beta", {n}, nn::Init::zero());
    return both;
  }
};

/** Mean and variance of each column, of batches of rows: buffers running_mean [n] and running_var [n] of a layer. */
class RunningStatistics {
 public:
  /** First values: mean 0 and variance 1. */
  TERCEL_API void allocate(int64_t n, const TensorOptions& place);
  /** The buffers by their names, "name.running_mean" and "name.running_var". */
  TERCEL_API std::vector<std::pair<std::string, Tensor>> buffers(const std::string& name) const;
  /**
   * (x - mean) / sqrt(variance + eps) * gamma + beta of rows x [rows, n]; gamma and beta may be undefined. In training
   * with the rows' own statistics, which become a part `factor` of the running ones; in evaluation, and of a single
   * row, which has no variance, with the running ones, which stay. Where the context has a group, the rows are those of
   * all ranks.
   */
  TERCEL_API Tensor normalize(const Tensor& x, const ForwardContext& context, double factor, double eps,
                              const Tensor& gamma = {}, const Tensor& beta = {}) const;

 private:
  Tensor normalize_parts(const Tensor& x, distributed::ProcessGroup& group, double factor, double eps,
                         const Tensor& gamma, const Tensor& beta) const;

  Tensor mean_, var_;
};

}  // namespace tercel::recsys
