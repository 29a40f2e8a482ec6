// Whatever streams of the Arrow C interface say of their schema and batches, they are a dataset, which every way of
// reading and of keeping rows reads alike, or a typed error; everything is released once.
//
// The bytes of an input are the options, the schema and the batches, as they are asked for. What no consumer can check
// holds: pointers that are not null point to arrays, to as many as are said, and buffers have the lengths that follow
// from lengths and offsets of arrays. They are no longer than that, so that reading beyond is found.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/read_rows.h"
#include "tercel/data/arrow_table.h"
#include "tercel/util/error.h"

namespace {

using tercel::ArrowArray;
using tercel::ArrowArrayStream;
using tercel::ArrowSchema;
using tercel::data::ArrowTableOptions;
using tercel::data::Dataset;
using tercel::data::MissingKeys;
using tercel::data::TableStorage;
using tercel::fuzz::BadRecords;
using tercel::fuzz::Outcome;
using tercel::fuzz::read_every_way;

// Rows of a batch, with its offset; and elements of the arrays below it, with theirs.
constexpr int64_t kMostRows = 16, kMostElements = 48;

int live = 0;  // schemas, batches and streams that were handed out and not released

void expect(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

  uint8_t byte() { return next_ == end_ ? uint8_t{0} : *next_++; }
  bool one_of(unsigned in) { return byte() % in == in - 1; }
  /** Small numbers, and such as overflow. */
  int64_t number() {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
    constexpr int64_t kRare[] = {-1, kLeast, kMost, kMost - 1, kMost / 2 + 1, int64_t{1} << 40, (int64_t{1} << 40) + 1};
    const uint8_t chosen = byte();
    return chosen < 240 ? chosen % 17 : kRare[chosen % std::size(kRare)];
  }
  std::string text(size_t size) {
    std::string result;
    while (result.size() < size) result += static_cast<char>(byte());
    return result;
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
};

constexpr std::string_view kFormats[] = {"f",   "g",  "l",    "i",     "L",
                                         "I",   "+l", "+L",   "+w:2",  "+w:1",
                                         "e",   "b",  "c",    "C",     "s",
                                         "S",   "n",  "tdD",  "tsn:",  "tDm",
                                         "+s",  "u",  "+w:0", "+w:-1", "+w:4611686018427387904",
                                         "+vl", "vu", "d:9,2"};

constexpr const char* kNames[] = {"a", "a_weight", "b", "c", "d"};

/** Bytes of elements of a format; bits are rounded up. */
size_t buffer_bytes(std::string_view format, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  if (format == "b") return (count + 7) / 8;
  if (format == "c" || format == "C") return count;
  if (format == "s" || format == "S" || format == "e") return 2 * count;
  if (format == "i" || format == "I" || format == "f" || format == "tdD") return 4 * count;
  return 8 * count;
}

/** A field, and the arrays of its columns. */
struct Field {
  std::string format, name;
  ArrowSchema schema{};
  std::vector<std::unique_ptr<Field>> children;
  std::unique_ptr<Field> dictionary;
  std::vector<ArrowSchema*> pointers;

  Field(Input& in, std::string given_format, std::string given_name, int depth) : name(std::move(given_name)) {
    format = !given_format.empty() ? std::move(given_format)
             : in.one_of(16)       ? in.text(in.byte() % 5u)
                                   : std::string(kFormats[in.byte() % std::size(kFormats)]);
    const bool nested = format.starts_with("+");
    for (uint8_t i = 0; nested && depth < 2 && i < (format == "+s" ? in.byte() % 6 : 1); ++i)
      children.push_back(std::make_unique<Field>(in, "", depth > 0 || in.one_of(16) ? "item" : kNames[i], depth + 1));
    if (!nested && depth < 3 && in.one_of(6)) dictionary = std::make_unique<Field>(in, "", "", depth + 1);
  }
  /** Everything that the schema points to; the field must live until it is released. */
  void fill(Input& in) {
    pointers.clear();
    for (const auto& child : children) {
      child->fill(in);
      pointers.push_back(in.one_of(64) ? nullptr : &child->schema);
    }
    if (dictionary) dictionary->fill(in);
    schema.format = in.one_of(128) ? nullptr : format.c_str();
    schema.name = in.one_of(64) ? nullptr : name.c_str();
    schema.metadata = nullptr;
    schema.flags = 2;
    schema.n_children = in.one_of(64) ? std::min<int64_t>(in.number(), 0) : static_cast<int64_t>(pointers.size());
    schema.children = in.one_of(128) ? nullptr : pointers.data();
    schema.dictionary = dictionary ? &dictionary->schema : nullptr;
    schema.release = in.one_of(64) ? nullptr : [](ArrowSchema* self) { self->release = nullptr; };
    schema.private_data = nullptr;
  }
};

/** An array of a field. */
struct Array {
  ArrowArray array{};
  std::vector<std::unique_ptr<Array>> children;
  std::unique_ptr<Array> dictionary;
  std::vector<ArrowArray*> pointers;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::vector<const void*> buffers;

  /** What may be read of it: `most` elements, offset included. */
  Array(Input& in, const Field& field, int64_t most, int depth) {
    array.length = depth < 2 && !in.one_of(32) ? most / 2 : in.number();
    array.offset = in.one_of(4) ? in.number() : 0;
    array.null_count = in.one_of(16) ? in.number() : in.byte() % 2;
    keep_promise(most);
    for (const auto& child : field.children) {
      children.push_back(std::make_unique<Array>(in, *child, depth == 0 ? 3 * kMostRows : kMostElements, depth + 1));
      pointers.push_back(in.one_of(64) ? nullptr : &children.back()->array);
    }
    if (field.dictionary) dictionary = std::make_unique<Array>(in, *field.dictionary, kMostElements, 2);
    const bool large = field.format == "+L", list = field.format == "+l";
    const bool only_bits = field.format == "+s" || field.format.starts_with("+w");
    if (field.format != "n") add_bits(in, most);
    if (list || large)
      add_offsets(in, most + 1, large);
    else if (!only_bits && field.format != "n")
      add_values(in, buffer_bytes(field.format, most), field.format);
    array.n_buffers = static_cast<int64_t>(buffers.size());
    if (in.one_of(64)) array.n_buffers = std::min(in.number(), array.n_buffers);
    if (!buffers.empty() && in.one_of(64)) buffers.back() = nullptr;
    array.buffers = in.one_of(64) ? nullptr : buffers.data();
    array.n_children = static_cast<int64_t>(pointers.size());
    if (in.one_of(64)) array.n_children = std::min(in.number(), array.n_children);
    array.children = in.one_of(64) ? nullptr : pointers.data();
    array.dictionary = dictionary && !in.one_of(64) ? &dictionary->array : nullptr;
    array.release = in.one_of(64) ? nullptr : [](ArrowArray* self) { self->release = nullptr; };
  }

 private:
  /** Numbers that are possible are small ones; others are those that are seen to be wrong. */
  void keep_promise(int64_t most) {
    if (array.length < 0 || array.offset < 0 || array.length > std::numeric_limits<int64_t>::max() - array.offset)
      return;
    array.offset = std::min(array.offset, most);
    array.length = std::min(array.length, most - array.offset);
  }
  std::byte* add(size_t bytes, bool odd) {
    memory.push_back(std::make_unique<std::byte[]>(bytes + (odd ? 1 : 0)));
    buffers.push_back(memory.back().get() + (odd ? 1 : 0));
    return memory.back().get() + (odd ? 1 : 0);
  }
  void add_bits(Input& in, int64_t most) {
    if (!in.one_of(4)) return buffers.push_back(nullptr);
    const size_t bytes = buffer_bytes("b", most);
    std::byte* const bits = add(bytes, false);
    for (size_t i = 0; i < bytes; ++i) bits[i] = std::byte{in.byte()};
  }
  void add_offsets(Input& in, int64_t count, bool large) {
    std::byte* const to = add(static_cast<size_t>(count) * (large ? 8 : 4), in.one_of(16));
    const bool wild = in.one_of(16);
    for (int64_t i = 0, next = in.byte() % 3; i < count; ++i) {
      const int64_t offset = wild ? in.number() : next;
      const auto narrow = static_cast<int32_t>(std::clamp<int64_t>(offset, INT32_MIN, INT32_MAX));
      std::memcpy(to + i * (large ? 8 : 4), large ? static_cast<const void*>(&offset) : &narrow, large ? 8 : 4);
      next += in.byte() % 3;
    }
  }
  void add_values(Input& in, size_t bytes, std::string_view format) {
    std::byte* const to = add(bytes, in.one_of(16));
    const bool wild = in.one_of(8);
    for (size_t i = 0; i < bytes; ++i) to[i] = wild ? std::byte{in.byte()} : std::byte{0};
    // Labels are 0 and 1, and keys are small, unless they are wild.
    if (wild) return;
    constexpr float kOne = 1.0f;
    constexpr double kHalf = 0.5;
    const size_t width = buffer_bytes(format, 1);
    for (size_t i = 0; i + width <= bytes; i += width) {
      const uint8_t small = in.byte() % 4;
      if (format == "f" && small == 1) std::memcpy(to + i, &kOne, sizeof(kOne));
      if (format == "g" && small == 1) std::memcpy(to + i, &kHalf, sizeof(kHalf));
      if (format != "f" && format != "g" && format != "e") to[i] = std::byte{small};
    }
  }
};

struct Producer {
  Input in;
  Field root;
  int batches = 0;

  explicit Producer(Input input) : in(input), root(in, in.one_of(128) ? "" : "+s", "", 0), batches(in.byte() % 4) {}

  static Producer& of(ArrowArrayStream* self) { return *static_cast<Producer*>(self->private_data); }

  ArrowArrayStream stream() {
    ArrowArrayStream out{};
    out.private_data = this;
    out.get_schema = [](ArrowArrayStream* self, ArrowSchema* schema) {
      Producer& producer = of(self);
      if (producer.in.one_of(128)) return EIO;
      producer.root.fill(producer.in);
      *schema = producer.root.schema;
      if (!schema->release) return 0;
      ++live;
      schema->release = [](ArrowSchema* top) {
        --live;
        top->release = nullptr;
      };
      return 0;
    };
    out.get_next = [](ArrowArrayStream* self, ArrowArray* batch) {
      Producer& producer = of(self);
      if (producer.in.one_of(64)) return producer.in.one_of(2) ? ENOMEM : EIO;
      if (producer.batches-- <= 0) return 0;
      auto content = std::make_unique<Array>(producer.in, producer.root, kMostRows, 0);
      *batch = content->array;
      if (!batch->release) return 0;
      ++live;
      batch->private_data = content.release();
      batch->release = [](ArrowArray* top) {
        --live;
        delete static_cast<Array*>(top->private_data);
        top->release = nullptr;
      };
      return 0;
    };
    out.get_last_error = [](ArrowArrayStream* self) { return of(self).in.one_of(2) ? nullptr : "broken"; };
    out.release = [](ArrowArrayStream* self) {
      --live;
      self->release = nullptr;
    };
    ++live;
    return out;
  }
};

ArrowTableOptions options_of(Input& in) {
  ArrowTableOptions options;
  options.integers = in.one_of(2);
  options.missing_keys = in.one_of(2) ? MissingKeys::Empty : MissingKeys::Error;
  if (in.one_of(4)) options.fill_null_dense = {0.0};
  if (in.one_of(4)) options.fill_null_key = {1};
  if (in.one_of(4)) options.nnz_per_slot = {1 + in.byte() % 3};
  for (const std::string column : {"a", "b", "c", "d"}) {
    switch (in.byte() % 5) {
      case 0: options.label.push_back(column); break;
      case 1: options.dense.push_back(column); break;
      case 2: options.categorical.push_back(column); break;
      case 3: options.columns.push_back(column); break;
      default: break;
    }
  }
  if (in.one_of(4)) options.slot_size_array = {4, 0};
  if (in.one_of(3)) options.weighted = {"a"};
  return options;
}

/** What is read, or why nothing is. */
Outcome outcome_of(Input rest, ArrowTableOptions options, TableStorage storage) {
  options.storage = storage;
  const bool has_valid = rest.one_of(4);
  Producer producer(rest), other(rest);
  Outcome outcome;
  ArrowArrayStream train = producer.stream(), valid = other.stream();
  try {
    const Dataset dataset =
        tercel::data::dataset_from_arrow({&train, has_valid ? &valid : nullptr, nullptr}, options, [](int64_t) {});
    expect(dataset.train.rows() > 0);
    outcome = read_every_way(dataset, {}, BadRecords::AllCanBeLeftOut);
  } catch (const tercel::DataError& error) {
    outcome.error = error.what();
  } catch (const tercel::ConfigError& error) {
    outcome.error = error.what();
  } catch (const tercel::OutOfMemoryError& error) {
    outcome.error = error.what();
  }
  // Options are checked before streams are taken.
  for (ArrowArrayStream* stream : {&train, &valid})
    if (stream->release) stream->release(stream);
  expect(live == 0);
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  const ArrowTableOptions options = options_of(in);
  const Outcome memory = outcome_of(in, options, TableStorage::Memory);
  const Outcome disk = outcome_of(in, options, TableStorage::Disk);
  expect(memory.error == disk.error && memory.rows == disk.rows);
  expect(memory.keys == disk.keys && memory.nnz == disk.nnz);
  return 0;
}
