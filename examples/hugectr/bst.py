"""
Behavior sequence transformer in HugeCTR's language, on generated Parquet files: attention among the items of a history.

    python -m tercel.hugectr examples/hugectr/bst.py
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=400)
parser.add_argument("--folder", default="bst_data")
args = parser.parse_args()

HISTORY, WIDTH = 4, 8
users, goods = 80, 60
shared = [users] + [0] * HISTORY + [goods]
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Parquet, label_dim=1, dense_dim=1, num_slot=len(shared), i64_input_key=True,
    slot_size_array=[users] + [goods] * (HISTORY + 1), num_files=2, eval_num_files=1, num_samples_per_file=10000,
    **files)).generate()

solver = hugectr.CreateSolver(max_eval_batches=10, batchsize_eval=1000, batchsize=250, lr=0.003, i64_input_key=True,
                              seed=1)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Parquet, num_workers=1,
                                  slot_size_array=shared, check_type=hugectr.Check_t.Non, **files)
optimizer = hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local, epsilon=1e-8)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=1, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam("UserID", 1, True, 1),
                            hugectr.DataReaderSparseParam("GoodID", 1, True, HISTORY),
                            hugectr.DataReaderSparseParam("Target", 1, True, 1)]))
for name, bottom in (("user", "UserID"), ("good", "GoodID"), ("target", "Target")):
    model.add(hugectr.SparseEmbedding(
        embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
        embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.SequenceMask, ["dense", "dense"], ["mask"], max_sequence_len_from=HISTORY, max_sequence_len_to=HISTORY)
for part in ("query", "key", "value"):
    add(Layer.InnerProduct, ["good"], [part], num_output=16)
add(Layer.MultiHeadAttention, ["query", "key", "value", "mask"], ["attention"], num_attention_heads=4)
add(Layer.Add, ["attention", "query"], ["shortcut1"])
add(Layer.LayerNorm, ["shortcut1"], ["norm1"])
add(Layer.InnerProduct, ["norm1"], ["ffn1"], num_output=32)
add(Layer.InnerProduct, ["ffn1"], ["ffn2"], num_output=16)
add(Layer.Add, ["ffn2", "norm1"], ["shortcut2"])
add(Layer.LayerNorm, ["shortcut2"], ["norm2"])
add(Layer.ReduceMean, ["norm2"], ["mean"], axis=1)
add(Layer.Reshape, ["mean"], ["mean_flat"], leading_dim=16)
add(Layer.Reshape, ["user"], ["user_flat"], leading_dim=WIDTH)
add(Layer.Reshape, ["target"], ["target_flat"], leading_dim=WIDTH)
add(Layer.Concat, ["mean_flat", "user_flat", "target_flat"], ["all"])
add(Layer.InnerProduct, ["all"], ["fc1"], num_output=32)
add(Layer.PReLU_Dice, ["fc1"], ["dice1"], elu_alpha=0.2, eps=1e-8)
add(Layer.InnerProduct, ["dice1"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations, snapshot=1000000)
