#include "tercel/io/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>

#include "tercel/core/alignment.h"
#include "tercel/io/elements_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::io {

namespace {

constexpr int64_t kMaxHeader = 100'000'000;
constexpr size_t kMaxDims = 64;
constexpr std::string_view kMetadata = "__metadata__";

/** The row of a type; rows are in the order of the format, and files are sorted from the last to the first. */
const ElementType* known_type(ScalarType type) {
  const ElementType* found = find_element_type(type);
  TERCEL_CHECK(found && !found->safetensors.empty(), TypeError, "safetensors: no name for dtype ", to_string(type));
  return found;
}

/** header[name] = value for a new name: the operator would search all others first. */
void append(Json& header, std::string_view name, Json value) {
  static_cast<Json::object_t::Container&>(header.get_ref<Json::object_t&>()).emplace_back(name, std::move(value));
}

/** The content to write: the header, and the tensors in order. */
struct Plan {
  std::string header;
  std::vector<const NamedTensor*> order;

  void write(FileWriter& writer) const {
    std::array<unsigned char, 8> length{};
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(uint64_t{header.size()} >> (8 * i));
    writer.write(length.data(), length.size());
    writer.write(header);
    for (const NamedTensor* t : order) writer.write(t->tensor.data_ptr(), t->tensor.nbytes());
  }
};

Plan make_plan(const std::string& path, Span<NamedTensor> tensors, const Metadata& metadata) {
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names = {kMetadata};
  for (const NamedTensor& t : tensors) {
    TERCEL_CHECK(t.tensor.defined() && t.tensor.device().is_cpu() && t.tensor.is_contiguous(), ValueError, path,
                 ": tensor '", printable(t.name), "': expected a contiguous one on the CPU but got ",
                 describe(t.tensor));
    TERCEL_CHECK(is_utf8(t.name), ValueError, path, ": the name '", printable(t.name), "' is not UTF-8");
    TERCEL_CHECK(names.insert(t.name).second, ValueError, path, ": the name '", printable(t.name),
                 t.name == kMetadata ? "' is reserved for the metadata" : "' is a duplicate");
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const auto* const ra = known_type(a->tensor.dtype());
    const auto* const rb = known_type(b->tensor.dtype());
    return ra != rb ? ra > rb : a->name < b->name;
  });

  Json header = Json::object();
  if (!metadata.empty()) {
    Json entries = Json::object();
    for (const auto& [key, value] : metadata) {
      TERCEL_CHECK(is_utf8(key) && is_utf8(value) && !entries.contains(key), ValueError, path, ": metadata '",
                   printable(key), "' is a duplicate or not UTF-8");
      entries[key] = value;
    }
    append(header, kMetadata, std::move(entries));
  }
  int64_t offset = 0;
  for (const NamedTensor* t : order) {
    const int64_t end = offset + static_cast<int64_t>(t->tensor.nbytes());
    append(header, t->name,
           {{"dtype", known_type(t->tensor.dtype())->safetensors},
            {"shape", t->tensor.sizes().to_vector()},
            {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  TERCEL_CHECK(static_cast<int64_t>(text.size()) <= kMaxHeader, ValueError, path, ": a header of ", text.size(),
               " bytes; the format allows ", kMaxHeader);

  return {std::move(text), std::move(order)};
}

}  // namespace

uint64_t write_safetensors(const std::string& path, Span<NamedTensor> tensors, const Metadata& metadata) {
  const Plan plan = make_plan(path, tensors, metadata);
  FileWriter writer(File::create_new(path), {.checksum = true});
  plan.write(writer);
  writer.sync();
  const uint64_t sum = writer.checksum();
  writer.close();
  return sum;
}

void save_safetensors(const std::string& path, Span<NamedTensor> tensors, const Metadata& metadata) {
  const Plan plan = make_plan(path, tensors, metadata);
  AtomicFile file(path);
  plan.write(file.writer());
  file.commit();
}

struct SafetensorsReader::State {
  File file;
  std::shared_ptr<const MappedFile> map;  // shared with every tensor that views it
  std::vector<TensorEntry> entries;
  std::unordered_map<std::string_view, size_t> index;
  Metadata metadata;
};

namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view what) {
  throw_error<DataError>({path, ": safetensors header: ", what});
}

TensorEntry read_entry(const std::string& name, const Json& value, const std::string& path) {
  const auto fail = [&](std::string_view what) { refuse(path, str_cat({"tensor '", printable(name), "': ", what})); };
  const auto whole_number = [&](const Json& number) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > std::numeric_limits<int64_t>::max())
      fail(str_cat({"expected an integer of 63 bits but found ", describe_json(number)}));
    return number.get<int64_t>();
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    fail("expected dtype, shape and data_offsets");
  TensorEntry entry;
  entry.name = name;
  const Json& dtype = value.at("dtype");
  for (const ElementType& known : element_types())
    if (dtype.is_string() && !known.safetensors.empty() && dtype.get_ref<const std::string&>() == known.safetensors)
      entry.dtype = known.type;
  if (entry.dtype == ScalarType::Undefined) fail(str_cat({"unknown dtype ", describe_json(dtype)}));
  const Json& shape = value.at("shape");
  if (!shape.is_array() || shape.size() > kMaxDims) fail(str_cat({"expected a list of at most ", kMaxDims, " sizes"}));
  // For strides the product of the other sizes must fit even if one size is 0.
  int64_t bytes = static_cast<int64_t>(item_size(entry.dtype));
  bool is_empty = false;
  for (const Json& json : shape) {
    const int64_t size = whole_number(json);
    is_empty |= size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) fail("its sizes do not fit 63 bits");
    entry.sizes.push_back(size);
  }
  if (is_empty) bytes = 0;
  const Json& offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) fail("expected two data_offsets");
  entry.begin = whole_number(offsets.at(0));
  const int64_t end = whole_number(offsets.at(1));
  entry.nbytes = end - entry.begin;
  if (entry.nbytes != bytes)
    fail(str_cat({"expected ", bytes, " bytes but data_offsets are ", entry.begin, " and ", end}));
  return entry;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path, const SafetensorsOptions& options)
    : SafetensorsReader(File::open_read(path), options) {}

SafetensorsReader::SafetensorsReader(File file, const SafetensorsOptions& options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.file = std::move(file);
  const std::string& path = s.file.path();
  const int64_t size = s.file.size();
  if (size < 8) refuse(path, str_cat({"expected at least 8 bytes but the file has ", size}));
  std::array<unsigned char, 8> raw{};
  s.file.pread_exact(raw.data(), raw.size(), 0);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{raw[i]} << (8 * i);
  if (length > static_cast<uint64_t>(kMaxHeader) || length > static_cast<uint64_t>(size - 8))
    refuse(path, str_cat({"expected at most ", std::min(size - 8, kMaxHeader), " bytes, in a file of ", size,
                          ", but its length is ", length}));
  std::string text(length, '\0');
  s.file.pread_exact(text.data(), text.size(), 8);
  if (!text.starts_with('{')) refuse(path, "expected '{' as its first byte");
  const Json header = parse_json(text, path, JsonErrors::Data, {.max_bytes = kMaxHeader, .max_depth = 8});
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      if (!value.is_object()) refuse(path, "__metadata__: expected an object");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string()) refuse(path, "__metadata__: expected strings");
        s.metadata.emplace_back(key, item.get<std::string>());
      }
    } else {
      s.entries.push_back(read_entry(name, value, path));
    }
  }
  std::sort(s.entries.begin(), s.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.nbytes < b.nbytes;
  });
  const int64_t data = 8 + static_cast<int64_t>(length);
  int64_t next = 0;
  for (const TensorEntry& entry : s.entries) {
    if (entry.begin != next)
      refuse(path, str_cat({"tensor '", printable(entry.name), "' begins at ", entry.begin,
                            " but the one before it ends at ", next}));
    next += entry.nbytes;
  }
  if (next != size - data) refuse(path, str_cat({"its tensors take ", next, " bytes but ", size - data, " follow it"}));
  for (size_t i = 0; i < s.entries.size(); ++i) {
    s.entries[i].begin += data;
    s.index.emplace(s.entries[i].name, i);
  }
  if (!options.mmap) return;
  s.map = std::make_shared<const MappedFile>(s.file);
  if (static_cast<int64_t>(s.map->size()) != size) refuse(path, "the file was changed while it was read");
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;

const std::vector<TensorEntry>& SafetensorsReader::entries() const { return state_->entries; }
const Metadata& SafetensorsReader::metadata() const { return state_->metadata; }

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = state_->index.find(name);
  return found == state_->index.end() ? nullptr : &state_->entries[found->second];
}

namespace {

/** The bytes of an entry into memory of its size. */
void read_bytes(const File& file, const TensorEntry& entry, void* out) {
  if (entry.nbytes == 0) return;
  file.pread_exact(out, static_cast<size_t>(entry.nbytes), entry.begin);
  if (entry.dtype != kBool) return;
  const int64_t wrong = find_wrong_bool(out, static_cast<size_t>(entry.nbytes));
  TERCEL_CHECK(wrong < 0, DataError, file.path(), ": tensor '", printable(entry.name), "': byte ", entry.begin + wrong,
               ": expected 0 or 1 but found ", int{static_cast<const unsigned char*>(out)[wrong]});
}

}  // namespace

Tensor SafetensorsReader::read(const TensorEntry& entry) const {
  if (state_->map && entry.dtype != kBool && entry.nbytes > 0 &&
      is_aligned(state_->map->data() + entry.begin, entry.dtype))
    return Tensor(
        make_intrusive<TensorImpl>(map_storage(state_->map, entry.begin, entry.nbytes), entry.dtype, entry.sizes));
  Tensor out = empty(entry.sizes, entry.dtype);
  read_bytes(state_->file, entry, out.data_ptr());
  return out;
}

const TensorEntry& SafetensorsReader::find_for(const NamedTensor& target) const {
  const std::string& path = state_->file.path();
  TERCEL_CHECK(target.tensor.defined() && target.tensor.device().is_cpu() && target.tensor.is_contiguous(), ValueError,
               path, ": tensor '", printable(target.name),
               "': expected a contiguous one on the CPU to read into but got ", describe(target.tensor));
  return find_for(target.name, target.tensor.dtype(), target.tensor.sizes());
}

const TensorEntry& SafetensorsReader::find_for(std::string_view name, ScalarType dtype, IntSpan sizes) const {
  const std::string& path = state_->file.path();
  const TensorEntry* entry = find(name);
  TERCEL_CHECK(entry, DataError, path, ": no tensor '", printable(name), "'");
  TERCEL_CHECK(IntSpan(entry->sizes) == sizes && entry->dtype == dtype, DataError, path, ": tensor '", printable(name),
               "': expected ", sizes, " ", to_string(dtype), " but found ", IntSpan(entry->sizes), " ",
               to_string(entry->dtype));
  return *entry;
}

void SafetensorsReader::read_into(const NamedTensor& target) const {
  read_bytes(state_->file, find_for(target), target.tensor.data_ptr());
  target.tensor.impl().bump_version();
}

std::vector<NamedTensor> load_safetensors(const std::string& path, const SafetensorsOptions& options) {
  const SafetensorsReader reader(path, options);
  std::vector<NamedTensor> tensors;
  tensors.reserve(reader.entries().size());
  for (const TensorEntry& entry : reader.entries()) tensors.push_back({entry.name, reader.read(entry)});
  return tensors;
}

}  // namespace tercel::io
