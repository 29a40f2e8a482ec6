#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "tercel/core/alignment.h"
#include "tercel/io/arrow.h"
#include "tercel/io/elements_impl.h"
#include "tercel/util/arrow_types.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::io {

namespace {

constexpr size_t kMaxDims = 64;

/** Owner of a struct taken over from its producer. */
template <class T>
struct Owned {
  T value;

  explicit Owned(T* source) : value(*source) { source->release = nullptr; }
  ~Owned() {
    if (value.release) value.release(&value);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};
/** Shared by every tensor over the array's buffers. */
using ArrayOwner = std::shared_ptr<const Owned<ArrowArray>>;

template <class... Parts>
[[noreturn]] void refuse(std::string_view name, const Parts&... parts) {
  throw_error<RuntimeError>({"from_arrow: column '", printable(name), "': ", parts...});
}

std::string_view text_of(const char* text) { return text ? text : ""; }

bool bit(const uint8_t* bits, int64_t i) { return ((bits[i / 8] >> (i % 8)) & 1) != 0; }

/** The value of a key in a schema's metadata; empty where there is none. */
std::string find_metadata(const char* metadata, std::string_view wanted, std::string_view name) {
  if (!metadata) return {};
  const auto number = [&] {
    int32_t value = 0;
    std::memcpy(&value, metadata, sizeof value);
    metadata += sizeof value;
    if (value < 0) refuse(name, "metadata with a size of ", value);
    return static_cast<size_t>(value);
  };
  const auto text = [&] {
    const size_t size = number();
    const std::string_view value(metadata, size);
    metadata += size;
    return value;
  };
  for (size_t left = number(); left > 0; --left) {
    const std::string_view key = text(), value = text();
    if (key == wanted) return std::string(value);
  }
  return {};
}

/** One level of a column, from the column itself down to its numbers. */
struct Range {
  const ArrowSchema* schema;
  const ArrowArray* array;
  int64_t first = 0;  // of the elements that count, in the buffers
  int64_t count = 0;
};

const ElementType& number_type(const ArrowSchema& schema, std::string_view name) {
  const std::string_view format = text_of(schema.format);
  for (const ElementType& t : element_types())
    if (t.arrow != 0 && format == std::string_view(&t.arrow, 1)) return t;
  refuse(name, arrow_type_text(schema), " is not a number type that tensors support");
}

void check_array(const Range& at, std::string_view name, int64_t buffers, int64_t children) {
  const ArrowArray& a = *at.array;
  int64_t end = 0;
  if (a.length < 0 || a.offset < 0 || a.null_count < -1 || a.null_count > a.length ||
      __builtin_add_overflow(a.length, a.offset, &end))
    refuse(name, "length ", a.length, ", offset ", a.offset, " and null count ", a.null_count, " do not agree");
  if (a.dictionary || at.schema->dictionary) refuse(name, "it is dictionary-encoded: decode it first");
  if (buffers == 2) static_cast<void>(number_type(*at.schema, name));  // released before its buffers are read
  if (a.n_buffers != buffers || (buffers > 0 && !a.buffers))
    refuse(name, "expected ", buffers, " buffers for format '", printable(text_of(at.schema->format)), "' but got ",
           a.n_buffers);
  if (a.n_children != children || at.schema->n_children != children)
    refuse(name, "expected ", children, " children but got ", at.schema->n_children, " and ", a.n_children);
  for (int64_t i = 0; i < children; ++i)
    if (!a.children || !at.schema->children || !a.children[i] || !at.schema->children[i])
      refuse(name, "child ", i, " is null");
}

/** Which elements are valid; undefined if all are. */
Tensor read_validity(const Range& at, std::string_view name) {
  const auto* bits = static_cast<const uint8_t*>(at.array->buffers[0]);
  if (at.array->null_count == 0 || (!bits && at.array->null_count < 0)) return {};
  if (!bits) refuse(name, at.array->null_count, " missing values but no validity bitmap");
  Tensor valid = empty({at.count}, kBool);
  bool all = true;
  for (int64_t i = 0; i < at.count; ++i) {
    valid.data<bool>()[i] = bit(bits, at.first + i);
    all &= valid.data<bool>()[i];
  }
  return all ? Tensor() : valid;
}

int64_t count_missing(const Tensor& valid) {
  return std::count(valid.data<bool>(), valid.data<bool>() + valid.numel(), false);
}

/** Sizes of one element of a fixed_shape_tensor in memory order, and the permutation of its dimensions. */
struct TensorShape {
  DimVector sizes, permutation;
};

TensorShape parse_tensor_shape(const std::string& text, std::string_view name) {
  const std::string where =
      str_cat({"from_arrow: column '", printable(name), "': metadata of arrow.fixed_shape_tensor"});
  const Json json = parse_json(text, where, JsonErrors::Data, {.max_bytes = 1 << 16, .max_depth = 8});
  const auto numbers = [&](const char* key) {
    DimVector out;
    const Json& list = json.at(key);
    TERCEL_CHECK(list.is_array() && list.size() < kMaxDims, DataError, where, ": ", key,
                 ": expected a list of at most ", kMaxDims - 1, " numbers");
    for (const Json& item : list) {
      TERCEL_CHECK(item.is_number_unsigned() && item.get<uint64_t>() <= INT32_MAX, DataError, where, ": ", key,
                   ": expected integers but found ", describe_json(item));
      out.push_back(item.get<int64_t>());
    }
    return out;
  };
  TERCEL_CHECK(json.is_object() && json.contains("shape"), DataError, where, ": expected a shape");
  TensorShape shape{numbers("shape"), {}};
  if (json.contains("permutation") && !json.at("permutation").is_null()) shape.permutation = numbers("permutation");
  std::vector<bool> seen(shape.sizes.size());
  bool valid = shape.permutation.empty() || shape.permutation.size() == seen.size();
  for (const int64_t d : shape.permutation) {
    valid = valid && static_cast<size_t>(d) < seen.size() && !seen[static_cast<size_t>(d)];
    if (valid) seen[static_cast<size_t>(d)] = true;
  }
  TERCEL_CHECK(valid, DataError, where, ": permutation ", IntSpan(shape.permutation), " is none of ", seen.size(),
               " dimensions");
  return shape;
}

/** Goes down through fixed-size lists; each is a dimension. Leaves the range of the numbers. */
Range descend(Range at, std::string_view name, DimVector& sizes) {
  while (text_of(at.schema->format).starts_with("+w:")) {
    const std::string_view digits = text_of(at.schema->format).substr(3);
    int32_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size() || size < 0 || sizes.size() == kMaxDims)
      refuse(name, "format '", printable(at.schema->format), "' is not a fixed-size list, or has too many dimensions");
    Range inner{at.schema->children[0], at.array->children[0], 0, 0};
    int64_t skipped = 0, last = 0;
    if (__builtin_mul_overflow(at.first, int64_t{size}, &skipped) ||
        __builtin_mul_overflow(at.count, int64_t{size}, &inner.count) ||
        __builtin_add_overflow(skipped, inner.count, &last))
      refuse(name, at.count, " lists of ", size, " overflow 63 bits");
    const bool is_list = text_of(inner.schema->format).starts_with("+w:");
    check_array(inner, name, is_list ? 1 : 2, is_list ? 1 : 0);
    if (last > inner.array->length) refuse(name, "expected ", last, " elements of lists but got ", inner.array->length);
    inner.first = inner.array->offset + skipped;
    if (const Tensor valid = read_validity(inner, name); valid.defined())
      refuse(name, count_missing(valid), " values are missing inside of lists");
    sizes.push_back(size);
    at = inner;
  }
  return at;
}

void release_owner(void* context) { delete static_cast<ArrayOwner*>(context); }

Tensor read_numbers(const Range& at, const ArrayOwner& owner, IntSpan sizes, std::string_view name, CopyMode copy) {
  const ScalarType type = number_type(*at.schema, name).type;
  const void* const data = at.array->buffers[1];
  if (!data && numel_of(sizes) > 0) refuse(name, "no data for ", at.count, " values");
  if (type == kBool) {
    TERCEL_CHECK(copy != CopyMode::Never, RuntimeError, "from_arrow: column '", printable(name),
                 "': bools cannot be imported without a copy: Arrow packs them into bits");
    Tensor out = empty(sizes, kBool);
    for (int64_t i = 0; i < out.numel(); ++i)
      out.data<bool>()[i] = bit(static_cast<const uint8_t*>(data), at.first + i);
    return out;
  }
  int64_t offset = 0;
  if (__builtin_mul_overflow(at.first, static_cast<int64_t>(item_size(type)), &offset))
    refuse(name, "offset ", at.first, " overflows 63 bits");
  // The pointer is const only by convention; see ArrowOptions::copy.
  auto* start = data ? static_cast<std::byte*>(const_cast<void*>(data)) + offset : nullptr;
  if (!is_aligned(start, type)) {
    TERCEL_CHECK(copy != CopyMode::Never, RuntimeError, "from_arrow: column '", printable(name),
                 "': memory that is not aligned to elements of ", to_string(type),
                 " cannot be imported without a copy");
    Tensor aligned = empty(sizes, type);
    if (aligned.numel() > 0) std::memcpy(aligned.data_ptr(), start, aligned.storage()->nbytes());
    return aligned;
  }
  const Tensor out = from_blob(start, sizes, type, new ArrayOwner(owner), release_owner);
  return copy == CopyMode::Always ? row_major_copy(out) : out;
}

ArrowColumn read_column(const ArrowSchema& schema, const ArrowArray& array, const ArrayOwner& owner, int64_t first,
                        int64_t rows, const ArrowOptions& options) {
  const std::string_view name = text_of(schema.name);
  const bool is_list = text_of(schema.format).starts_with("+w:");
  Range at{&schema, &array, 0, rows};
  check_array(at, name, is_list ? 1 : 2, is_list ? 1 : 0);
  if (first < 0 || rows > array.length || first > array.length - rows)
    refuse(name, "expected at least ", first + rows, " rows but got ", array.length);
  at.first = array.offset + first;
  ArrowColumn column{std::string(name), {}, read_validity(at, name)};
  if (column.valid.defined() && !options.mask)
    refuse(name, count_missing(column.valid), " of ", rows, " values are missing; ask for a mask or fill them first");

  DimVector sizes{rows};
  const std::string extension = find_metadata(schema.metadata, "ARROW:extension:name", name);
  TensorShape shape;
  if (extension == "arrow.fixed_shape_tensor")
    shape = parse_tensor_shape(find_metadata(schema.metadata, "ARROW:extension:metadata", name), name);
  at = descend(at, name, sizes);
  if (extension != "arrow.fixed_shape_tensor") {
    column.values = read_numbers(at, owner, sizes, name, options.copy);
    return column;
  }
  const int64_t elements = sizes.size() == 2 ? sizes[1] : -1;
  if (numel_of(shape.sizes) != elements)
    refuse(name, "shape ", IntSpan(shape.sizes), " does not fit lists of ", elements, " elements");
  sizes.resize(1);
  sizes.insert(sizes.end(), IntSpan(shape.sizes));
  const Tensor flat = read_numbers(at, owner, sizes, name, options.copy);
  // The metadata has the shape in the order of memory; the tensor's own order is a permutation of it.
  DimVector own(flat.sizes()), strides(flat.strides());
  for (size_t d = 0; d < shape.permutation.size(); ++d) {
    const auto from = static_cast<size_t>(shape.permutation[d]) + 1;
    own[d + 1] = flat.sizes()[from];
    strides[d + 1] = flat.strides()[from];
  }
  column.values = Tensor(make_intrusive<TensorImpl>(flat.storage(), flat.dtype(), own, strides, 0));
  return column;
}

struct Imported {
  Owned<ArrowSchema> schema;
  ArrayOwner array;
};

Imported take_over(ArrowSchema* schema, ArrowArray* array) {
  TERCEL_CHECK(schema && array && schema->release && array->release, RuntimeError,
               "from_arrow: expected a schema and an array that are neither released nor consumed");
  return {Owned<ArrowSchema>(schema), std::make_shared<const Owned<ArrowArray>>(array)};
}

}  // namespace

ArrowColumn from_arrow(ArrowSchema* schema, ArrowArray* array, const ArrowOptions& options) {
  const Imported in = take_over(schema, array);
  const ArrowArray& a = in.array->value;
  return read_column(in.schema.value, a, in.array, 0, a.length, options);
}

std::vector<ArrowColumn> columns_from_arrow(ArrowSchema* schema, ArrowArray* array, const ArrowOptions& options) {
  const Imported in = take_over(schema, array);
  const ArrowSchema& s = in.schema.value;
  const ArrowArray& a = in.array->value;
  const std::string_view name = text_of(s.name);
  if (text_of(s.format) != "+s")
    refuse(name, "expected a struct array but got format '", printable(text_of(s.format)), "'");
  const Range at{&s, &a, a.offset, a.length};
  check_array(at, name, 1, s.n_children);
  if (const Tensor valid = read_validity(at, name); valid.defined())
    refuse(name, count_missing(valid), " whole rows are missing");
  std::vector<ArrowColumn> columns;
  for (int64_t i = 0; i < s.n_children; ++i)
    columns.push_back(read_column(*s.children[i], *a.children[i], in.array, a.offset, a.length, options));
  return columns;
}

}  // namespace tercel::io
