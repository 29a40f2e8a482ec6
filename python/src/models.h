// Python bindings of tercel/recsys: what python/tercel/recsys is made of.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "python/src/distributed.h"
#include "python/src/python.h"
#include "python/src/single_user.h"
#include "tercel/data/array_inputs.h"
#include "tercel/data/batch.h"
#include "tercel/data/data_identity.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {
struct Progress;
}

namespace tercel::python {

/** A model that one thread may use at a time: that of a session, or one loaded from a run. */
class ModelObject {
 public:
  virtual ~ModelObject() = default;
  virtual recsys::Model& model() = 0;
  virtual const recsys::ModelConfig& config() = 0;
  /** Of the rows that it is trained on. */
  virtual const data::DataIdentity& data() = 0;
  virtual SingleUser& user() = 0;
  /** Of the processes that train it, each with its part of every batch; null with one process. */
  virtual GroupObject* group() { return nullptr; }
  /** Python gets tensors of the model. */
  virtual void expect_writes() {}
};

/** f() without the GIL, and, of one of several processes, while no other thread uses their group. */
template <class F>
auto released_of(ModelObject& self, F&& f) {
  GroupObject* const ranks = self.group();
  return ranks != nullptr ? ranks->use([&](distributed::ProcessGroup&) { return f(); }) : released(f);
}

/** ConfigError with the nearest name if there is none. */
recsys::EmbeddingTable& table_of(recsys::Model& model, const std::string& name);

nb::dict from_metrics(const recsys::MetricValues& values);
/** The fields of Python's Progress. */
nb::dict from_progress(const recsys::Progress& now);

/** Looks for signals during work without the GIL, and tells a function how far the work is, both at most 20 times a
 * second. */
class Watch {
 public:
  explicit Watch(nb::handle function) : function_(function) {}

  /** Raises what a signal's handler, or the function, raises. */
  template <class... A>
  void operator()(const A&... numbers) {
    if (Clock::now() < next_) return;
    const WithGil scope;
    if (PyErr_CheckSignals() != 0) raise_pending();
    if (!function_.is_none()) function_(numbers...);
    next_ = Clock::now() + std::chrono::milliseconds(50);
  }

 private:
  using Clock = std::chrono::steady_clock;

  nb::handle function_;
  Clock::time_point next_ = {};
};

/** A batch of the parts of Python's Batch. */
data::Batch to_batch(nb::handle parts);
/** Inputs, labels and weights of rows that are given as arrays. */
struct RowArrays {
  /** Of a list of (name, values, row offsets or None, weights or None), and labels and weights of rows or None. */
  RowArrays(nb::handle arrays, nb::handle given_labels, nb::handle given_weights);

  data::Batch batch(const recsys::Model& model) const { return model.make_batch(inputs, labels, weights); }

  std::vector<data::ArrayInput> inputs;
  Tensor labels, weights;
};

void register_models(nb::module_& m);
void register_sessions(nb::module_& m);
void register_tuning(nb::module_& m);

}  // namespace tercel::python
