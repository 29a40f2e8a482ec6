// Configurations of the shipped models.
#include "tercel/recsys/model/config.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

// Naumov et al., "Deep learning recommendation model for personalization and recommendation systems" (2019).
constexpr std::string_view kDlrm = R"json({
  "model_name": "dlrm",
  "solver": {"batchsize": 256, "lr": 0.01, "warmup_steps": 0},
  "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"epsilon": 1e-10}},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "categories"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum", "init_stddev": 0.01}},
    {"type": "MLP", "bottom": "dense", "top": "bottom", "mlp_param": {"weight_init": "XavierUniform", "bias_init": "Uniform", "num_outputs": [256, 128, 16], "activation": "Relu"}},
    {"type": "Interaction", "bottom": ["bottom", "embedding"], "top": "interaction"},
    {"type": "MLP", "bottom": "interaction", "top": "logit",
     "mlp_param": {"weight_init": "XavierUniform", "bias_init": "Zero", "num_outputs": [256, 128, 1], "activations": ["Relu", "Relu", "Non"]}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

// Cheng et al., "Wide & deep learning for recommender systems" (2016).
constexpr std::string_view kWdl = R"json({
  "model_name": "wdl",
  "solver": {"batchsize": 256, "lr": 0.01, "warmup_steps": 0},
  "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"epsilon": 1e-10}},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "categories"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "wide_embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum", "init_range": 0}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum", "init_stddev": 0.01}},
    {"type": "Reshape", "bottom": "wide_embedding", "top": "wide_flat"},
    {"type": "ReduceSum", "bottom": "wide_flat", "top": "wide", "axis": 1},
    {"type": "Reshape", "bottom": "embedding", "top": "deep_flat"},
    {"type": "Concat", "bottom": ["deep_flat", "dense"], "top": "deep_input"},
    {"type": "MLP", "bottom": "deep_input", "top": "deep",
     "mlp_param": {"weight_init": "XavierNorm", "bias_init": "Zero", "num_outputs": [256, 128, 1], "activations": ["Relu", "Relu", "Non"]}},
    {"type": "Add", "bottom": ["deep", "wide"], "top": "logit"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

// Guo et al., "DeepFM: a factorization-machine based neural network for CTR prediction" (2017).
constexpr std::string_view kDeepFm = R"json({
  "model_name": "deepfm",
  "solver": {"batchsize": 128, "lr": 0.01, "warmup_steps": 0},
  "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"epsilon": 1e-10}},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "categories"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "first_order_embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum", "init_range": 0}},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum", "init_stddev": 0.01}},
    {"type": "Reshape", "bottom": "first_order_embedding", "top": "first_order_flat"},
    {"type": "ReduceSum", "bottom": "first_order_flat", "top": "first_order_categories", "axis": 1},
    {"type": "InnerProduct", "bottom": "dense", "top": "first_order_dense",
     "fc_param": {"weight_init": "Zero", "bias_init": "Zero", "num_output": 1}},
    {"type": "Reshape", "bottom": "embedding", "top": "flat"},
    {"type": "FmOrder2", "bottom": "flat", "top": "fm", "out_dim": 16},
    {"type": "ReduceSum", "bottom": "fm", "top": "second_order", "axis": 1},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "deep_input"},
    {"type": "MLP", "bottom": "deep_input", "top": "deep",
     "mlp_param": {"weight_init": "XavierUniform", "bias_init": "Zero", "num_outputs": [256, 128, 1], "activations": ["Relu", "Relu", "Non"]}},
    {"type": "Add", "bottom": ["deep", "second_order", "first_order_categories", "first_order_dense"], "top": "logit"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

// Wang et al., "Deep & cross network for ad click predictions" (2017), with the low-rank crosses of "DCN V2" (2021).
constexpr std::string_view kDcn = R"json({
  "model_name": "dcn",
  "solver": {"batchsize": 256, "lr": 0.01, "warmup_steps": 0},
  "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"epsilon": 1e-10}},
  "layers": [
    {"type": "Data", "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "categories"}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "categories", "top": "embedding",
     "sparse_embedding_hparam": {"embedding_vec_size": 16, "combiner": "sum", "init_stddev": 0.01}},
    {"type": "Reshape", "bottom": "embedding", "top": "flat"},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "input"},
    {"type": "MultiCross", "bottom": "input", "top": "cross", 
     "mc_param": {"num_layers": 3, "projection_dim": 64, "weight_init": "XavierUniform"}},
    {"type": "MLP", "bottom": "input", "top": "deep", "mlp_param": {"weight_init": "XavierUniform", "bias_init": "Zero", "num_outputs": [256, 128], "activation": "Relu"}},
    {"type": "Concat", "bottom": ["cross", "deep"], "top": "both"},
    {"type": "InnerProduct", "bottom": "both", "top": "logit",
     "fc_param": {"weight_init": "XavierUniform", "bias_init": "Zero", "num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}
  ]
})json";

constexpr std::string_view kNames[] = {"wdl", "deepfm", "dcn", "dlrm"};
constexpr std::string_view kTexts[] = {kWdl, kDeepFm, kDcn, kDlrm};

}  // namespace

Span<std::string_view> preset_names() { return kNames; }

std::string_view preset(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return kTexts[i];
  throw_error<ConfigError>({"unknown model '", name, "'", known_names(name, kNames)});
}

}  // namespace tercel::recsys
