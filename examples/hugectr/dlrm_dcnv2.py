"""
DLRM-DCNv2 in HugeCTR's language, on generated RawAsync files: a collection of tables with several keys a slot, a
plan of GPUs, a callback. Slots and their numbers of keys are those of MLPerf's data.

    python -m tercel.hugectr examples/hugectr/dlrm_dcnv2.py
"""

import argparse

import hugectr
import numpy as np
from hugectr.tools import DataGenerator, DataGeneratorParams
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=1200)
parser.add_argument("--ev_size", type=int, default=8)
parser.add_argument("--vocabulary", type=int, default=60)
parser.add_argument("--gpus", type=int, default=2)
parser.add_argument("--folder", default="dcnv2_data")
args = parser.parse_args()

HOTNESS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]
SLOTS, DENSE, SIZE = len(HOTNESS), 13, 60
effects = np.random.default_rng(1).normal(size=(SLOTS, SIZE))


def truth(dense, keys):
    """A sum of effects of dense values and of slots, of the same variance however many keys a slot has."""
    score = 12**0.5 * (dense[:, ::2].sum(axis=1) - dense[:, 1::2].sum(axis=1))
    for slot, of in enumerate(keys):
        score += effects[slot, of].sum(axis=1) / of.shape[1] ** 0.5
    return 1.5 * score / (DENSE + SLOTS) ** 0.5


rows = dict(num_samples=160000, eval_num_samples=20000)
files = dict(source=f"{args.folder}/train.bin", eval_source=f"{args.folder}/eval.bin")
DataGenerator(DataGeneratorParams(
    format=hugectr.DataReaderType_t.RawAsync, label_dim=1, dense_dim=DENSE, num_slot=SLOTS, i64_input_key=False,
    slot_size_array=[SIZE] * SLOTS, nnz_array=HOTNESS, float_label_dense=True, **rows, **files), truth).generate()


class Watch(hugectr.TrainingCallback):
    """Ends the training when AUC is good enough."""

    def __init__(self, threshold):
        self.threshold = threshold
        super().__init__()

    def on_training_start(self):
        print("training starts")

    def on_training_end(self, current_iter):
        print("training ends after iteration", current_iter)

    def on_eval_start(self, current_iter):
        return False

    def on_eval_end(self, current_iter, eval_results):
        return eval_results["AUC"] >= self.threshold


num_gpus = MPI.COMM_WORLD.Get_size() * args.gpus
solver = hugectr.CreateSolver(
    model_name="dlrm_dcnv2", seed=1, max_eval_batches=20, batchsize_eval=1000, batchsize=500, lr=0.01, warmup_steps=0,
    decay_start=0, decay_steps=0, vvgpu=[list(range(args.gpus))], use_embedding_collection=True,
    grouped_all_reduce=True, train_inter_iteration_overlap=True, training_callbacks=[Watch(0.9999)])
optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.AdaGrad, update_type=hugectr.Update_t.Global,
                                    initial_accu_value=0.0, epsilon=1e-8)
reader = hugectr.DataReaderParams(
    data_reader_type=hugectr.DataReaderType_t.RawAsync, check_type=hugectr.Check_t.Non, cache_eval_data=1,
    async_param=hugectr.AsyncParam(num_threads=1, num_batches_per_thread=16, shuffle=True, multi_hot_reader=True,
                                   is_dense_float=True), **rows, **files)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                        data_reader_sparse_param_array=[
                            hugectr.DataReaderSparseParam(f"data{i}", HOTNESS[i], True, 1) for i in range(SLOTS)]))
tables = [hugectr.EmbeddingTableConfig(name=str(i), max_vocabulary_size=args.vocabulary, ev_size=args.ev_size)
          for i in range(SLOTS)]
collection = hugectr.EmbeddingCollectionConfig(use_exclusive_keys=True,
                                               comm_strategy=hugectr.CommunicationStrategy.Uniform)
collection.embedding_lookup(table_config=tables, bottom_name=[f"data{i}" for i in range(SLOTS)], top_name="embedding",
                            combiner=["sum"] * SLOTS)
matrix = [[str(i) for i in range(SLOTS) if i % num_gpus == gpu] for gpu in range(num_gpus)]
collection.shard(shard_matrix=matrix, shard_strategy=[("mp", [str(i) for i in range(SLOTS)])])
model.add(collection)
config = hugectr.DenseLayerComputeConfig(async_wgrad=True, fuse_wb=False)


def add(layer_type, bottoms, tops, **options):
    model.add(hugectr.DenseLayer(layer_type=layer_type, bottom_names=bottoms, top_names=tops, **options))


Layer, Act = hugectr.Layer_t, hugectr.Activation_t
add(Layer.MLP, ["dense"], ["mlp1"], num_outputs=[16, 8], act_type=Act.Relu, compute_config=config)
add(Layer.Concat, ["embedding", "mlp1"], ["concat1"])
add(Layer.MultiCross, ["concat1"], ["interaction1"], projection_dim=8, num_layers=2, compute_config=config)
add(Layer.MLP, ["interaction1"], ["mlp2"], num_outputs=[32, 16, 1], activations=[Act.Relu, Act.Relu, Act.Non])
add(Layer.BinaryCrossEntropyLoss, ["mlp2", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.iterations, display=200, eval_interval=args.iterations // 2, snapshot=2000000)
model.embedding_dump(f"{args.folder}/dump")
