"""
Deep interest network in HugeCTR's language, on generated Parquet files: attention of the target item over a history.

    python -m tercel.hugectr examples/hugectr/din.py
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=400)
parser.add_argument("--folder", default="din_data")
args = parser.parse_args()

HISTORY, WIDTH = 4, 6
users, goods, categories = 80, 60, 20
# A size of 0 shares the keys of the next slot that has one: history and target are the same goods.
shared = [users] + [0] * HISTORY + [goods] + [0] * HISTORY + [categories]
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=0, num_slot=len(shared), i64_input_key=True,
    slot_size_array=[users] + [goods] * (HISTORY + 1) + [categories] * (HISTORY + 1), num_files=2, eval_num_files=1,
    num_samples_per_file=10000, **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=10, batchsize_eval=1000, batchsize=250, lr=0.003, i64_input_key=True,
                              seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, num_workers=1,
                                  slot_size_array=shared, check_type=hugectr.Check_t.Non, **files)
optimizer = hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local, epsilon=1e-8)
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
add(Layer.Reshape, ["att2"], ["scores"], leading_dim=HISTORY)
add(Layer.Softmax, ["scores"], ["attention"])
add(Layer.Scale, ["attention"], ["attention_wide"], axis=0, factor=ITEM)
add(Layer.Reshape, ["history"], ["history_flat"], leading_dim=ITEM * HISTORY)
add(Layer.ElementwiseMultiply, ["attention_wide", "history_flat"], ["weighted"])
add(Layer.ReduceSum, ["weighted"], ["interest"], axis=1)
add(Layer.Reshape, ["history"], ["history_steps"], leading_dim=ITEM, time_step=HISTORY)
add(Layer.ReduceMean, ["history_steps"], ["mean"], axis=1)
add(Layer.Reshape, ["mean"], ["mean_flat"], leading_dim=ITEM)
add(Layer.Reshape, ["user"], ["user_flat"], leading_dim=WIDTH)
add(Layer.Concat, ["user_flat", "mean_flat", "interest", "item"], ["all"])
add(Layer.InnerProduct, ["all"], ["fc1"], num_output=32)
add(Layer.PReLU_Dice, ["fc1"], ["dice1"], elu_alpha=0.2, eps=1e-8)
add(Layer.InnerProduct, ["dice1"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=1000000)
