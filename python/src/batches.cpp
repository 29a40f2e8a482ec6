// Batches of a dataset: _BatchReader, from which python/tercel/data/batch_reader.py makes its reader.
#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "python/src/options.h"
#include "python/src/single_user.h"
#include "tercel/data/batch_reader.h"

namespace tercel::python {

namespace {

using data::BatchReader;
using data::ReaderPosition;

/** How long a wait goes on before Python looks for Ctrl-C. */
constexpr int64_t kPatienceMs = 50;

/** (name, slots, hotness, order, whether batches share the offsets, offsets, keys, weights or None). */
nb::object from_input(const data::SparseBatch& input) {
  const bool shared = input.row_offsets.use_count() > 1 || input.row_offsets.storage().use_count() > 1;
  return nb::make_tuple(to_str(input.name), input.slot_num, input.hotness, to_str(to_string(input.order)), shared,
                        own(wrap(input.row_offsets)), own(wrap(input.keys)), own(wrap(input.key_weights)));
}

/** The arguments of the class Batch. */
nb::object from_batch(const data::Batch& batch) {
  nb::list inputs, columns;
  for (const data::SparseBatch& input : batch.sparse) inputs.append(from_input(input));
  for (const data::RowColumn& column : batch.columns)
    columns.append(nb::make_tuple(to_str(column.name), own(wrap(column.values))));
  return nb::make_tuple(batch.epoch, batch.row, batch.rows, batch.global_row, batch.global_rows,
                        own(wrap(batch.labels)), own(wrap(batch.dense)), inputs, columns, own(wrap(batch.weights)));
}

/** The first multiple of `epochs` behind an epoch. */
int64_t loop_end(int64_t epoch, int64_t epochs) {
  int64_t end = 0;
  return __builtin_mul_overflow(epoch / epochs + 1, epochs, &end) ? std::numeric_limits<int64_t>::max() : end;
}

/** Waits until next() returns at once. Looks for Ctrl-C at least once: no batch has been taken yet. */
void wait_for_batch(BatchReader& reader) {
  for (bool ready = false; !ready;) {
    ready = released([&] { return reader.ready_within(kPatienceMs); });
    if (PyErr_CheckSignals() != 0) raise_pending();
  }
}

// Note [Batches on their way]
// A signal's handler may raise an exception wherever Python code runs, and so between the reader, which counts a batch
// as delivered, and the loop that gets it. So a batch is held here until its object is complete; nothing runs between
// that and the loop's variable. A batch whose way was cut short is the next one again, also for position().

/** A reader that can be closed, and that one thread uses at a time. */
class ReaderObject {
 public:
  explicit ReaderObject(std::unique_ptr<BatchReader> reader) : reader_(std::move(reader)) {}
  ~ReaderObject() { drop(); }
  ReaderObject(const ReaderObject&) = delete;
  ReaderObject& operator=(const ReaderObject&) = delete;

  void close() {
    user_.check_unused();
    drop();
  }
  bool is_closed() const { return reader_ == nullptr; }

  /** For functions that change nothing: a signal's handler may call them while its thread waits for a batch. */
  const BatchReader& read() const {
    if (!user_.is_used_here()) user_.check_unused();
    check_open();
    return *reader_;
  }
  /** Where the batch that a loop gets next begins. */
  ReaderPosition position() const {
    const BatchReader& reader = read();
    return held_ ? held_->position : reader.position();
  }

  /** Sets where a loop that begins now ends. */
  void begin_loop() {
    const SingleUser::Use use(user_);
    check_open();
    set_end();
  }
  /** make() of the next batch's parts; no object after the last one. */
  nb::object next(nb::handle make) {
    const SingleUser::Use use(user_);
    check_open();
    if (!held_) {
      wait_for_batch(*reader_);
      Held held{reader_->position(), {}, {}};
      // A new batch each time: tensors that Python has had belong to it.
      if (!reader_->next(held.batch)) return {};
      held_ = std::move(held);
    }
    if (!held_->parts.is_valid()) {
      held_->parts = from_batch(held_->batch);
      held_->batch = {};
    }
    nb::object made = own(PyObject_CallObject(make.ptr(), held_->parts.ptr()));
    held_.reset();
    return made;
  }
  template <class F>
  void move(F&& to_position) {
    const SingleUser::Use use(user_);
    check_open();
    released([&] { to_position(*reader_); });
    held_.reset();
    set_end();
  }

 private:
  struct Held {
    ReaderPosition position;
    data::Batch batch;
    nb::object parts;  // made of the batch
  };

  void check_open() const { TERCEL_CHECK(reader_, ValueError, "reader: it is closed"); }
  void set_end() {
    const int64_t epochs = reader_->options().epochs;
    if (epochs == 0) return;
    const int64_t end = loop_end(position().epoch, epochs);
    released([&] { reader_->set_end(end); });
  }
  void drop() {
    held_.reset();
    std::unique_ptr<BatchReader> last = std::move(reader_);
    const WithoutGil scope(last != nullptr);
    last.reset();  // waits for the threads
  }

  std::unique_ptr<BatchReader> reader_;
  std::optional<Held> held_;  // see Note [Batches on their way]
  SingleUser user_{"reader", "a signal handler may only ask for its position and sizes", "open a reader for each"};
};

/** The iterator of a loop. */
class BatchLoop {
 public:
  BatchLoop(ReaderObject& reader, nb::object make)
      : owner_(nb::find(reader)), reader_(&reader), make_(std::move(make)) {}

  nb::object next() {
    if (state_ == State::New) {
      reader_->begin_loop();
      state_ = State::Begun;
    }
    nb::object batch;
    if (state_ == State::Begun) batch = reader_->next(make_);
    if (batch.is_valid()) return batch;
    state_ = State::Ended;
    throw nb::stop_iteration();
  }

 private:
  enum class State : uint8_t { New, Begun, Ended };

  nb::object owner_;  // keeps the reader
  ReaderObject* reader_;
  nb::object make_;
  State state_ = State::New;
};

void open_reader(ReaderObject* self, const data::Dataset& dataset, const std::string& part, const nb::dict& values) {
  data::ReaderOptions options;
  set_options(values, option_table<data::ReaderOptions>(), &options, "reader");
  const data::PartName name = to_part(part);
  TERCEL_CHECK(name == data::PartName::Train || !dataset.part(name).files.empty(), ConfigError,
               "reader: expected a dataset with a ", to_string(name), " part, found one without");
  new (self) ReaderObject(released([&] { return std::make_unique<BatchReader>(dataset, name, options); }));
}

}  // namespace

void register_batches(nb::module_& m) {
  nb::class_<BatchLoop>(m, "_BatchLoop")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &BatchLoop::next);
  nb::class_<ReaderObject>(m, "_BatchReader")
      .def("__init__", open_reader)
      .def("loop", [](ReaderObject& self, nb::object make) { return BatchLoop(self, std::move(make)); })
      .def("position",
           [](const ReaderObject& self) {
             const ReaderPosition position = self.position();
             return options_to_dict(option_table<ReaderPosition>(), &position);
           })
      .def("seek",
           [](ReaderObject& self, const nb::dict& values) {
             ReaderPosition position;
             set_options(values, option_table<ReaderPosition>(), &position, "position");
             self.move([&](BatchReader& reader) { reader.seek(position); });
           })
      .def("rewind", [](ReaderObject& self) { self.move([](BatchReader& reader) { reader.rewind(); }); })
      .def("options",
           [](const ReaderObject& self) {
             return options_to_dict(option_table<data::ReaderOptions>(), &self.read().options());
           })
      .def("epoch_rows", [](const ReaderObject& self) { return self.read().epoch_rows(); })
      .def("epoch_batches", [](const ReaderObject& self) { return self.read().epoch_batches(); })
      .def("close", &ReaderObject::close)
      .def("is_closed", &ReaderObject::is_closed);
}

}  // namespace tercel::python
