"""
Neural collaborative filtering in HugeCTR's language, in epochs of generated Norm files with the schema of MovieLens:

    python -m tercel.hugectr examples/hugectr/ncf.py [--model gmf | neumf]

Layers of both vectors side by side (ncf), their product (gmf), or both (neumf). As in HugeCTR's samples the dense value
is not used. Their slices lose columns, and neumf's product is of columns of the item; here it is of user and item.
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=("ncf", "gmf", "neumf"), default="ncf")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--folder", default="ncf_data")
args = parser.parse_args()

USERS, ITEMS, RANK = 200, 100, 3
random = np.random.default_rng(1)
# Latent vectors, and an effect in the last column.
users, items = (random.normal(size=(size, RANK + 1)) for size in (USERS, ITEMS))


def affinity(dense, keys):
    """The product of the latent vectors, and the effects of user and item."""
    user, item = users[keys[0][:, 0]], items[keys[1][:, 0]]
    return (user[:, :RANK] * item[:, :RANK]).sum(axis=1) + user[:, RANK] + item[:, RANK]


files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Norm, label_dim=1, dense_dim=1, num_slot=2, i64_input_key=False,
    slot_size_array=[USERS, ITEMS], check_type=hugectr.Check_t.Non, dist_type=hugectr.Distribution_t.Uniform,
    num_files=4, eval_num_files=1, num_samples_per_file=40000, **files), affinity).generate()

Metric = hugectr.MetricsType
solver = hugectr.CreateSolver(max_eval_batches=100, batchsize_eval=1000, batchsize=500, lr=0.005, vvgpu=[[0]], seed=1,
                              metrics_spec={Metric.HitRate: 0.8, Metric.AverageLoss: 0.0, Metric.AUC: 1.0},
                              repeat_dataset=False)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Norm, check_type=hugectr.Check_t.Non,
                                  num_workers=10, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Global,
                                    beta1=0.25, beta2=0.5, epsilon=1e-3 if args.model == "gmf" else 1e-7)
# Columns of an embedding for the layers, and for the product.
mlp, gmf = {"ncf": (16, 0), "gmf": (0, 8), "neumf": (16, 8)}[args.model]
WIDTH = mlp + gmf
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=1, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, 2)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
    embedding_vec_size=WIDTH, combiner="sum", sparse_embedding_name="embedding", bottom_name="data",
    optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["flat"], leading_dim=2 * WIDTH)
parts = []
if mlp:
    add(Layer.Slice, ["flat"], ["mlp_user", "mlp_item"], ranges=[(0, mlp), (WIDTH, WIDTH + mlp)])
    add(Layer.Concat, ["mlp_user", "mlp_item"], ["dropout0"])
    for i, width in enumerate((64, 64, 32, 16), start=1):
        add(Layer.InnerProduct, [f"dropout{i - 1}"], [f"fc{i}"], num_output=width)
        add(Layer.ReLU, [f"fc{i}"], [f"relu{i}"])
        add(Layer.Dropout, [f"relu{i}"], [f"dropout{i}"], dropout_rate=0.1)
    parts.append("dropout4")
if gmf:
    add(Layer.Slice, ["flat"], ["gmf_user", "gmf_item"], ranges=[(mlp, WIDTH), (WIDTH + mlp, 2 * WIDTH)])
    add(Layer.ElementwiseMultiply, ["gmf_user", "gmf_item"], ["product"])
    parts.append("product")
add(Layer.Concat, parts, ["all"])
add(Layer.InnerProduct, ["all"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(num_epochs=args.epochs, display=800, eval_interval=800, snapshot=100000, snapshot_prefix=args.model)
print("ranks:", MPI.COMM_WORLD.Get_size())
