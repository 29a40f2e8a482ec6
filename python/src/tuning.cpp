// Searches for good options.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "python/src/kept_exception.h"
#include "python/src/models.h"
#include "python/src/options.h"
#include "tercel/recsys/tune.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::python {

namespace {

nb::dict from_trial(const recsys::Trial& trial) {
  nb::list assignments;
  for (const std::string& text : trial.assignments) assignments.append(to_str(text));
  nb::dict out;
  out["number"] = trial.number;
  out["assignments"] = assignments;
  out["comparison"] = trial.rung;
  out["score"] = trial.has_score ? nb::object(nb::float_(trial.score)) : nb::none();
  out["best_step"] = trial.best_step;
  out["steps"] = trial.steps;
  out["error"] = to_str(trial.error);
  return out;
}

nb::dict from_tune_progress(const recsys::TuneProgress& now) {
  nb::dict out;
  out["comparison"] = now.rung;
  out["comparisons"] = now.rungs;
  out["done"] = now.done;
  out["of"] = now.of;
  out["epochs"] = now.epochs;
  out["trial"] = from_trial(*now.trial);
  out["training"] = now.training != nullptr ? nb::object(from_progress(*now.training)) : nb::none();
  return out;
}

/**
 * The trials, the best first. An exception of the callback or of a signal's handler ends the search as a stop does: the
 * trial is saved, then it is raised.
 */
nb::list run_search(const recsys::ModelConfig& config, const data::Dataset& dataset, nb::handle to,
                    const nb::list& searches, const nb::dict& options, const std::string& resume, nb::handle callback) {
  recsys::Resume how = recsys::Resume::Never;
  TERCEL_CHECK(parse_enum(resume, how), ConfigError, "tune: expected resume='never' or 'auto', found '",
               printable(resume), "'");
  recsys::TuneOptions tune_options;
  set_options(options, option_table<recsys::TuneOptions>(), &tune_options, "tune");
  std::vector<recsys::SearchRange> ranges;
  for_each_item(searches.ptr(),
                [&](PyObject* search, Py_ssize_t) { ranges.push_back(recsys::parse_search(to_text(search))); });
  if (ranges.empty()) ranges = recsys::default_search();
  const std::string folder = to_absolute_path(to);
  KeptException raised;
  Watch watch{nb::none()};
  const auto go_on = [&] {
    raised.guard([&] { watch(); });
    return !raised;
  };
  const auto observer = [&](const recsys::TuneProgress& now) {
    const WithGil scope;
    if (!callback.is_none()) raised.guard([&] { callback(from_tune_progress(now)); });
  };
  recsys::TuneResult result;
  try {
    result =
        released([&] { return recsys::tune(config, dataset, ranges, tune_options, folder, how, observer, go_on); });
  } catch (...) {
    if (raised) raised.raise_after();
    throw;
  }
  if (raised) raised.raise();
  nb::list trials;
  for (const recsys::Trial& trial : result.trials) trials.append(from_trial(trial));
  return trials;
}

}  // namespace

void register_tuning(nb::module_& m) {
  m.def("_tune", run_search, nb::arg("config"), nb::arg("dataset"), nb::arg("folder"), nb::arg("searches"),
        nb::arg("options"), nb::arg("resume"), nb::arg("callback").none());
}

}  // namespace tercel::python
