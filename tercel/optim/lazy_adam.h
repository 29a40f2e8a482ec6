// Adam's steps on rows without a gradient, made up for when a row is used again: update type LazyGlobal.
//
// Note [Lazy steps]
// With update type Global, Adam also moves rows that a step does not use. n such steps in a row are
//
//   w -= sum over i = 1..n of a_i beta1^i m / (beta2^(i / 2) sqrt(v) + epsilon);  m *= beta1^n;  v *= beta2^n
//
// where a_i is the rate of the i-th of them with the bias corrections of both moments. LazyGlobal does them at once,
// before the row's next gradient, with C m / (D sqrt(v) + epsilon) in place of the sum:
//
//   C = sum of a_i beta1^i,  D = C / sum of a_i (beta1 / sqrt(beta2))^i
//
// which is exact where epsilon is small or large next to sqrt(v), as almost always; where they are equal, the movement
// is right to 1e-5 for beta1 0.9, beta2 0.999.
//
// C and D are sums over the rates of the skipped steps, by a recurrence from the last step back. The rates of the last
// kHistory steps are kept. So that no row waits longer, each step also brings 1 / kHistory of all rows up to date, in
// blocks of kBlock rows, whether it uses them or not. Steps are those of the table: while it is frozen, none passes.
// Each row has the number of its last step modulo kModulus, which a float32 represents exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/span.h"

namespace tercel {
struct SkippedRows;
}

namespace tercel::optim {

/** What a number of skipped steps does: w -= numerator m / (root sqrt(v) + epsilon), m *= decay1, v *= decay2. */
struct SkippedSteps {
  double numerator, root, decay1, decay2;
};

/** The history of one table's steps, and what they do to rows that skip them. */
class TERCEL_API LazyAdam {
 public:
  static constexpr int64_t kHistory = 1024;              ///< steps whose rates are kept
  static constexpr int64_t kBlock = 64;                  ///< consecutive rows that are brought up to date together
  static constexpr int64_t kModulus = int64_t{1} << 24;  ///< of the numbers of steps in rows

  /** Before the first step. The numbers are Adam's. */
  LazyAdam(double beta1, double beta2, double epsilon);

  /**
   * [1 + kHistory] float64 in the host's memory: how many steps there were, and the rates of the last ones. A part of
   * the state: with it and the rows, training continues with the same bits.
   */
  const Tensor& history() const { return history_; }
  /** Prepares the next step. */
  void begin_step();
  /**
   * Brings rows [n], ascending, to the end of the step before this one, and marks them as used in this one. Weight, m
   * and v have contiguous rows of equal sizes; `last` a number for each row. Returns whether every stored value is
   * finite.
   */
  bool catch_up(const Tensor& weight, Span<Tensor> states, const Tensor& rows) const;
  /** Does the same with the rows whose turn it is, without using them. */
  bool catch_up_some(const Tensor& weight, Span<Tensor> states) const;
  /** Ends the step; its rate has both bias corrections in it. */
  void end_step(double rate);

 private:
  void add_history(SkippedRows& rows) const;

  double beta1_, ratio_, epsilon_;
  Tensor history_;
  int64_t step_ = 0;                   // the one that has begun
  int64_t known_ = 0;                  // steps before it whose rates are kept
  std::vector<SkippedSteps> skipped_;  // [kHistory + 1]
};

}  // namespace tercel::optim
