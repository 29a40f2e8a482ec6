"""
Neural collaborative filtering in HugeCTR's language, in epochs of generated Norm files:

    python -m tercel.hugectr examples/hugectr/ncf.py

As in HugeCTR's sample the dense value is not used.
"""

import argparse

import hugectr
from hugectr.tools import DataGenerator, DataGeneratorParams

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--folder", default="ncf_data")
args = parser.parse_args()

sizes = [100, 60]
files = dict(source=f"{args.folder}/train_list.txt", eval_source=f"{args.folder}/eval_list.txt")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.Norm, label_dim=1, dense_dim=1, num_slot=2, i64_input_key=False,
    slot_size_array=sizes, check_type=hugectr.Check_t.Non, num_files=4, eval_num_files=1, num_samples_per_file=10000,
    **files)).generate()

Metric = hugectr.MetricsType
solver = hugectr.CreateSolver(max_eval_batches=100, batchsize_eval=1000, batchsize=400, lr=0.003, vvgpu=[[0]], seed=1,
                              metrics_spec={Metric.HitRate: 0.8, Metric.AverageLoss: 0.0, Metric.AUC: 1.0},
                              repeat_dataset=False)
reader = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Norm, num_workers=10, **files)
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local,
                                    beta1=0.25, beta2=0.5, epsilon=1e-7)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=1, dense_name="dense",
                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, 2)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, workspace_size_per_gpu_in_mb=1,
    embedding_vec_size=24, combiner="sum", sparse_embedding_name="embedding", bottom_name="data", optimizer=optimizer))


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer = hugectr.Layer_t
add(Layer.Reshape, ["embedding"], ["flat"], leading_dim=48)
add(Layer.Slice, ["flat"], ["mlp_in", "gmf_in"], ranges=[(0, 32), (32, 48)])
add(Layer.InnerProduct, ["mlp_in"], ["fc1"], num_output=32)
add(Layer.ReLU, ["fc1"], ["relu1"])
add(Layer.Slice, ["gmf_in"], ["user", "item"], ranges=[(0, 8), (8, 16)])
add(Layer.ElementwiseMultiply, ["user", "item"], ["product"])
add(Layer.Concat, ["product", "relu1"], ["all"])
add(Layer.InnerProduct, ["all"], ["logit"], num_output=1)
add(Layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"])
model.compile()
model.summary()
model.fit(num_epochs=args.epochs, display=100, eval_interval=100, snapshot=100000, snapshot_prefix="ncf")
