// Clipping of gradients: by value, and by the norm of all of them together.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/embedding/row_gradient.h"

namespace tercel::optim {

/** What happens to a gradient before a step: its elements are cut off at +-limit, then multiplied by scale. */
struct GradientClip {
  double limit = std::numeric_limits<double>::infinity();
  double scale = 1;
};

/**
 * The Euclidean norm of gradients of any number of parameters. The sum of squares is made in blocks of elements that
 * depend on nothing else, so the norm is the same for any number of threads and on every instruction set.
 */
class TERCEL_API GradientNorm {
 public:
  /** Begins anew; larger elements than `limit` count as that. */
  void clear(double limit = std::numeric_limits<double>::infinity());
  /** Adds a contiguous gradient of float32 or float64; RuntimeError for others. */
  void add(const Tensor& gradient);
  /** Adds a row gradient, with the values of equal rows added up, but for the rows before `first_row`. */
  void add_rows(const Gradient& gradient, UniqueRows& unique_rows, int64_t first_row = 0);
  /** Adds a sum of squares that another norm of the same limit has. */
  void add_squares(double squares) { squares_ += squares; }
  double squares() const { return squares_; }
  double limit() const { return limit_; }
  /** Not finite if one of the elements is not. */
  double value() const;

 private:
  double limit_ = std::numeric_limits<double>::infinity(), squares_ = 0;
  std::vector<double> parts_;  // a member only to reuse its memory
};

/** The factor that makes a norm at most `most`; 1 if it is. */
TERCEL_API double clip_scale(double norm, double most);

}  // namespace tercel::optim
