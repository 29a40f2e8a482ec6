// Sessions and runs.
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "python/src/kept_exception.h"
#include "python/src/models.h"
#include "python/src/out.h"
#include "tercel/autograd/autograd.h"
#include "tercel/autograd/gradient.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/hugectr/collection_files.h"
#include "tercel/recsys/hugectr/session_states.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/session.h"
#include "tercel/recsys/table_order.h"
#include "tercel/recsys/trainer.h"
#include "tercel/recsys/warm_start.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/warning.h"

namespace tercel::python {

namespace {

using recsys::ModelConfig;
using recsys::NewData;
using recsys::Session;
using recsys::Trainer;

NewData to_new_data(bool accepted) { return accepted ? NewData::Accept : NewData::Refuse; }

/** A session of its own, or that of a trainer, and who uses it. */
struct Owned {
  nb::object group;  // keeps the GroupObject
  std::unique_ptr<Session> session;
  std::unique_ptr<Trainer> trainer;  // null after close()
  bool has_trainer = false;
  SingleUser user{"session", "a signal handler or a callback may not train, load or save", "make a session for each"};

  Trainer& open_trainer() const {
    TERCEL_CHECK(trainer, ValueError, "trainer: it is closed");
    return *trainer;
  }
};

class SessionObject final : public ModelObject {
 public:
  /** `group`: of processes that train together, with a schema as rows. */
  SessionObject(const ModelConfig& config, nb::handle rows, nb::handle dtype, nb::handle group)
      : owned_(std::make_shared<Owned>()) {
    std::unique_ptr<Session>& own = owned_->session;
    if (!group.is_none()) {
      owned_->group = nb::borrow(group);
      const data::Schema schema = to_schema(nb::cast<nb::dict>(rows));
      nb::cast<GroupObject&>(group).use(
          [&](distributed::ProcessGroup& ranks) { own = std::make_unique<Session>(config, schema, ranks); });
    } else if (nb::isinstance<data::Dataset>(rows)) {
      const auto& dataset = nb::cast<const data::Dataset&>(rows);
      own = released([&] { return std::make_unique<Session>(config, dataset); });
    } else {
      own = std::make_unique<Session>(config, to_schema(nb::cast<nb::dict>(rows)));
    }
    TensorOptions place;
    if (!dtype.is_none()) place.dtype = to_dtype(dtype.ptr());
    Watch watch{nb::none()};
    released([&] {
      own->initialize(place, [&] {
        watch();
        return true;
      });
    });
  }
  /** That of a trainer. */
  explicit SessionObject(std::shared_ptr<Owned> owned) : owned_(std::move(owned)) {}

  recsys::Model& model() override { return session().model(); }
  const ModelConfig& config() override { return session().config(); }
  const data::DataIdentity& data() override { return session().identity().data; }
  SingleUser& user() override { return owned_->user; }
  GroupObject* group() override { return owned_->group.is_valid() ? nb::cast<GroupObject*>(owned_->group) : nullptr; }
  Session& session() { return owned_->has_trainer ? owned_->open_trainer().session() : *owned_->session; }
  void expect_writes() override { session().expect_writes(); }
  bool has_trainer() const { return owned_->has_trainer; }

  /** f(session) without the GIL, unless a callback asks for it. */
  template <class F>
  auto train(F&& f) {
    owned_->user.check_unused();
    const SingleUser::Use use(owned_->user);
    Session& of = session();
    if (GroupObject* const ranks = group()) return ranks->use([&](distributed::ProcessGroup&) { return f(of); });
    return released([&] { return f(of); });
  }

 private:
  std::shared_ptr<Owned> owned_;
};

nb::object evaluate(SessionObject& self, const std::string& name, nb::handle progress) {
  const SingleUser::Use use(self.user());
  Session& session = self.session();
  Watch watch(progress);
  const auto part = parse_enum_or_throw<data::PartName>("part", name);
  const int64_t total = part == data::PartName::Valid ? session.validation_rows() : session.test_rows();
  const recsys::MetricValues values = released([&] {
    return session.evaluate(part, [&](int64_t rows) {
      watch(rows, total);
      return true;
    });
  });
  return from_metrics(values);
}

/** The last intact checkpoint of a run or a folder of checkpoints, or the checkpoint itself. */
recsys::Checkpoint open_last(const std::string& path) {
  if (recsys::is_checkpoint_folder(path)) return recsys::Checkpoint(path);
  std::vector<std::string> warnings;
  const std::string store = recsys::is_model_folder(path) ? join_path(path, "checkpoints") : path;
  std::optional<recsys::Checkpoint> found =
      recsys::open_checkpoint(store, recsys::Which::Last, recsys::Verify::Contents, warnings);
  TERCEL_CHECK(found, DataError, printable(path), ": expected a checkpoint, or a folder with checkpoints");
  for (const std::string& warning : warnings) tercel::warn(warning);
  return *std::move(found);
}

nb::list from_texts(const std::vector<std::string>& texts) {
  nb::list out;
  for (const std::string& text : texts) out.append(to_str(text));
  return out;
}

nb::list load(SessionObject& self, nb::handle path, bool new_data) {
  TERCEL_CHECK(!self.has_trainer(), RuntimeError,
               "session: load: it is a trainer's, which continues its run: use Trainer(..., resume='auto')");
  const std::string from = to_absolute_path(path);
  return from_texts(self.train([&](Session& session) { return session.load(open_last(from), to_new_data(new_data)); }));
}

nb::object save(SessionObject& self, nb::handle folder, int64_t keep_last) {
  const std::string to = to_absolute_path(folder);
  return from_path(self.train([&](Session& session) {
    recsys::CheckpointStore store(to, keep_last);
    session.save(store);
    return *store.latest();
  }));
}

/** ({name: gradient} of dense parameters, {name: (rows, values)} of tables); none of what is frozen. */
nb::object gradients(SessionObject& self) {
  const SingleUser::Use use(self.user());
  Session& session = self.session();
  TERCEL_CHECK(session.has_gradients(), RuntimeError, "session: gradients: there are no gradients of a step");
  nb::dict dense, tables;
  for (const auto& entry : session.model().parameters().entries()) {
    const Gradient gradient = gradient_of(entry.tensor);
    if (entry.tensor.requires_grad() && gradient.defined())
      dense[to_str(entry.name)] = own(wrap(gradient.values.detach()));
  }
  for (const auto& table : session.model().embeddings().tables()) {
    const Gradient gradient = gradient_of(table->weight());
    if (!gradient.defined()) continue;
    UniqueRows unique;
    const Gradient sums = unique.reduce(gradient);
    tables[to_str(table->name())] =
        nb::make_tuple(own(wrap(dense_copy(sums.rows))), own(wrap(dense_copy(sums.values))));
  }
  return nb::make_tuple(dense, tables);
}

/** ({parameter: {state: tensor}}, {table: {state: tensor}}): views of the optimizers' states. */
nb::object optimizer_states(SessionObject& self) {
  const SingleUser::Use use(self.user());
  Session& session = self.session();
  self.expect_writes();
  nb::dict dense, tables;
  const optim::Optimizer& of = session.dense_optimizer();
  const Span<const char*> names = optim::Optimizer::state_names(of.options().type);
  for (const auto& entry : session.model().parameters().entries()) {
    nb::dict states;
    for (size_t i = 0; i < of.states().size(); ++i)
      states[names[i]] =
          own(wrap(of.states()[i].narrow(0, entry.offset, numel_of(IntSpan(entry.sizes))).view(IntSpan(entry.sizes))));
    dense[to_str(entry.name)] = states;
  }
  recsys::EmbeddingCollection& embeddings = session.model().embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    const Span<const char*> of_table = optim::Optimizer::state_names(embeddings.optimizer(t));
    const std::vector<Tensor>& values = embeddings.tables()[t]->store().states();
    nb::dict states;
    for (size_t i = 0; i < values.size(); ++i) states[of_table[i]] = own(wrap(values[i]));
    tables[to_str(embeddings.tables()[t]->name())] = states;
  }
  return nb::make_tuple(dense, tables);
}

std::vector<std::string> to_names(const nb::list& names) {
  std::vector<std::string> out;
  for_each_item(names.ptr(), [&](PyObject* name, Py_ssize_t) { out.emplace_back(to_text(name)); });
  return out;
}

/** f(session), which reads files into its model. */
template <class F>
void load_files(SessionObject& self, const char* function, F&& f) {
  self.expect_writes();
  self.train([&](Session& session) {
    TERCEL_CHECK(!session.has_gradients(), RuntimeError, function, ": within a step: call update() or discard() first");
    f(session);
  });
}

/** The tables of the collection, or those of these names, which the caller has checked. */
std::vector<recsys::hugectr::CollectionTable> collection_of(Session& session, const std::vector<std::string>& names) {
  std::vector<recsys::hugectr::CollectionTable> found;
  for (const recsys::hugectr::CollectionTable& table : recsys::hugectr::collection_of(session.model()))
    if (names.empty() || std::find(names.begin(), names.end(), table.table->name()) != names.end())
      found.push_back(table);
  return found;
}

/** HugeCTR's files of a model. */
void register_hugectr_files(nb::class_<SessionObject, ModelObject>& session_class) {
  namespace hugectr = recsys::hugectr;
  session_class
      .def(
          "hugectr_save",
          [](SessionObject& self, nb::handle prefix, int64_t iteration) {
            const std::string path = to_path(prefix);
            self.train([&](Session& session) {
              hugectr::write_snapshot({path, iteration}, session.model(), hugectr::states_of(session), session.group());
            });
          })
      .def("hugectr_load_dense",
           [](SessionObject& self, nb::handle file) {
             const std::string path = to_path(file);
             load_files(self, "load_dense_weights", [&](Session& session) {
               recsys::do_together(session.group(), [&] { hugectr::read_dense(path, session.model()); });
             });
           })
      .def("hugectr_load_dense_states",
           [](SessionObject& self, nb::handle file) {
             const std::string path = to_path(file);
             load_files(self, "load_dense_optimizer_states", [&](Session& session) {
               recsys::do_together(session.group(), [&] {
                 hugectr::read_dense_states(path, session.model(), hugectr::states_of(session).dense,
                                            optim::Optimizer::state_names(session.config().optimizer.type));
               });
             });
           })
      .def("hugectr_load_table",
           [](SessionObject& self, nb::handle folder, const std::string& name) {
             const std::string path = to_path(folder);
             load_files(self, "load_sparse_weights", [&](Session& session) {
               hugectr::read_table(path, table_of(session.model(), name), session.group());
             });
           })
      .def("hugectr_load_table_states",
           [](SessionObject& self, nb::handle file, const std::string& name) {
             const std::string path = to_path(file);
             load_files(self, "load_sparse_optimizer_states", [&](Session& session) {
               const auto& tables = session.model().embeddings().tables();
               const hugectr::ModelStates states = hugectr::states_of(session);
               for (size_t t = 0; t < tables.size(); ++t)
                 if (tables[t]->name() == name)
                   hugectr::read_table_states(path, *tables[t], states.tables[t],
                                              recsys::order_of_keys(*tables[t], session.group()), session.group());
             });
           })
      .def("hugectr_save_collection",
           [](SessionObject& self, nb::handle folder, const nb::list& names, bool wide_keys) {
             const std::string path = to_path(folder);
             const std::vector<std::string> wanted = to_names(names);
             self.train([&](Session& session) {
               hugectr::write_collection(path, collection_of(session, wanted), wide_keys, session.group());
             });
           })
      .def("hugectr_load_collection", [](SessionObject& self, nb::handle folder, const nb::list& names) {
        const std::string path = to_path(folder);
        const std::vector<std::string> wanted = to_names(names);
        load_files(self, "embedding_load", [&](Session& session) {
          hugectr::read_collection(path, collection_of(session, wanted), session.group());
        });
      });
}

}  // namespace

nb::dict from_progress(const recsys::Progress& now) {
  static constexpr const char* kKinds[] = {"step", "evaluation", "checkpoint"};
  nb::dict out;
  out["kind"] = kKinds[static_cast<size_t>(now.kind)];
  out["step"] = now.step;
  out["total_steps"] = now.total_steps;
  out["rows"] = now.rows;
  out["seconds"] = now.seconds;
  out["loss"] = now.loss;
  out["learning_rate"] = now.learning_rate;
  out["part"] = to_str(std::string(now.kind == recsys::Progress::Kind::Evaluation ? to_string(now.part) : ""));
  out["metrics"] = from_metrics(now.metrics);
  out["path"] = from_path(now.path);
  return out;
}

namespace {

/**
 * A run. An exception of a callback or of a signal's handler, KeyboardInterrupt too, ends it as a stop does: the last
 * step is saved, then the exception is raised.
 */
class TrainerObject {
 public:
  TrainerObject(const ModelConfig& config, const data::Dataset& dataset, nb::handle folder, const std::string& resume,
                bool new_data) {
    owned_->has_trainer = true;
    recsys::Resume how = recsys::Resume::Never;
    TERCEL_CHECK(parse_enum(resume, how), ConfigError, "trainer: expected resume='never' or 'auto', found '",
                 printable(resume), "'");
    const std::string path = to_absolute_path(folder);
    released([&] {
      owned_->trainer =
          std::make_unique<Trainer>(config, dataset, path, how, to_new_data(new_data), [this] { return may_go_on(); });
    });
    note_state();
    if (!raised_) return;
    released([&] { trainer().run([](const recsys::Progress&) {}); });  // removes what the start left
    raised_.raise();
  }

  /** Whether it came to its end. */
  bool run(nb::handle callback) {
    owned_->user.check_unused();
    TERCEL_CHECK(::getpid() == process_, RuntimeError, "trainer: another process has made it: make one here");
    const SingleUser::Use use(owned_->user);
    Trainer& of = trainer();
    recsys::TrainEnd end = recsys::TrainEnd::Stopped;
    try {
      end = released([&] {
        return of.run(
            [&](const recsys::Progress& now) {
              const WithGil scope;
              note(now);
              const SingleUser::Loan loan(owned_->user);
              raised_.guard([&] { callback(from_progress(now)); });
            },
            [this] { return may_go_on(); });
      });
    } catch (...) {
      end_run();
      if (raised_) raised_.raise_after();
      throw;
    }
    end_run();
    if (raised_) raised_.raise();
    return end != recsys::TrainEnd::Stopped;
  }
  // Other threads may ask for them during a run.
  const recsys::MetricValues& metrics() {
    trainer();
    return metrics_;
  }
  const recsys::RunResult& result() {
    trainer();
    return result_;
  }
  const std::optional<std::string>& checkpoint() {
    trainer();
    return checkpoint_;
  }

  /** (dense tensors, rows, new rows, texts of what is left), of the model of a run or checkpoint. */
  nb::object warm_start(nb::handle path) {
    owned_->user.check_unused();
    const SingleUser::Use use(owned_->user);
    const std::string from = to_path(path);
    const recsys::WarmStart start = released([&] {
      recsys::LoadedModel model = recsys::load_model(from);
      recsys::WarmStart taken = trainer().warm_start(model);
      taken.warnings.insert(taken.warnings.begin(), model.warnings.begin(), model.warnings.end());
      return taken;
    });
    for (const std::string& warning : start.warnings) warn(warning);
    return nb::make_tuple(start.parameters, start.rows, start.new_rows, from_texts(start.left));
  }

  void stop() { stop_ = true; }
  /** Ends the readers' threads and releases the folder. */
  void close() {
    owned_->user.check_unused();
    std::unique_ptr<Trainer> last = std::move(owned_->trainer);
    released([&] { last.reset(); });
  }

  Trainer& trainer() { return owned_->open_trainer(); }
  SessionObject session() { return SessionObject(owned_); }

 private:
  bool may_go_on() {
    raised_.guard([&] { watch_(); });
    return !stop_ && !raised_;
  }
  void note(const recsys::Progress& now) {
    if (now.kind == recsys::Progress::Kind::Evaluation) metrics_ = now.metrics;
    if (now.kind == recsys::Progress::Kind::Checkpoint) checkpoint_ = now.path;
  }
  void note_state() {
    metrics_ = trainer().last_metrics();
    result_ = trainer().result();
    checkpoint_ = trainer().last_checkpoint();
  }
  void end_run() {
    stop_ = false;
    note_state();
  }

  Watch watch_{nb::none()};
  KeptException raised_;
  std::atomic<bool> stop_ = false;
  recsys::MetricValues metrics_;
  recsys::RunResult result_;
  std::optional<std::string> checkpoint_;
  const pid_t process_ = ::getpid();
  const std::shared_ptr<Owned> owned_ = std::make_shared<Owned>();  // sessions may live longer
};

void register_session(nb::module_& m) {
  nb::class_<SessionObject, ModelObject> session_class(m, "_Session");
  register_hugectr_files(session_class);
  session_class
      .def(nb::init<const ModelConfig&, nb::handle, nb::handle, nb::handle>(), nb::arg("config"), nb::arg("rows"),
           nb::arg("dtype").none(), nb::arg("group").none() = nb::none())
      .def("step", [](SessionObject& self) { return self.train([](Session& session) { return session.step(); }); })
      .def("step_batch",
           [](SessionObject& self, nb::handle parts) {
             const data::Batch batch = to_batch(parts);
             self.train([&](Session& session) { session.step(batch); });
           })
      .def(
          "step_arrays",
          [](SessionObject& self, const nb::list& arrays, nb::handle labels, nb::handle weights) {
            const RowArrays rows(arrays, labels, weights);
            self.train([&](Session& session) { session.step(rows.batch(session.model())); });
          },
          nb::arg("arrays"), nb::arg("labels").none(), nb::arg("weights").none())
      .def("forward_backward",
           [](SessionObject& self, nb::handle parts) {
             const data::Batch batch = to_batch(parts);
             self.train([&](Session& session) { session.forward_backward(batch); });
           })
      .def(
          "forward_backward_arrays",
          [](SessionObject& self, const nb::list& arrays, nb::handle labels, nb::handle weights) {
            const RowArrays rows(arrays, labels, weights);
            self.train([&](Session& session) { session.forward_backward(rows.batch(session.model())); });
          },
          nb::arg("arrays"), nb::arg("labels").none(), nb::arg("weights").none())
      .def("reduce", [](SessionObject& self) { self.train([](Session& session) { session.reduce(); }); })
      .def("update", [](SessionObject& self) { self.train([](Session& session) { session.update(); }); })
      .def("discard", [](SessionObject& self) { self.train([](Session& session) { session.discard(); }); })
      .def("gradients", gradients)
      .def("optimizer_states", optimizer_states)
      .def("evaluate", evaluate, nb::arg("part"), nb::arg("progress").none())
      .def("save", save, nb::arg("folder"), nb::arg("keep_last"))
      .def("load", load, nb::arg("path"), nb::arg("new_data"))
      .def("steps", [](SessionObject& self) { return self.session().steps(); })
      .def("rows", [](SessionObject& self) { return self.session().rows(); })
      .def("loss", [](SessionObject& self) { return self.session().loss(); })
      .def("is_whole", [](SessionObject& self) { return self.session().is_whole(); })
      .def("gradient_norm", [](SessionObject& self) { return self.session().gradient_norm(); })
      .def("nan_batches", [](SessionObject& self) { return self.session().nan_batches(); })
      .def("check_finite",
           [](SessionObject& self) {
             const SingleUser::Use use(self.user());
             Session& session = self.session();
             released([&] { session.check_finite(); });
           })
      .def("learning_rate",
           [](SessionObject& self) {
             const SingleUser::Use use(self.user());
             return self.session().learning_rate();
           })
      .def("set_learning_rate",
           [](SessionObject& self, double rate) {
             const SingleUser::Use use(self.user());
             self.session().set_learning_rate(rate);
           })
      .def("clear_learning_rate",
           [](SessionObject& self) {
             const SingleUser::Use use(self.user());
             self.session().clear_learning_rate();
           })
      .def("set_table_rows",
           [](SessionObject& self, const std::string& name, nb::handle keys, nb::handle vectors) {
             const Tensor& of_keys = to_tensor(keys, "keys");
             const Tensor& of_vectors = to_tensor(vectors, "vectors");
             self.expect_writes();
             self.train([&](Session& session) {
               TERCEL_CHECK(!session.has_gradients(), RuntimeError,
                            "load_table: within a step: call update() or discard() first");
               recsys::EmbeddingTable& table = table_of(session.model(), name);
               recsys::do_together(session.group(), [&] { recsys::set_vectors(table, of_keys, of_vectors); });
             });
           })
      .def("frozen",
           [](SessionObject& self) {
             const SingleUser::Use use(self.user());
             const auto& names = self.session().frozen();
             return from_texts({names.begin(), names.end()});
           })
      .def("freeze",
           [](SessionObject& self, const nb::list& names) {
             const std::vector<std::string> all = to_names(names);
             const SingleUser::Use use(self.user());
             self.session().freeze(all);
           })
      .def("unfreeze", [](SessionObject& self, const nb::list& names) {
        const std::vector<std::string> all = to_names(names);
        const SingleUser::Use use(self.user());
        self.session().unfreeze(all);
      });
}

void register_trainer(nb::module_& m) {
  nb::class_<TrainerObject>(m, "_Trainer")
      .def(nb::init<const ModelConfig&, const data::Dataset&, nb::handle, const std::string&, bool>(),
           nb::arg("config"), nb::arg("dataset"), nb::arg("folder"), nb::arg("resume"), nb::arg("new_data"))
      .def("run", &TrainerObject::run, nb::arg("callback"))
      .def("warm_start", &TrainerObject::warm_start)
      .def("stop", &TrainerObject::stop)
      .def("close", &TrainerObject::close)
      .def("session", &TrainerObject::session)
      .def("step", [](TrainerObject& self) { return self.trainer().step(); })
      .def("checkpoint",
           [](TrainerObject& self) -> nb::object {
             const std::optional<std::string>& path = self.checkpoint();
             return path ? from_path(*path) : nb::none();
           })
      .def("metrics", [](TrainerObject& self) { return from_metrics(self.metrics()); })
      .def("result",
           [](TrainerObject& self) {
             const recsys::RunResult& result = self.result();
             return nb::make_tuple(result.best_step, from_metrics(result.valid), from_metrics(result.test));
           })
      .def("warnings", [](TrainerObject& self) { return from_texts(self.trainer().warnings()); });
}

}  // namespace

void register_sessions(nb::module_& m) {
  register_session(m);
  register_trainer(m);
}

}  // namespace tercel::python
