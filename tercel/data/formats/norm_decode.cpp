// The hot loops of Norm reading. Sizes were checked before: load() has the bytes of whole records only, and scanned the
// counts of ragged ones. Rules are checked without branches, one result per row; a row that breaks one is parsed again
// by check_norm_record, which throws the error.
#include <algorithm>
#include <cstring>

#include "tercel/data/formats/norm_source_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

constinit const KernelTable<NormRowsFn> decode_kernels = TERCEL_CPU_KERNELS(decode_norm_rows);

// Copies labels and dense values, and moves past them; false if one breaks its rule.
bool decode_floats(const RowRules& rules, const std::byte*& from, float* labels, float* dense) {
  const int64_t label_dim = rules.schema().label_dim;
  const int64_t dense_dim = rules.schema().dense_dim;
  bool good = true;
  for (int64_t i = 0; i < label_dim; ++i, from += 4) {
    const auto label = load_unaligned<float>(from);
    good &= rules.is_label(label);
    labels[i] = label;
  }
  for (int64_t i = 0; i < dense_dim; ++i, from += 4) {
    const auto value = load_unaligned<float>(from);
    good &= RowRules::is_dense_value(value);
    dense[i] = value;
  }
  return good;
}

// Mixed rows are scattered over a window larger than the inner caches: prefetched early, they arrive while others are
// decoded.
constexpr int64_t kPrefetchRows = 4;
constexpr int64_t kPrefetchBytes =
    1024;  // the number of outstanding requests of a core; the hardware prefetches the rest
constexpr int64_t kCacheLine = 64;

void prefetch(const std::byte* from, int64_t bytes) {
  bytes = std::min(bytes, kPrefetchBytes);
  for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(from + i);
}

bool sum_is_right(const std::byte* record, int64_t payload) {
  return load_unaligned<int32_t>(record) == payload &&
         norm_sum(record + 4, static_cast<size_t>(payload)) == static_cast<uint8_t>(record[4 + payload]);
}

}  // namespace

int64_t NormSource::decode_uniform(const NormWindow& window, const Places& places, BatchBuffer& out) const {
  NormRowsLoop loop = loop_;
  RowLoopShape::Inputs inputs;
  loop_shape_.set_places(loop, window, window.bytes.data(), places, out, inputs);
  return decode_kernels[kCpu](loop, places.begin, places.begin + places.count);
}

template <class Key>
int64_t NormSource::decode_ragged(const NormWindow& window, const Places& places, BatchBuffer& out) const {
  const uint32_t* mix = window.mix.empty() ? nullptr : window.mix.data();
  const auto row_at = [&](int64_t i) {
    return mix ? size_t{mix[places.begin + i]} : static_cast<size_t>(places.begin + i);
  };

  // Everything beyond the fixed part of a row is keys.
  int64_t num_keys = 0;
  for (int64_t i = 0; i < places.count; ++i) {
    const size_t row = row_at(i);
    num_keys += static_cast<int64_t>(window.starts[row + 1] - window.starts[row]) - layout_.min_record_bytes;
  }
  num_keys /= static_cast<int64_t>(sizeof(Key));
  for (size_t input = 0; input < shape_.inputs.size(); ++input)
    out.reserve_keys(input, out.inputs[input].nnz + num_keys);

  for (int64_t i = 0; i < places.count; ++i) {
    if (mix && i + kPrefetchRows < places.count) {
      const size_t later = row_at(i + kPrefetchRows);
      const size_t start = window.starts[later];
      prefetch(window.bytes.data() + start, static_cast<int64_t>(window.starts[later + 1] - start));
    }
    const size_t row = row_at(i);
    // Its counts contradict its length: they must not be used.
    if (std::binary_search(window.malformed.begin(), window.malformed.end(), row)) return places.begin + i;
    const std::byte* from = window.bytes.data() + window.starts[row];
    const auto bytes = static_cast<int64_t>(window.starts[row + 1] - window.starts[row]);
    const int64_t batch_row = places.batch_row + i;
    bool good = !layout_.framed() || sum_is_right(from, bytes - norm_frame_bytes(CheckMode::Sum));
    if (layout_.framed()) from += 4;
    good &= decode_floats(layout_.rules, from, out.labels + batch_row * shape_.label_dim,
                          out.dense + batch_row * shape_.dense_dim);
    const RowRules::SlotRule* slot = layout_.rules.slots().data();
    for (size_t input = 0; input < shape_.inputs.size(); ++input) {
      const int64_t slot_num = shape_.inputs[input].slot_num;
      BatchBuffer::Input& target = out.inputs[input];
      int64_t* offsets = target.row_offsets + batch_row * slot_num;
      int64_t nnz = target.nnz;
      for (int64_t s = 0; s < slot_num; ++s, ++slot) {
        const int32_t count = load_unaligned<int32_t>(from);
        from += 4;
        for (int32_t k = 0; k < count; ++k, from += sizeof(Key)) {
          const auto key = static_cast<int64_t>(load_unaligned<Key>(from));
          good &= slot->has(key);
          target.keys[nnz++] = key;
        }
        *++offsets = nnz;
      }
      target.nnz = nnz;
    }
    if (!good) return places.begin + i;
  }
  return -1;
}

void NormSource::decode(const Window& source, const Places& places, BatchBuffer& out) const {
  const auto& window = static_cast<const NormWindow&>(source);
  int64_t bad = -1;
  if (shape_.uniform)
    bad = decode_uniform(window, places, out);
  else if (layout_.options.key_type == KeyType::I64)
    bad = decode_ragged<int64_t>(window, places, out);
  else
    bad = decode_ragged<uint32_t>(window, places, out);
  if (bad < 0) return;
  try {
    fail_row(window, window.mix.empty() ? static_cast<size_t>(bad) : size_t{window.mix[static_cast<size_t>(bad)]});
  } catch (const DataError& error) {
    throw BadRecord(error.what(), bad);
  }
}

void NormSource::fail_row(const NormWindow& window, size_t row) const {
  const auto behind = std::upper_bound(window.pieces.begin(), window.pieces.end(), static_cast<int64_t>(row),
                                       [](int64_t r, const Piece& piece) { return r < piece.first_row; });
  const Piece& piece = *(behind - 1);
  const auto record_bytes = static_cast<size_t>(layout_.max_record_bytes);
  const size_t begin = shape_.uniform ? row * record_bytes : window.starts[row];
  const size_t end = shape_.uniform ? begin + record_bytes : window.starts[row + 1];
  const RecordPlace at{piece.first_record + static_cast<int64_t>(row) - piece.first_row,
                       piece.offset + static_cast<int64_t>(begin - piece.first_byte)};
  fail(piece.file, at, Span<std::byte>(window.bytes.data() + begin, end - begin), shape_.uniform);
}

}  // namespace tercel::data
