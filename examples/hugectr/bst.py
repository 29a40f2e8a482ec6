"""
Behavior sequence transformer in HugeCTR's language, on generated Parquet files with the schema of Amazon's reviews:
attention among the items of a history.

    python -m tercel.hugectr examples/hugectr/bst.py [--pooling concat]

The history becomes the mean of its items, or all of them side by side, which keeps their order.
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--pooling", choices=("average", "concat"), default="average")
parser.add_argument("--iterations", type=int, default=1600)
parser.add_argument("--folder", default="bst_data")
args = parser.parse_args()

HISTORY, WIDTH, HIDDEN = 6, 8, 16
USERS, GOODS, CATEGORIES = 100, 60, 20
random = np.random.default_rng(1)
tastes, user_effects, good_effects, category_effects = (
    random.normal(size=size) for size in (GOODS, USERS, GOODS, CATEGORIES))
# How much each item counts: the order matters only where the model keeps it.
weights = np.ones(HISTORY) if args.pooling == "average" else 0.8 ** np.arange(HISTORY)
weights /= np.linalg.norm(weights)


def match(dense, keys):
    """The history's taste times the target's, and effects of user, target and category."""
    user, target, category = keys[0][:, 0], keys[HISTORY + 1][:, 0], keys[-1][:, 0]
    history = tastes[np.hstack(keys[1:HISTORY + 1])] @ weights
    return history * tastes[target] + user_effects[user] + good_effects[target] + category_effects[category]


# A size of 0 shares the keys of the next slot that has one: history and target are the same goods.
shared = [USERS] + [0] * HISTORY + [GOODS] + [0] * HISTORY + [CATEGORIES]
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=1, num_slot=len(shared), i64_input_key=True,
    slot_size_array=[USERS] + [GOODS] * (HISTORY + 1) + [CATEGORIES] * (HISTORY + 1),
    dist_type=hugectr.Distribution_t.Uniform, num_files=4, eval_num_files=1, num_samples_per_file=40000, **files),
    match).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=250, lr=0.01, vvgpu=[[0]],
                              repeat_dataset=True, i64_input_key=True, use_cuda_graph=True, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, num_workers=1,
                                  slot_size_array=shared, check_type=hugectr.Check_t.Non, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Global,
                                    beta1=0.9, beta2=0.999, epsilon=1e-9)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=1, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam("UserID", 1, True, 1),
                            hugectr.DataReaderSparseParam("GoodID", 1, True, HISTORY),
                            hugectr.DataReaderSparseParam("Target_Good", 1, True, 1),
                            hugectr.DataReaderSparseParam("CateID", 1, True, HISTORY),
                            hugectr.DataReaderSparseParam("Target_Cate", 1, True, 1)]))
for name, bottom in (("user", "UserID"), ("good", "GoodID"), ("target_good", "Target_Good"), ("cate", "CateID"),
                     ("target_cate", "Target_Cate")):
    model.add(hugectr.SparseEmbedding(
        embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
        embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
# The length of the history, of which the generated value is a share.
add(Layer.Scale, ["dense"], ["dense_wide"], axis=0, factor=HISTORY)
add(Layer.ReduceSum, ["dense_wide"], ["length"], axis=1)
add(Layer.SequenceMask, ["length", "length"], ["mask"], max_sequence_len_from=HISTORY, max_sequence_len_to=HISTORY)
add(Layer.Concat, ["cate", "good"], ["history"], axis=2)
for part in ("query", "key", "value"):
    add(Layer.InnerProduct, ["history"], [part], num_output=HIDDEN)
add(Layer.MultiHeadAttention, ["query", "key", "value", "mask"], ["attention"], num_attention_heads=4)
add(Layer.Add, ["attention", "query"], ["shortcut1"])
add(Layer.LayerNorm, ["shortcut1"], ["norm1"])
add(Layer.InnerProduct, ["norm1"], ["ffn1"], num_output=4 * HIDDEN)
add(Layer.InnerProduct, ["ffn1"], ["ffn2"], num_output=HIDDEN)
add(Layer.Add, ["ffn2", "norm1"], ["shortcut2"])
add(Layer.LayerNorm, ["shortcut2"], ["norm2"])
if args.pooling == "average":
    add(Layer.ReduceMean, ["norm2"], ["mean"], axis=1)
    add(Layer.Reshape, ["mean"], ["interest"], leading_dim=HIDDEN)
else:
    add(Layer.Reshape, ["norm2"], ["interest"], leading_dim=HIDDEN * HISTORY)
parts = ["user", "target_good", "target_cate"]
for part in parts:
    add(Layer.Reshape, [part], [f"{part}_flat"], leading_dim=WIDTH)
add(Layer.Concat, ["interest", *(f"{part}_flat" for part in parts)], ["dice0"])
for i, width in enumerate((64, 32, 16), start=1):
    add(Layer.InnerProduct, [f"dice{i - 1}"], [f"fc{i}"], num_output=width)
    add(Layer.PReLU_Dice, [f"fc{i}"], [f"dice{i}"], elu_alpha=0.2, eps=1e-8)
add(Layer.InnerProduct, ["dice3"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=400, eval_interval=400, snapshot=1000000, snapshot_prefix="bst")
