"""
Deep interest network in HugeCTR's language, on generated Parquet files with the schema of Amazon's reviews: attention
of the target item over a history.

    python -m tercel.hugectr examples/hugectr/din.py [--pooling matmul]

The history, weighted by the attention, becomes one number by a sum, or a vector by a product of matrices.
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--pooling", choices=("sum", "matmul"), default="sum")
parser.add_argument("--iterations", type=int, default=2400)
parser.add_argument("--folder", default="din_data")
args = parser.parse_args()

HISTORY, WIDTH, RANK = 10, 6, 3
USERS, GOODS, CATEGORIES = 100, 60, 20
random = np.random.default_rng(1)
vectors = 1.5 * random.normal(size=(GOODS, RANK))
user_effects, good_effects, values, category_effects = (
    random.normal(size=size) for size in (USERS, GOODS, GOODS, CATEGORIES))


def interest(dense, keys):
    """The goods of the history have values, of which those most like the target count; and effects of the others."""
    user, goods, categories = keys[0][:, 0], np.hstack(keys[1:HISTORY + 2]), np.hstack(keys[HISTORY + 2:])
    history, target = goods[:, :HISTORY], goods[:, HISTORY]
    attention = np.exp((vectors[history] * vectors[target][:, np.newaxis]).sum(axis=2))
    attention /= attention.sum(axis=1, keepdims=True)
    return 2 * (attention * values[history]).sum(axis=1) + user_effects[user] + good_effects[target] \
        + category_effects[categories[:, HISTORY]]


# A size of 0 shares the keys of the next slot that has one: history and target are the same goods.
shared = [USERS] + [0] * HISTORY + [GOODS] + [0] * HISTORY + [CATEGORIES]
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=0, num_slot=len(shared), i64_input_key=True,
    slot_size_array=[USERS] + [GOODS] * (HISTORY + 1) + [CATEGORIES] * (HISTORY + 1),
    dist_type=hugectr.Distribution_t.Uniform, num_files=4, eval_num_files=1, num_samples_per_file=40000, **files),
    interest).generate()

solver = hugectr.CreateSolver(max_eval_batches=20, batchsize_eval=1000, batchsize=250, lr=0.01, vvgpu=[[0]],
                              repeat_dataset=True, i64_input_key=True, use_cuda_graph=True, seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, num_workers=1,
                                  slot_size_array=shared, check_type=hugectr.Check_t.Non, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Global,
                                    beta1=0.9, beta2=0.999, epsilon=1e-9)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=0, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam("UserID", 1, True, 1),
                            hugectr.DataReaderSparseParam("GoodID", 1, True, HISTORY + 1),
                            hugectr.DataReaderSparseParam("CateID", 1, True, HISTORY + 1)]))
for name, bottom in (("user", "UserID"), ("good", "GoodID"), ("cate", "CateID")):
    model.add(hugectr.SparseEmbedding(
        embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
        embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer, ITEM = hugectr.Layer_t, 2 * WIDTH
add(Layer.FusedReshapeConcat, ["good", "cate"], ["history", "item"])
add(Layer.Scale, ["item"], ["items"], axis=1, factor=HISTORY)
add(Layer.Sub, ["items", "history"], ["difference"])
add(Layer.ElementwiseMultiply, ["items", "history"], ["product"])
add(Layer.Concat, ["items", "history", "difference", "product"], ["pairs"])
add(Layer.InnerProduct, ["pairs"], ["att1"], num_output=16)
add(Layer.InnerProduct, ["att1"], ["att2"], num_output=1)
add(Layer.Reshape, ["history"], ["history_steps"], leading_dim=ITEM, time_step=HISTORY)
if args.pooling == "sum":
    add(Layer.Reshape, ["att2"], ["scores"], leading_dim=HISTORY)
    add(Layer.Softmax, ["scores"], ["attention"])
    add(Layer.Scale, ["attention"], ["attention_wide"], axis=0, factor=ITEM)
    add(Layer.Reshape, ["history"], ["history_flat"], leading_dim=ITEM * HISTORY)
    add(Layer.ElementwiseMultiply, ["attention_wide", "history_flat"], ["weighted"])
    add(Layer.ReduceSum, ["weighted"], ["interest"], axis=1)
else:
    add(Layer.Reshape, ["att2"], ["scores"], leading_dim=HISTORY, time_step=1)
    add(Layer.Softmax, ["scores"], ["attention"])
    add(Layer.MatrixMultiply, ["attention", "history_steps"], ["weighted"])
    add(Layer.Reshape, ["weighted"], ["interest"], leading_dim=ITEM)
add(Layer.ReduceMean, ["history_steps"], ["mean"], axis=1)
add(Layer.Reshape, ["mean"], ["mean_flat"], leading_dim=ITEM)
add(Layer.Reshape, ["user"], ["user_flat"], leading_dim=WIDTH)
add(Layer.Concat, ["user_flat", "mean_flat", "interest", "item"], ["dice0"])
for i, width in enumerate((64, 32), start=1):
    add(Layer.InnerProduct, [f"dice{i - 1}"], [f"fc{i}"], num_output=width)
    add(Layer.PReLU_Dice, [f"fc{i}"], [f"dice{i}"], elu_alpha=0.2, eps=1e-8)
add(Layer.InnerProduct, ["dice2"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=400, eval_interval=400, snapshot=1000000, snapshot_prefix="din")
