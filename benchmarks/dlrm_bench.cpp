// Time of a DLRM training step on batches generated in advance: forward, loss, backward, update; no reading.
//
//   dlrm_bench [threads=1] [batch=2048] [rows=100000] [dim=16] [tables=26] [bottom=512-256-64-16] [top=512-256-1]
//              [keys=64] [optimizer=SGD] [update=Local] [clip=0] [placement=auto] [steps=20] [repeats=5]
//
// Under mpirun each rank trains its part of a batch; rank 0 prints the times.
//
// `keys`: bits of a key in the batches, 64 or 32. `clip`: solver.clip_grad_norm. Prints the median and the minimum time
// of a step over the repeats, and the percentage of the limit: the products' arithmetic at the FMA peak, plus the rows
// at the gather rate, both measured first. benchmarks/README.md describes how to run it alternating with a peer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "tercel/distributed/mpi_transport.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/recsys/session.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;

std::vector<int64_t> widths(const std::string& text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at < text.size();) {
    const size_t dash = std::min(text.find('-', at), text.size());
    out.push_back(std::stoll(text.substr(at, dash - at)));
    at = dash + 1;
  }
  return out;
}

std::string list(const std::vector<int64_t>& values) { return str_cat({IntSpan(values)}); }

std::string config_of(const std::vector<int64_t>& bottom, const std::vector<int64_t>& top, int64_t dim) {
  std::string activations = "[";
  for (size_t i = 0; i + 1 < top.size(); ++i) activations += "\"Relu\", ";
  activations += "\"Non\"]";
  return R"({"optimizer": {"type": "SGD"}, "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": )" +
         std::to_string(dim) + R"(}},
    {"type": "MLP", "bottom": "dense", "top": "bottom", "mlp_param": {"num_outputs": )" +
         list(bottom) + R"(}},
    {"type": "Interaction", "bottom": ["bottom", "embedding"], "top": "interaction"},
    {"type": "MLP", "bottom": "interaction", "top": "logit", "mlp_param": {"num_outputs": )" +
         list(top) + R"(, "activations": )" + activations + R"(}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})";
}

/** Multiply-adds of one row, forward and backward, in the two networks and the pairwise products. */
double multiply_adds(const std::vector<int64_t>& bottom, const std::vector<int64_t>& top, int64_t tables, int64_t dim) {
  double total = 0;
  int64_t in = 13;
  bool first = true;
  for (const int64_t out : bottom) {
    total += static_cast<double>(in * out) * (first ? 2 : 3);  // the input needs no gradient
    first = false;
    in = out;
  }
  const int64_t pairs = tables * (tables + 1) / 2;
  total += static_cast<double>(pairs * dim) * 3;
  in = dim + pairs;
  for (const int64_t out : top) {
    total += static_cast<double>(in * out) * 3;
    in = out;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> arguments = {{"threads", "1"},     {"batch", "2048"}, {"rows", "100000"},
                                                  {"dim", "16"},        {"tables", "26"},  {"bottom", "512-256-64-16"},
                                                  {"top", "512-256-1"}, {"keys", "64"},    {"optimizer", "SGD"},
                                                  {"update", "Local"},  {"clip", "0"},     {"placement", "auto"},
                                                  {"steps", "20"},      {"repeats", "5"}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || !arguments.contains(argument.substr(0, equals))) {
      std::fprintf(stderr, "dlrm_bench: unknown argument %s\n", argv[i]);
      return 2;
    }
    arguments[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  const auto number = [&](const char* name) { return std::stoll(arguments[name]); };
  const int64_t threads = number("threads"), batch_size = number("batch"), rows = number("rows"), dim = number("dim"),
                tables = number("tables"), steps = number("steps"), repeats = number("repeats");
  const std::vector<int64_t> bottom = widths(arguments["bottom"]), top = widths(arguments["top"]);
  set_num_threads(threads);

  data::Schema schema;
  schema.dense_dim = 13;
  for (int64_t t = 0; t < tables; ++t) schema.slots.push_back({"C" + std::to_string(t), rows, t * rows, 1});
  recsys::ModelConfig config = recsys::parse_config(config_of(bottom, top, dim), "dlrm_bench");
  recsys::set_config(config, "optimizer.type=" + arguments["optimizer"]);
  recsys::set_config(config, "optimizer.update_type=" + arguments["update"]);
  recsys::set_config(config, "solver.clip_grad_norm=" + arguments["clip"]);
  recsys::set_config(config, "solver.placement=" + arguments["placement"]);
  recsys::set_config(config, str_cat({"solver.batchsize=", batch_size}));
  const std::unique_ptr<distributed::ProcessGroup> group =
      distributed::is_started_by_mpi() ? distributed::mpi_group() : distributed::single_group();
  recsys::Session session(config, schema, *group);
  session.initialize();
  session.set_learning_rate(0.1);

  std::vector<data::Batch> batches(8);
  const ScalarType key_dtype = number("keys") == 32 ? kInt32 : kInt64;
  const int64_t part = batch_size / group->size();
  const Tensor offsets = to(arange(part * tables + 1), key_dtype);
  manual_seed(static_cast<uint64_t>(1 + group->rank()));
  for (data::Batch& batch : batches) {
    batch.rows = part;
    batch.global_rows = part * group->size();
    batch.row = part * group->rank();
    batch.labels = randint(0, 2, {part, 1}, kFloat32);
    batch.dense = rand({part, 13});
    Tensor keys = randint(0, rows, {part, tables});
    int64_t* k = keys.data<int64_t>();
    for (int64_t i = 0; i < keys.numel(); ++i) k[i] += i % tables * rows;
    batch.sparse.push_back({.name = "keys",
                            .slot_num = tables,
                            .hotness = 1,
                            .row_offsets = offsets,
                            .keys = to(keys.reshape({-1}), key_dtype)});
  }

  const auto run = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) session.step(batches[static_cast<size_t>(session.steps()) % batches.size()]);
  };
  run(10);
  std::vector<double> times;
  for (int64_t r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    run(steps);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                    static_cast<double>(steps));
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const int64_t rank = group->rank(), ranks = group->size();
  group->close();
  if (rank != 0) return 0;

  std::printf(
      "tercel dlrm ranks=%lld threads=%lld batch=%lld %lldx%lldx%lld: median %.2f ms (min %.2f)  %.0f samples/s\n",
      static_cast<long long>(ranks), static_cast<long long>(threads), static_cast<long long>(batch_size),
      static_cast<long long>(tables), static_cast<long long>(rows), static_cast<long long>(dim), median * 1e3,
      times[0] * 1e3, static_cast<double>(batch_size) / median);
  if (ranks > 1) return 0;  // limits are those of a machine that does nothing else
  const double flops = 2 * multiply_adds(bottom, top, tables, dim) * static_cast<double>(batch_size);
  const double peak = limits::fma_peak(threads), gather = limits::gather_rate(threads, rows * tables, dim);
  // Each row is read once for the forward pass and once, with a write, for the update.
  const double limit = flops / peak + 2 * static_cast<double>(batch_size * tables) / gather;
  std::printf("limit %.2f ms: %.2f GFLOP at %.0f GFLOP/s, %.0f rows at %.0f M/s; reached %.0f %%\n", limit * 1e3,
              flops * 1e-9, peak * 1e-9, 2.0 * static_cast<double>(batch_size * tables), gather * 1e-6,
              100 * limit / times[0]);
  return 0;
}
