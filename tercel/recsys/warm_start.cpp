#include "tercel/recsys/warm_start.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/data/row_encoder.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/model_files.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

/** How a dataset's texts became keys; none if they are not known. */
std::optional<data::RowEncoder> encoder_of(const data::Dataset& dataset) {
  if (!dataset.conversion || !dataset.conversion->vocabulary) return std::nullopt;
  return data::load_row_encoder(dataset.schema, *dataset.conversion, dataset.path_of(*dataset.conversion->vocabulary));
}

std::optional<data::RowEncoder> encoder_of(const LoadedModel& model) {
  if (model.data.vocabulary.empty()) return std::nullopt;
  return encoder_of(data::Dataset(text_description(model.run)));
}

/** Slots of a table in order, with their places in the schema. */
std::vector<size_t> slots_of(Model& model, size_t table) {
  std::vector<size_t> slots;
  for (const Lookup& lookup : model.embeddings().lookups()) {
    if (lookup.table != table) continue;
    size_t first = 0;
    for (const data::SparseInput& input : model.sparse_inputs()) {
      if (input.name == lookup.input)
        for (int64_t s = 0; s < input.slot_num; ++s) slots.push_back(first + static_cast<size_t>(s));
      first += static_cast<size_t>(input.slot_num);
    }
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

/** Keys of the new model, and those of the old one that mean the same. */
struct KeyPairs {
  std::vector<int64_t> now, before;
  int64_t without = 0;  // keys of the new model that the old one does not have

  void add(int64_t new_key, int64_t old_key) {
    now.push_back(new_key);
    before.push_back(old_key);
  }
};

class Copier {
 public:
  Copier(Model& model, const data::Dataset& dataset, LoadedModel& from)
      : model_(model),
        from_(from),
        schema_(model.schema()),
        old_schema_(from.model.schema()),
        encoder_(encoder_of(dataset)),
        old_encoder_(encoder_of(from)) {
    if (const std::string moments = data::compare_moments(from.data, data::identity_of(dataset)); !moments.empty())
      result_.warnings.push_back("dense values: " + moments);
  }

  WarmStart run() {
    const NoGradGuard guard;
    find_dense();
    find_tables();
    if (dense_.empty() && tables_.empty()) {
      std::string why;
      for (const std::string& text : result_.left) why += (why.empty() ? "" : "; ") + text;
      throw_error<ConfigError>({printable(from_.run), ": no weight of this model fits: ", why});
    }
    for (auto& [now, before] : dense_) copy_(now, before);
    for (TableCopy& copy : tables_) copy_rows(copy);
    return std::move(result_);
  }

 private:
  struct TableCopy {
    EmbeddingTable* now;
    EmbeddingTable* before;
    KeyPairs keys;
  };

  void find_dense() {
    CheckpointFile now = dense_file(model_), before = dense_file(from_.model);
    for (io::NamedTensor& tensor : now.tensors) {
      const auto same = std::find_if(before.tensors.begin(), before.tensors.end(),
                                     [&](const io::NamedTensor& other) { return other.name == tensor.name; });
      if (same == before.tensors.end()) {
        result_.left.push_back(str_cat({printable(tensor.name), ": new"}));
      } else if (same->tensor.sizes() != tensor.tensor.sizes()) {
        result_.left.push_back(
            str_cat({printable(tensor.name), ": has sizes ", tensor.tensor.sizes(), ", not ", same->tensor.sizes()}));
      } else {
        dense_.emplace_back(tensor.tensor, same->tensor);
        ++result_.parameters;
      }
    }
  }

  void find_tables() {
    const auto& tables = model_.embeddings().tables();
    const auto& old_tables = from_.model.embeddings().tables();
    for (size_t t = 0; t < tables.size(); ++t) {
      const auto leave = [&](const std::string& why) {
        result_.left.push_back(str_cat({"table ", printable(tables[t]->name()), ": ", why}));
      };
      const auto same = std::find_if(old_tables.begin(), old_tables.end(),
                                     [&](const auto& other) { return other->name() == tables[t]->name(); });
      if (same == old_tables.end()) {
        leave("new");
        continue;
      }
      if ((*same)->dim() != tables[t]->dim()) {
        leave(str_cat({"has vectors of ", tables[t]->dim(), " numbers, not ", (*same)->dim()}));
        continue;
      }
      TableCopy copy{tables[t].get(), same->get(), {}};
      const std::vector<size_t> old_slots = slots_of(from_.model, static_cast<size_t>(same - old_tables.begin()));
      const std::vector<size_t> slots = slots_of(model_, t);
      for (const std::vector<size_t>& group : groups_of(slots)) pair_group(group, old_slots, copy.keys);
      if (may_have_any_key(*tables[t], schema_, slots_of(model_, t)) &&
          may_have_any_key(**same, old_schema_, old_slots))
        pair_all(**same, copy.keys);
      drop_keys_without_row(**same, copy.keys);
      if (copy.keys.now.empty()) {
        leave("has no key of the model");
        continue;
      }
      result_.rows += static_cast<int64_t>(copy.keys.now.size());
      result_.new_rows += copy.keys.without;
      keep_keys_of_rank(*tables[t], copy.keys);
      tables_.push_back(std::move(copy));
    }
  }

  /** Whether it grows, and no slot says which keys it has. */
  static bool may_have_any_key(const EmbeddingTable& table, const data::Schema& schema,
                               const std::vector<size_t>& slots) {
    return table.rows_without_key() > 0 &&
           std::all_of(slots.begin(), slots.end(), [&schema](size_t slot) { return schema.slots[slot].size == 0; });
  }

  static void pair_all(const EmbeddingTable& before, KeyPairs& out) {
    const Tensor keys = before.keys();
    for (int64_t i = 0; i < keys.numel(); ++i) out.add(keys.data<int64_t>()[i], keys.data<int64_t>()[i]);
  }

  /** Of a table whose rows are on several ranks: those of this one. */
  static void keep_keys_of_rank(const EmbeddingTable& now, KeyPairs& pairs) {
    if (now.shard().is_whole()) return;
    std::vector<int64_t> owners(pairs.now.size());
    if (!now.owners(pairs.now, owners.data())) now.refuse_keys(tensor_of(pairs.now));
    const std::vector<int64_t> keys = std::exchange(pairs.now, {}), old_keys = std::exchange(pairs.before, {});
    for (size_t i = 0; i < keys.size(); ++i)
      if (owners[i] == now.shard().rank()) pairs.add(keys[i], old_keys[i]);
  }

  /** Of an old table that grows: keys that did not occur in its training. */
  static void drop_keys_without_row(EmbeddingTable& before, KeyPairs& pairs) {
    if (before.rows_without_key() == 0) return;
    const Tensor rows = before.find_rows(tensor_of(pairs.before), NewKeys::Refuse);
    const std::vector<int64_t> now = std::exchange(pairs.now, {}), old_keys = std::exchange(pairs.before, {});
    for (size_t i = 0; i < now.size(); ++i)
      if (rows.data<int64_t>()[i] >= before.rows_without_key())
        pairs.add(now[i], old_keys[i]);
      else
        ++pairs.without;
  }

  /** The slots, those that share their keys together. */
  std::vector<std::vector<size_t>> groups_of(const std::vector<size_t>& slots) const {
    std::vector<std::vector<size_t>> groups;
    for (const size_t slot : slots) {
      const data::Slot& now = schema_.slots[slot];
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<size_t>& group) {
        const data::Slot& other = schema_.slots[group.front()];
        return now.size > 0 && now.size == other.size && now.first_key == other.first_key;
      });
      if (same == groups.end())
        groups.push_back({slot});
      else
        same->push_back(slot);
    }
    return groups;
  }

  /** Finds the keys of slots that share them: each key in the old slot of the first name that has it. */
  void pair_group(const std::vector<size_t>& group, const std::vector<size_t>& old_slots, KeyPairs& out) const {
    if (group.size() == 1) return pair_slot(group.front(), old_slots, out);
    const data::Slot& now = schema_.slots[group.front()];
    std::vector<bool> is_found(static_cast<size_t>(now.size), false);
    int64_t found = 0;
    for (const size_t slot : group) {
      KeyPairs of_slot;
      pair_slot(slot, old_slots, of_slot);
      for (size_t i = 0; i < of_slot.now.size(); ++i) {
        const auto key = static_cast<size_t>(of_slot.now[i] - now.first_key);
        if (is_found[key]) continue;
        is_found[key] = true;
        ++found;
        out.add(of_slot.now[i], of_slot.before[i]);
      }
    }
    out.without += now.size - found;
  }

  /** Finds the keys of a slot in the slot of the same name, among those of the old table. */
  void pair_slot(size_t slot, const std::vector<size_t>& old_slots, KeyPairs& out) const {
    const data::Slot& now = schema_.slots[slot];
    const auto same = std::find_if(old_slots.begin(), old_slots.end(), [&](size_t other) {
      // Files of other tools have no names.
      return now.name.empty() ? other == slot : old_schema_.slots[other].name == now.name;
    });
    if (same == old_slots.end()) {
      out.without += now.size;
      return;
    }
    const data::Slot& before = old_schema_.slots[*same];
    const auto by_key = [&](int64_t count) {
      for (int64_t k = 0; k < count; ++k) out.add(now.first_key + k, before.first_key + k);
      out.without += now.size - count;
    };
    if (!encoder_ && !old_encoder_) return by_key(std::min(now.size, before.size));
    if (!encoder_ || !old_encoder_) {
      out.without += now.size;
      return;
    }
    const auto number = static_cast<int64_t>(slot), old_number = static_cast<int64_t>(*same);
    const int64_t field = encoder_->field_of(number), old_field = old_encoder_->field_of(old_number);
    const data::Vocabulary &vocabulary = encoder_->vocabulary(), &old_vocabulary = old_encoder_->vocabulary();
    const bool hashes = encoder_->is_hashed(number), old_hashes = old_encoder_->is_hashed(old_number);
    if (hashes || old_hashes) {
      // The name of the field is part of the hash.
      if (hashes && old_hashes && now.size == before.size && vocabulary.name(field) == old_vocabulary.name(old_field))
        by_key(now.size);
      else
        out.without += now.size;
      return;
    }
    out.add(now.first_key, before.first_key);  // of what is rare, unseen or missing
    int64_t id = 0;
    for (const std::string_view category : vocabulary.categories(field)) {
      ++id;
      if (const int64_t old_id = old_vocabulary.find(old_field, category); old_id > 0)
        out.add(now.first_key + id, before.first_key + old_id);
      else
        ++out.without;
    }
  }

  static Tensor tensor_of(const std::vector<int64_t>& values) {
    Tensor tensor = empty({static_cast<int64_t>(values.size())}, kInt64);
    std::copy(values.begin(), values.end(), tensor.data<int64_t>());
    return tensor;
  }

  void copy_rows(TableCopy& copy) const {
    // In parts, so that large tables need no second copy.
    constexpr int64_t kPart = int64_t{1} << 18;
    const Tensor keys = tensor_of(copy.keys.now), old_keys = tensor_of(copy.keys.before);
    for (int64_t begin = 0; begin < keys.numel(); begin += kPart) {
      const int64_t count = std::min(kPart, keys.numel() - begin);
      const Tensor rows = copy.now->find_rows(keys.narrow(0, begin, count), NewKeys::Admit),
                   old_rows = copy.before->find_rows(old_keys.narrow(0, begin, count), NewKeys::Refuse);
      Tensor weight = copy.now->weight().detach();  // with the rows that were just made
      index_copy_(weight, 0, to(rows, kInt64),
                  to(index_select(copy.before->weight().detach(), 0, to(old_rows, kInt64)), weight.dtype()));
    }
  }

  Model& model_;
  LoadedModel& from_;
  const data::Schema &schema_, &old_schema_;
  std::optional<data::RowEncoder> encoder_, old_encoder_;
  std::vector<std::pair<Tensor, Tensor>> dense_;
  std::vector<TableCopy> tables_;
  WarmStart result_;
};

}  // namespace

WarmStart warm_start(Model& model, const data::Dataset& dataset, LoadedModel& from) {
  TERCEL_CHECK(model.parameters().weights().defined(), RuntimeError, "warm start: the model is not initialised");
  return Copier(model, dataset, from).run();
}

}  // namespace tercel::recsys
