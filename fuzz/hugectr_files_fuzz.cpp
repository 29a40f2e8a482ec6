// Any bytes are HugeCTR's files of a model that fit, or a DataError. The first byte says which file the rest is: dense
// weights, their states, running statistics, keys of a table, its vectors, or what describes a collection; the other
// files fit. Tables of a collection are different ones, with sizes that do not overflow.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "tercel/recsys/hugectr/collection_files.h"
#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/hugectr/session_states.h"
#include "tercel/recsys/model/config.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using namespace tercel;

constexpr std::string_view kModel = R"json({
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 2, "table_type": "hashed", "max_vocabulary_size_global": 100,
                                 "eviction": "age"}},
    {"type": "Reshape", "bottom": "emb", "top": "flat"},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "BatchNorm", "bottom": "all", "top": "normal"},
    {"type": "InnerProduct", "bottom": "normal", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

/** A model, with its files in a folder. */
class Files {
 public:
  Files() : session_(recsys::parse_config(kModel, "model"), schema()) {
    std::string path = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/tercel_fuzz_XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    name_ = {path + "/m", 1};
    session_.initialize();
    session_.expect_writes();  // check_finite() reads all of them
    recsys::hugectr::write_snapshot(name_, session_.model(), recsys::hugectr::states_of(session_));
  }
  ~Files() { remove_tree(parent_path(name_.prefix)); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  void read(uint8_t which, std::string_view bytes) {
    recsys::Model& model = session_.model();
    recsys::EmbeddingTable& table = *model.embeddings().tables()[0];
    const std::string folder = name_.table(0);
    switch (which % 5) {
      case 0:
        remove_file(name_.statistics());
        put(name_.dense(), bytes);
        recsys::hugectr::read_dense(name_.dense(), model);
        break;
      case 1:
        put(name_.dense_states(), bytes);
        recsys::hugectr::read_dense_states(name_.dense_states(), model, recsys::hugectr::states_of(session_).dense,
                                           optim::Optimizer::state_names(session_.config().optimizer.type));
        break;
      case 2:
        recsys::hugectr::write_dense(name_, model);
        put(name_.statistics(), bytes);
        recsys::hugectr::read_dense(name_.dense(), model);
        break;
      case 3: {
        const size_t keys = bytes.size() / 16;
        put(join_path(folder, "key"), bytes.substr(0, keys * 8));
        put(join_path(folder, "emb_vector"), bytes.substr(keys * 8));
        recsys::hugectr::read_table(folder, table);
        break;
      }
      default: check_collection(recsys::hugectr::parse_collection(bytes, "fuzz"));
    }
    session_.check_finite();
  }

 private:
  static data::Schema schema() {
    data::Schema schema;
    schema.dense_dim = 2;
    schema.slots.resize(1);
    return schema;
  }
  static void put(const std::string& path, std::string_view bytes) {
    remove_file(path);
    write_file(path, bytes);
  }
  static void check_collection(const recsys::hugectr::CollectionContent& content) {
    std::set<int32_t> numbers;
    for (const auto& table : content.tables)
      if (!numbers.insert(table.number).second || table.keys < 0 || table.width < 1 ||
          table.keys > INT64_MAX / table.width)
        std::abort();
  }

  recsys::Session session_;
  recsys::hugectr::SnapshotName name_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Files files;
  if (size == 0) return 0;
  try {
    files.read(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  } catch (const DataError&) {
  }
  return 0;
}
