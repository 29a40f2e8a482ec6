"""Lines for calls whose arguments leak_calls.py cannot guess; with tc, nn, F, optim, its samples, and path, a folder."""

import copy
import os
import pickle
import threading
import warnings

import numpy as np
from leak_calls import fresh

import tercel as tc
from tercel import nn, optim
from tercel.autograd import forward_ad as fwAD

LINES = r"""
tc.data.register_filesystem("leaks", __import__("fsspec").filesystem("memory"))
tc.promote_types(tc.int8, tc.float32), tc.can_cast(tc.int8, tc.bool), tc.finfo(tc.float32).eps, tc.iinfo(tc.int8).max
tc.set_default_dtype(tc.get_default_dtype()), tc.set_default_device(tc.get_default_device())
tc.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)).resize_as_sparse_(tc.sparse_coo_tensor((4,))), tc.sparse_coo_tensor((2, 2))
[make([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)) for make in (tc.sparse_csr_tensor, tc.sparse_csc_tensor)], tc.sparse_compressed_tensor([0, 1], [0], [1.0], layout=tc.sparse_csr)
[make([0, 1], [0], [[[1.0, 2.0]]], (1, 2)) for make in (tc.sparse_bsr_tensor, tc.sparse_bsc_tensor)], copy.deepcopy(x.to_sparse_csr()), pickle.dumps(x.to_sparse_bsr((1, 2)))
tc.sparse.from_scipy(tc.sparse.to_scipy(x.to_sparse_csr()), tc.sparse_csc), repr(x.to_sparse_csc()), repr(x.to_sparse_csr())
x.to_sparse().smm(x), x.to_sparse().sspaddmm(x.to_sparse(), x), tc.hsmm(x.to_sparse(), x), tc.saddmm(x, x.to_sparse(), x), tc.sparse.spdiags(x, tc.tensor([0, 1]), (2, 2))
tc.sparse.as_sparse_gradcheck(tc.autograd.gradcheck)(lambda a: a * 2, (x.double().to_sparse_csr().requires_grad_(),)), tc.randn_like(x.to_sparse_csr()), tc.sin(x.to_sparse(), out=x.to_sparse())
s = tc.sparse.tensorflow.SparseTensor([[1, 0], [0, 1]], [1.0, 2.0], (2, 2)); s.reorder().to_dense(), s.to_coo(), repr(s), s.shape, s.dtype, s.values, s.from_coo(x.to_sparse()), tc.sparse.tensorflow.to_dense(tc.sparse.tensorflow.reorder(s))
tc.sparse.FloatTensor(2, 2).add_(x.to_sparse()), x.to_sparse().new(x.shape), tc.masked.prod(x.to_sparse(), 0, mask=x > 0)
tc.smm(x.to_sparse(), x), tc.hspmm(x.to_sparse(), x), tc.spmm(x.to_sparse(), x), tc.dsmm(x.to_sparse(), x), tc.sspaddmm(x.to_sparse(), x.to_sparse(), x)
tc.sparse.to_scipy(x.to_sparse()), tc.sparse.from_scipy(tc.sparse.to_scipy(x.to_sparse())), repr(x.to_sparse()), pickle.dumps(x.to_sparse())
c = x.to_sparse_csr(); c.clone().resize_as_sparse_(c), c.clone().resize_(4, 4), tc.triangular_solve(x[:2, :2], c.to_dense()[:2, :2].to_sparse_csr()), tc.masked.mean(c, 1, keepdim=True, mask=x > 0), tc.full_like(c, 2), tc.get_device_module("cpu")
c = x.to_sparse_csr(); t = c.t(); t.mul_(2), t._base, c.values()._base, tc.sparse.sampled_addmm(c, x, x.t() @ x)
c = tc.sparse.check_sparse_tensor_invariants; c.enable(), c.is_enabled(), c.disable(), c.enable(), c(True)(lambda: 0)()
w = nn.Embedding(3, 2, sparse=True); w(i).sum().backward(); optim.SparseAdam(w.parameters()).step(), copy.deepcopy(w.weight)
tc.set_default_tensor_type(tc.FloatTensor), tc.set_num_threads(tc.get_num_threads())
tc.is_anomaly_enabled(), tc.is_anomaly_check_nan_enabled(), tc.is_grad_enabled(), tc.is_inference_mode_enabled()
tc.use_deterministic_algorithms(False), tc.set_deterministic_debug_mode("default"), tc.set_float32_matmul_precision("highest")
tc.channel_shuffle(image, 2), tc.native_channel_shuffle(image, 2), tc.conv_tbc(three, tc.rand(1, 2, 2), v)
tc.grid_sampler(image, tc.zeros(1, 2, 2, 2), 0, 0, False), tc.grid_sampler_2d(image, tc.zeros(1, 2, 2, 2), 0, 0, False)
tc.grid_sampler_3d(tc.rand(1, 1, 2, 2, 2), tc.zeros(1, 2, 2, 2, 3), 0, 0, False)
tc.cartesian_prod(v, v), tc.chain_matmul(x, x, x), tc.einsum("ij,jk", x, x), tc.meshgrid(v, v, indexing="ij")
tc.einsum(x, [0, 1], x, [1, 2], [0, 2]), tc.unravel_index(i, (2, 2)), tc.ormqr(x, v, x), tc.svd_lowrank(x, 1)
tc.signal.windows.hann(4), tc.signal.windows.kaiser(4), tc.signal.windows.exponential(4), tc.signal.windows.gaussian(4)
tc.stft(tc.rand(16), 4, return_complex=True), tc.histogramdd(tc.rand(4, 2), 2)
tc.pca_lowrank(x, 1), tc.lobpcg(tc.eye(4).double() * tc.arange(4).double(), 1)
tc.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False), tc.instance_norm(image, None, None, None, None, True, 0.1, 1e-5, False)
tc.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), tc.native_layer_norm(x, (2,), None, None, 1e-5), tc.native_dropout(x, 0.5, True)
tc.native_group_norm(tc.rand(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5), tc.convolution(tc.rand(1, 1, 3), tc.rand(1, 1, 2), None, [1], [0], [1], False, [0], 1)
tc.binary_cross_entropy_with_logits(x, x), tc.cosine_embedding_loss(tc.rand(2, 2), tc.rand(2, 2), tc.ones(2)), tc.hinge_embedding_loss(x, x)
tc.kl_div(x, x), tc.margin_ranking_loss(x, x, x), tc.poisson_nll_loss(x, x, True, False, 1e-8, 1), tc.triplet_margin_loss(x, x, x)
tc.ctc_loss(tc.rand(5, 1, 3), tc.tensor([[1, 2]]), tc.tensor([5]), tc.tensor([2])), tc.norm_except_dim(x), tc.norm_except_dim(x, 2, -1)
tc.alpha_dropout(tc.rand(2), 0.5, True), tc.feature_dropout(tc.rand(2, 2), 0.5, True), tc.feature_alpha_dropout(tc.rand(2, 2), 0.5, True)
tc.alpha_dropout_(tc.rand(2), 0.5, True), tc.dropout_(tc.rand(2), 0.5, True), tc.feature_dropout_(tc.rand(2, 2), 0.5, True), tc.feature_alpha_dropout_(tc.rand(2, 2), 0.5, True)
tc.view_as_complex_copy(tc.rand(2, 2)), tc.view_as_real_copy(tc.rand(2) + 1j), tc.overrides.resolve_name(tc.sin), tc.overrides.get_overridable_functions()
nn.modules.utils.consume_prefix_in_state_dict_if_present({"a.b": 1}, "a.")
nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)), nn.utils.prune.identity(nn.Linear(2, 2), "weight")
p = nn.utils.prune; l = p.l1_unstructured(nn.Linear(2, 2), "weight", 1); p.random_unstructured(l, "weight", 1); p.is_pruned(l); p.remove(l, "weight")
p = nn.utils.prune; p.ln_structured(nn.Linear(2, 2), "weight", 1, 2, 0), p.random_structured(nn.Linear(2, 2), "weight", 1, 0), p.custom_from_mask(nn.Linear(2, 2), "weight", tc.ones(2, 2))
p = nn.utils.prune; p.RandomUnstructured(1), p.RandomStructured(1), p.LnStructured(1, 2), p.CustomFromMask(x), p.Identity(), p.PruningContainer()
p = nn.utils.prune; p.BasePruningMethod.compute_mask(p.Identity(), x, x), p.L1Unstructured(1).ranks(x), p.BasePruningMethod
p = nn.utils.prune; l = nn.Linear(2, 2); p.global_unstructured([(l, "weight")], p.L1Unstructured, amount=1); p.L1Unstructured(1).prune(tc.rand(2))
tc.istft(tc.stft(tc.rand(16), 4, window=tc.ones(4), return_complex=True), 4, window=tc.ones(4))
tc.set_rng_state(tc.get_rng_state()), tc.manual_seed(0), tc.initial_seed()
tc.save({"x": x, "l": [v, (1, "a", None, 2.5)]}, path + "/a.pt"), tc.load(path + "/a.pt"), tc.load(path + "/a.pt", mmap=True)
tc.io.save_npy(path + "/a.npy", x), tc.io.load_npy(path + "/a.npy"), tc.io.load_npy(path + "/a.npy", mmap=True)
tc.io.save_npz(path + "/a.npz", {"x": x}), tc.io.load_npz(path + "/a.npz"), tc.io.save_npz(path + "/b.npz", {"x": x}, compressed=True)
tc.safetensors.save_file({"x": x}, path + "/a.st", {"k": "v"}), tc.safetensors.load_file(path + "/a.st")
tc.safetensors.load(tc.safetensors.save({"x": x}, {"a": "b"}))
with tc.safetensors.safe_open(weights) as f: f.keys(), f.metadata(), f.get_tensor("x"), f.get_slice("x")[:1]
with tc.safetensors.safe_open(weights) as f: s = f.get_slice("x"); s.get_shape(), s.get_dtype(), s[0, :1], f.offset_keys()
d = tc.data.open_dataset(clicks); d.parts, d.test, d.folder, d.format, d.format_options, d.conversion, d.schema.slot_size_array, copy.deepcopy(d)
d = tc.data.Dataset(clicks); [(b.labels, b.columns, b["a"].row_offsets, "a" in b) for b in d.batches(batch_size=7, inputs={"a": 5}, shuffle=True)]
with tc.data.open_dataset(clicks).batches(batch_size=7, epochs=2) as r: b = next(iter(r)); b["keys"].keys, b["keys"].key_weights, r.position, len(r)
with tc.data.open_dataset(clicks).batches("test") as r: r.seek(r.position), r.rewind(), list(r), list(r), r.options, r.schema, r.epoch_rows, r.epoch_batches
r = tc.data.open_dataset(clicks).batches(); r.part, r.closed, r.close(), tc.data.BatchReader(tc.data.Dataset(clicks))
l = tc.data.Dataset(clicks).train.files[0].path; open(path + "/l", "w").write("1\n" + l); tc.data.open_files("norm", train_list=path + "/l", dense_dim=4, nnz_per_slot=[1] * 5, key_type="i64")
tc.data.Slot("a"), tc.data.Column("a"), tc.data.Schema(1, 0, (), (), (), 0), tc.data.DataFile("a", 1, "", 1), tc.data.DataPart("a", 1, 1, (), None), tc.data.ReaderPosition(0, 0, 1)
tc.data.Batch(0, 0, 0, 0, 0, x, x, [("a", 1, 0, "sample_major", True, v, v, None)], [("c", v)]), tc.data.SparseBatch("a", 1, 0, "sample_major", False, v, v, None)
tc.data.generate(path + "/g", rows=20, preset="small", replace=True, progress=lambda *of: None), tc.data.GenerateResult, tc.data.ConvertResult
open(path + "/c.csv", "w").write("y,x\n" + "1,2\n0,3\n" * 9); tc.data.convert_csv(path + "/c.csv", path + "/c", label="y", dense=["x"], replace=True)
open(path + "/c.txt", "w").write(("1" + "\t3" * 39 + "\n") * 9); tc.data.convert_criteo([path + "/c.txt"], path + "/k", replace=True)
open(path + "/u.data", "w").write("".join(f"{u}\t{i}\t5\t{i}\n" for u in range(3) for i in range(u, u + 4))); tc.data.convert_movielens(path + "/u.data", path + "/mv", min_ratings=1, test_negatives=1, replace=True)
open(path + "/c.csv", "w").write("y,c\n" + "1,a\n0,b\n" * 9); r = tc.data.convert_csv(path + "/c.csv", path + "/e", label="y", categorical=["c"], min_count={"c": 1}, replace=True); r.categories_seen, r.dataset.valid, tc.data.convert_like(path + "/e", path + "/c.csv", path + "/f", replace=True)
open(path + "/m.txt", "w").write("1 0:1 3:1\n0 2:1\n" * 9); tc.data.convert_libsvm(path + "/m.txt", path + "/m", replace=True)
open(path + "/n.txt", "w").write("1 0:0:1 1:3:1\n0 0:2:1\n" * 9); tc.data.convert_libffm(path + "/n.txt", path + "/n", replace=True)
d = tc.data.ArrowDataset({"y": np.ones(9), "k": np.arange(9)}, label="y", categorical="k", storage="disk"); repr(d), list(d.batches(batch_size=4, shuffle=True)), list(d.batches())
! copy.copy(tc.data.ArrowDataset({"y": np.ones(9)}, label="y"))
m = np.ma.array(np.arange(9), mask=[0, 1, 0] * 3); list(tc.data.ArrowDataset({"y": np.ones(9), "k": m}, label="y", categorical="k", fill_null_key=1).batches())
! tc.data.ArrayDataset({"a": np.ma.array([0, 1], mask=[0, 1])})
! tc.data.convert({"y": [0], "k": [{"a": 1}]}, path + "/t", label="y", categorical=["k"])
! tc.data.ArrowDataset({"y": ["a"]}, label="y")
tc.data.convert({"y": [0, 1] * 9, "k": [["a"], ["b", "c"]] * 9}, path + "/t", label="y", categorical=["k"], min_count=1, replace=True)
tc.data.convert_dataset(tc.data.Dataset(clicks), path + "/w", "raw", replace=True), tc.data.verify_dataset(tc.data.Dataset(clicks))
m = tc.utils.mkldnn.to_mkldnn(nn.Linear(3, 4)); m(tc.rand(2, 3)), repr(m), tc.utils.mkldnn.MkldnnLinear
d = tc.data.ArrayDataset({"a": [0, 1], "b": ([0, 1, 2], [0, 1, 3])}, dense={"x": [1, 2]}, labels=[0, 1]); [b["keys"] for b in d.batches(2, shuffle=True)], d.schema, d.like({"a": [0], "b": [[2]]}, dense=[3])
s = tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten); s.step(), s.evaluate(progress=lambda *of: None), s.predict(tc.data.Dataset(clicks)), s.summary(), copy.deepcopy(s.config)
s = tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten); s.steps, s.rows, s.loss, s.gradient_norm, s.nan_batches, s.is_whole, s.inputs, s.heads, s.schema, s.parameters(), s.tables(), [s.load_table(t, s.table_rows(t)) for t in s.tables()], [s.dump_table(t, path + f"/{t}.npz") for t in s.tables()], [s.load_table(t, path + f"/{t}.npz") for t in s.tables()], s.buffers(), s.frozen, s.freeze("deep"), s.unfreeze("deep")
s = tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten); b = next(iter(s.batches(tc.data.Dataset(clicks)))); s.forward_backward(b), s.gradients(), s.reduce(), s.update(), s.forward_backward(b), s.discard(), s.step(b), s.predict(b), s.evaluate([b]), s.compute(b, "loss"), s.optimizer_states()
s = tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten); s.learning_rate = s.learning_rate; s.learning_rate = None; s.load(s.save(path + "/s" + str(len(os.listdir(path)))))
d = tc.data.ArrayDataset({"a": [0, 1]}, labels=[0, 1]); s = tc.recsys.Session("dcn", d); s.step({"a": [0]}, [1]), s.predict({"a": [0, 1]}), s.evaluate(d), s.predict(d)
t = tc.recsys.Trainer("wdl", tc.data.Dataset(clicks), path + "/t" + str(len(os.listdir(path))), solver=ten, callbacks=[lambda p: t.stop()]); t.run(), t.step, t.checkpoint, t.metrics, t.result, t.session.steps; m = tc.recsys.load_model(t._folder); m.evaluate(tc.data.Dataset(clicks)), m.step, m.last_step, m.checkpoint; t.close(); u = tc.recsys.Trainer("wdl", tc.data.Dataset(clicks), path + "/t" + str(len(os.listdir(path))), solver=ten); u.warm_start(t._folder), u.close()
open(path + "/c.csv", "w").write("y,c\n" + "1,a\n0,b\n" * 9); d = tc.data.convert_csv(path + "/c.csv", path + "/q", label="y", categorical=["c"], min_count=1, test_every=0, replace=True).dataset; t = tc.recsys.Trainer("wdl", d, path + "/t" + str(len(os.listdir(path))), solver=ten); t.run(); m = tc.recsys.load_model(t._folder); m.predict_text(path + "/c.csv"), m.predict_text(path + "/c.csv", id="y"), m.predict(d, "train", id="c"); t.close()
r = tc.recsys.tune("wdl", tc.data.Dataset(clicks), path + "/t" + str(len(os.listdir(path))), search={"solver.lr": [0.1]}, trials=1, epochs=0.1, first_epochs=0.1, callback=lambda now: None, solver=ten, data={"validation": "held_out"}); tc.recsys.Trial(0, [], 0, None, 0, 0, ""), tc.recsys.TuneResult([], None), tc.recsys.TuneProgress(0, 1, 0, 1, 1.0, r.trials[0], None)
with tc.recsys.Trainer("wdl", tc.data.Dataset(clicks), path + "/t" + str(len(os.listdir(path))), solver=ten, callbacks=[tc.recsys.Callback()]) as t: t.run(), t.callbacks.clear()
c = tc.recsys.Callback(); p = tc.recsys.Progress("step", 1, 1, 1, 1.0, 1.0, 1.0, "", {}, ""); c(p), c.on_step(p), c.on_evaluation(p), c.on_checkpoint(p)
g = tc.recsys.Graph(sparse="a"); g.BinaryCrossEntropyLoss(g.InnerProduct(g.Reshape(g.SparseEmbedding("a")), num_output=1), "label"), g.add("ReLU", ["x"]); g.MLP, g.Interaction, g.WeightMultiply
tc.recsys.preset("wdl"), tc.recsys.preset_names(), tc.recsys.layer_types(), tc.recsys.resolve_config("wdl", solver={"lr": 1}), tc.recsys.Gradients({}, {}), tc.recsys.Model, tc.recsys.LoadedModel, tc.recsys.OptimizerStates({}, {})
m = hctr(path); m.fit(max_iter=2, display=1, eval_interval=1, snapshot=2, snapshot_prefix=path + "/h/m"), m.summary(), m.solver, m.layers, m.session, m.get_current_loss(), m.get_eval_metrics(), m.aucs_of_labels()
m = hctr(path); m.start_data_reading(), m.train(), m.eval(), m.set_learning_rate(0.1), m.get_learning_rate_scheduler().get_next(), m.reset_learning_rate_scheduler(1.0), m.get_learning_rate_scheduler().get_step(), m.check_out_tensor("logit", tc.hugectr.Tensor_t.Evaluate), m.export_predictions(path + "/p", path + "/l")
m = hctr(path); m.freeze_dense(), m.unfreeze_dense(), m.freeze_embedding("emb"), m.unfreeze_embedding(), m.graph_to_json(path + "/g.json"), tc.hugectr.Model(m.solver, hctr_reader(path)).construct_from_json(path + "/g.json", True), tc.hugectr.graph_json.read_graph(path + "/g.json", False), tc.hugectr.graph_json.write_graph
m = hctr(path); m.save_params_to_files(path + "/s"), m.load_dense_weights(path + "/s_dense_0.model"), m.load_sparse_weights([path + "/s0_sparse_0.model"]), m.load_dense_optimizer_states(path + "/s_opt_dense_0.model"), m.load_sparse_optimizer_states({"emb": path + "/s0_opt_sparse_0.model"})
m = hctr(path, collection=True, repeat_dataset=False); m.fit(num_epochs=1, eval_interval=1, snapshot=0), m.set_source(m.get_data_reader_train().sources), m.embedding_dump(path + "/d"), m.embedding_load(path + "/d", ["t"]), m.get_data_reader_eval().is_started(), m.get_data_reader_train().rows()
h = tc.hugectr; h.GroupDenseLayer(h.GroupLayer_t.GroupFusedInnerProduct, "a", ["b"], [1]).layers, h.DenseLayer(h.Layer_t.GRU, ["a"], ["b"]).to_json(), h.DataSource(h.DataSourceParams()).move_to_local(), h.HybridEmbeddingParam(), h.InitParams(h.Initializer_t.Uniform, 1.0), h.LearningRateScheduler
h = tc.hugectr; c = h.TrainingCallback(); c.on_training_start(), c.on_training_end(1), c.on_eval_start(1), c.on_eval_end(1, {}); h.evaluation.hit_rate([1.0], [1]), h.evaluation.ndcg([1.0], [1]), h.evaluation.smape([1.0], [1]), h.log.warning("words"), h.arguments.number_list([1], "a")
h = tc.hugectr; h.Activation_t, h.Alignment_t, h.AllReduceAlgo, h.Check_t, h.CommunicationStrategy, h.CommunicationType, h.CompressionStrategy, h.DataReaderSparse_t, h.DataReaderType_t, h.DataSourceType_t, h.DeviceLayout, h.Distribution_t, h.Embedding_t, h.FcPosition_t, h.FileSystemType_t, h.GroupLayer_t, h.HybridEmbeddingType, h.Initializer_t, h.Layer_t, h.LrPolicy_t, h.MetricsRawType, h.MetricsType, h.Optimizer_t, h.PowerLaw_t, h.Regularizer_t, h.Tensor_t, h.Update_t, h.AsyncParam, h.DataReaderSparseParam, h.DenseLayerComputeConfig, h.DenseLayerSwitchs(True), h.solver.bytes_of_row(4, {}), h.solver.states_of({}), h.arguments.one_of(1, None), h.OptParamsPy, h.Solver, h.Input, h.Model, h.SparseEmbedding, h.CreateOptimizer, h.sources.Files, h.sources.Reader, h.tables.Table, h.evaluation.Evaluation, h.DataGenerator, h.DataGeneratorParams, h.EmbeddingTableConfig, h.DataReaderParams, h.CreateSolver, h.embedding.Lookup
h = tc.hugectr; h.AsyncParam(num_threads=2).without_effect(), h.SparseEmbedding(h.Embedding_t.HybridSparseEmbedding, 1, 2, 'sum', 'e', 'k').without_effect(), h.DenseLayer(h.Layer_t.MLP, 'a', 'b').without_effect(), h.EmbeddingCollectionConfig().without_effect()
! tc.hugectr.CreateSolver(batchsize=0)
! tc.hugectr.CreateETC
! tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten).step({"a": [0]}, [1])
! tc.recsys.Session("wdl", tc.data.Dataset(clicks), solver=ten).evaluate(progress=lambda *of: 1 / 0)
! tc.recsys.Session("wdk", tc.data.Dataset(clicks))
! tc.recsys.Trainer("wdl", tc.data.Dataset(clicks), path + "/e" + str(len(os.listdir(path))), solver=ten, callbacks=[lambda p: 1 / 0]).run()
! tc.data.open_dataset(clicks).batches(batch_size=7, seeds=3)
! tc.data.open_dataset(clicks).batches(columns=["a"])
! tc.data.open_dataset(clicks).batches("valid")
! tc.data.open_dataset(path + "/none")
! tc.data.generate(path + "/g", rows=20, preset="small", replace=True, progress=lambda *of: 1 / 0)
! next(iter(tc.data.open_dataset(clicks).batches(start=3)))
! tc.data.Batch(0, 0, 0, 0, 0, x, x, [], [])["a"]
u = tc.utils.data; d = u.TensorDataset(x, v); list(u.DataLoader(d + d, batch_size=3, shuffle=True)), list(u.DataLoader(d, sampler=[1])), list(u.DataLoader(u.Subset(d, [1, 0]), 2)), u.random_split(d, [0.5, 0.5])
u = tc.utils.data; d = u.StackDataset(a=[1, 2], b=range(2)); list(u.DataLoader(d, batch_size=2, pin_memory=True)), d[0], u.StackDataset([1], [2])[0], list(u.DataLoader([1, 2], batch_size=None)), u.ConcatDataset([[1], [2]]).cummulative_sizes
u = tc.utils.data; l = u.DataLoader(Stream() + Stream(), batch_size=2); list(l), len(l), list(l), list(u.DataLoader(Stream(), batch_size=None)), u.ChainDataset([Stream()]), u.IterableDataset, u.Dataset
u = tc.utils.data; [list(s) for s in (u.SequentialSampler(v), u.RandomSampler(v, True, 3), u.RandomSampler(v), u.SubsetRandomSampler([1, 2]), u.WeightedRandomSampler([1.0, 2.0], 3), u.BatchSampler(range(5), 2, True))]
u = tc.utils.data; s = u.DistributedSampler(range(5), 2, 1); s.set_epoch(1), list(s), len(s), u.get_worker_info(), u.WorkerInfo(0, 1, 2, None), u.Sampler, s.num_samples, u.RandomSampler(v).num_samples
u = tc.utils.data; u.default_collate([{"a": x, "b": [1, "a"]}] * 2), u.default_convert({"a": [np.ones(2), (1, None)]}), u.default_collate([np.float32(1)]), u.default_collate([np.ones(2)]), u.ConcatDataset.cumsum([[1], [2, 3]])
u = tc.utils.data; l = u.DataLoader(u.TensorDataset(tc.rand(8, 2000)), batch_size=2, num_workers=1, multiprocessing_context="fork"); l.multiprocessing_context, [b.sum() for b, in l], next(iter(l)), l.check_worker_number_rationality()
! list(tc.utils.data.DataLoader([1, None], num_workers=1, multiprocessing_context="fork"))
! list(tc.utils.data.DataLoader([tc.rand(2), tc.rand(3)], batch_size=2))
! tc.utils.data.default_collate([{"a": 1}, {"a": None}])
! tc.utils.data.DataLoader([1], batch_size=0)
! tc.utils.data.Dataset()[0]
tc.from_dlpack(x), tc.utils.dlpack.from_dlpack(tc.utils.dlpack.to_dlpack(x)), tc.from_dlpack(x.numpy()), x.__dlpack__()
tc.from_arrow(x), tc.arrow.Array(x) if hasattr(tc.arrow, "Array") else None
xp.arange(3), xp.eye(2), xp.full((2,), 1), xp.linspace(0, 1, 3), xp.astype(x, tc.float64), xp.can_cast(tc.int8, tc.int16)
xp.isdtype(tc.int8, "integral"), xp.result_type(x, v), xp.broadcast_to(v, (2, 2)), xp.moveaxis(x, 0, 1)
xp.permute_dims(x, (1, 0)), xp.reshape(x, (4,)), xp.roll(x, 1), xp.fft.fftfreq(4), xp.fft.rfftfreq(4)
xp.linalg.cholesky(spd), xp.linalg.matrix_power(x, 2), xp.asarray(x) + 1, xp.asarray(x).T
(leaf * leaf).sum().backward(), tc.autograd.backward((leaf * 2).sum()), tc.autograd.grad((leaf * leaf).sum(), leaf)
tc.autograd.grad(tc.autograd.grad((leaf ** 3).sum(), leaf, create_graph=True)[0].sum(), leaf)
tc.autograd.gradcheck(lambda t: t * t, tc.rand(2, dtype=tc.float64, requires_grad=True))
tc.autograd.gradgradcheck(lambda t: t * t, tc.rand(2, dtype=tc.float64, requires_grad=True))
A.vjp(lambda t: t * 2, x, x), A.jvp(lambda t: t * 2, x, x), A.jacobian(lambda t: t * t, v), A.hessian(lambda t: (t ** 3).sum(), v)
A.hvp(lambda t: (t ** 3).sum(), v, v), A.vhp(lambda t: (t ** 3).sum(), v, v)
g = tc.autograd.graph.get_gradient_edge(leaf * 2); g.node, g.output_nr
h = tc.autograd.graph.register_multi_grad_hook([leaf], nothing); (leaf * 2).sum().backward(); h.remove()
with tc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t): (leaf * leaf).sum().backward()
with tc.autograd.graph.save_on_cpu(): (leaf * leaf).sum().backward()
with tc.autograd.graph.disable_saved_tensors_hooks("no"): (leaf * leaf).sum().backward()
with tc.autograd.detect_anomaly(): (leaf * leaf).sum().backward()
with tc.autograd.set_detect_anomaly(True): leaf * leaf
with tc.no_grad(), tc.enable_grad(), tc.inference_mode(), tc.set_grad_enabled(True): leaf * leaf
tc.no_grad()(lambda: 1)(), tc.inference_mode()(lambda: 1)(), tc.enable_grad()(lambda: leaf * 2)()
y = leaf * leaf; n = y.grad_fn; n.name(), n.next_functions, n._saved_self, n.metadata, n.next_functions[0][0].variable, dir(n)
y = leaf * 2; y.grad_fn.register_hook(nothing); y.grad_fn.register_prehook(nothing); y.sum().backward()
with fwAD.dual_level(): y = fwAD.make_dual(x, x) * 2; fwAD.unpack_dual(y).tangent, repr(y), fwAD.unpack_dual(x)
with fwAD.dual_level(): Double.apply(fwAD.make_dual(x, x)), Tripled.apply(fwAD.make_dual(x, x)), (fwAD.make_dual(leaf, x) ** 2).sum().backward()
with fwAD.dual_level(): fwAD.make_dual(leaf, x).exp()
fwAD.exit_dual_level(level=fwAD.enter_dual_level()), fwAD.UnpackedDualTensor(x, None)
! fwAD.make_dual(x, x)
! tc.autograd.gradcheck(lambda t: t * t, tc.rand(2, dtype=tc.float64, requires_grad=True), check_forward_ad=True, check_batched_grad=True)
tc.autograd.gradcheck(lambda t: t * t, tc.rand(2, dtype=tc.float64, requires_grad=True), check_forward_ad=True)
y = leaf * 2; y.register_hook(nothing); y.retain_grad(); y.sum().backward(); y.grad
Double.apply(leaf).sum().backward()
Double.apply(leaf)
! Failing.apply(leaf).sum().backward()
tc.jit.is_scripting(), tc.cuda.is_available(), tc.cuda.device_count()
m = nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2]); m(x, i).loss.backward(); m.log_prob(x), m.predict(x)
m = nn.MultiheadAttention(2, 1); m(three, three, three)[0].sum().backward(); m.eval()(three, three, three)
m = nn.Bilinear(2, 2, 3); m(x, x).sum().backward()
nn.Embedding(3, 2)(i).sum().backward(), nn.EmbeddingBag(3, 2)(i, tc.tensor([0])).sum().backward(), nn.Embedding.from_pretrained(x)(i)
nn.EmbeddingBag.from_pretrained(x)(i, tc.tensor([0])), nn.GroupNorm(1, 2)(image).sum().backward()
[m(three)[0].sum().backward() for m in (nn.RNN(2, 2), nn.LSTM(2, 2), nn.GRU(2, 2))]
[m(x) for m in (nn.RNNCell(2, 2), nn.LSTMCell(2, 2), nn.GRUCell(2, 2))]
m = nn.LSTM(2, 2); m.flatten_parameters(), m.all_weights, m.extra_repr(), m.get_expected_hidden_size(three, None)
nn.FractionalMaxPool2d(2, output_size=2)(image), nn.FractionalMaxPool3d(1, output_ratio=0.5)(tc.rand(1, 2, 4, 4, 4))
nn.TransformerEncoderLayer(2, 1, 4)(three).sum().backward(), nn.TransformerDecoderLayer(2, 1, 4)(three, three).sum().backward()
nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 4), 1)(three), nn.TransformerDecoder(nn.TransformerDecoderLayer(2, 1, 4), 1)(three, three)
nn.Transformer(2, 1, 1, 1, 4)(three, three), nn.Transformer.generate_square_subsequent_mask(3)
[f(tc.rand(1, 2, 4), 2) for f in (F.adaptive_avg_pool1d, F.adaptive_max_pool1d, F.adaptive_max_pool1d_with_indices)]
[f(image, 2) for f in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d, F.adaptive_max_pool2d_with_indices)]
[f(tc.rand(1, 1, 4, 4, 4), 2) for f in (F.adaptive_avg_pool3d, F.adaptive_max_pool3d, F.adaptive_max_pool3d_with_indices)]
F.batch_norm(image, v, v), F.embedding(i, x), F.embedding_bag(i, x, tc.tensor([0])), F.softmax(x, 0), F.log_softmax(x, 0), F.softmin(x, 0)
F.fractional_max_pool2d(image, 2, output_size=2), F.fractional_max_pool2d_with_indices(image, 2, output_size=2)
F.fractional_max_pool3d(tc.rand(1, 1, 4, 4, 4), 2, output_size=2), F.fractional_max_pool3d_with_indices(tc.rand(1, 1, 4, 4, 4), 2, output_size=2)
[(by_input((1, 1, *[4] * d), tc.rand(1, 1, *[2] * d), tc.rand(1, 1, *[3] * d))) for d, by_input in enumerate((nn.grad.conv1d_input, nn.grad.conv2d_input, nn.grad.conv3d_input), 1)]
[(by_weight(tc.rand(1, 1, *[4] * d), (1, 1, *[2] * d), tc.rand(1, 1, *[3] * d))) for d, by_weight in enumerate((nn.grad.conv1d_weight, nn.grad.conv2d_weight, nn.grad.conv3d_weight), 1)]
m = nn.Linear(2, 2); m.register_backward_hook(nothing); m(leaf).sum().backward()
__import__("tercel.autograd.gradcheck", fromlist=["gradcheck"]).get_analytical_jacobian([leaf], leaf * 2)
F.interpolate(image, scale_factor=2), F.upsample(image, scale_factor=2), F.upsample_nearest(image, scale_factor=2), F.upsample_bilinear(image, scale_factor=2)
F.multi_head_attention_forward(three, three, three, 2, 1, tc.rand(6, 2), tc.rand(6), None, None, False, 0.0, x, v)
nn.init.calculate_gain("relu"), nn.init.sparse_(x, 0.5), nn.init.uniform(x), nn.init.normal(x), nn.init.constant(x, 1.0), nn.init.eye(x)
nn.init.dirac(image), nn.init.orthogonal(x), nn.init.sparse(x, 0.5), nn.init.xavier_uniform(x), nn.init.xavier_normal(x), nn.init.kaiming_uniform(x)
nn.init.kaiming_normal(x)
U.convert_conv2d_weight_memory_format(nn.Conv2d(2, 2, 1), tc.channels_last), U.convert_conv3d_weight_memory_format(nn.Conv3d(2, 2, 1), tc.channels_last_3d)
U.fuse_conv_bn_eval(nn.Conv2d(2, 2, 1).eval(), nn.BatchNorm2d(2).eval()), U.fuse_linear_bn_eval(nn.Linear(2, 2).eval(), nn.BatchNorm1d(2).eval())
m = U.spectral_norm(nn.Linear(2, 2)); m(x).sum().backward(); U.remove_spectral_norm(m)
m = U.weight_norm(nn.Linear(2, 2)); m(x).sum().backward(); U.remove_weight_norm(m)
U.skip_init(nn.Linear, 2, 2), U.parametrizations.spectral_norm(nn.Linear(2, 2))(x).sum().backward(), U.parametrizations.weight_norm(nn.Linear(2, 2))(x)
m = nn.Linear(2, 2); U.parametrize.register_parametrization(m, "weight", nn.Tanh()); m(x).sum().backward(); U.parametrize.is_parametrized(m); U.parametrize.remove_parametrizations(m, "weight")
p = U.rnn.pack_padded_sequence(three, tc.tensor([3, 1])); U.rnn.pad_packed_sequence(p); nn.LSTM(2, 2)(p); U.rnn.unpack_sequence(p); p.to(tc.float64); p.double(), p.cpu(), p.is_cuda
U.stateless.functional_call(nn.Linear(2, 2), {"weight": x}, (x,)), U.clip_grad_norm_([leaf], 1.0), U.parameters_to_vector([leaf])
U.vector_to_parameters(tc.rand(4), [tc.rand(2, 2)]), U.clip_grad_value_([leaf], 1.0)
[stepped(o) for o in (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.RMSprop, optim.Adadelta, optim.Adamax)]
[stepped(o) for o in (optim.NAdam, optim.RAdam, optim.ASGD, optim.Rprop, optim.Ftrl)]
o = optim.LBFGS([leaf], max_iter=2); o.step(loss_of(leaf)); o.load_state_dict(o.state_dict())
[scheduled(S.LambdaLR, lambda e: 0.5), scheduled(S.MultiplicativeLR, lambda e: 0.5), scheduled(S.StepLR, 2), scheduled(S.MultiStepLR, [2])]
[scheduled(S.ConstantLR), scheduled(S.LinearLR), scheduled(S.ExponentialLR, 0.5), scheduled(S.PolynomialLR), scheduled(S.CosineAnnealingLR, 3)]
[scheduled(S.CosineAnnealingWarmRestarts, 2), scheduled(S.OneCycleLR, 1.0, 10), scheduled(S.CyclicLR, 0.1, 1.0), scheduled(W.SWALR, 0.1)]
o = stepped(optim.SGD); s = S.SequentialLR(o, [S.ConstantLR(o), S.StepLR(o, 2)], [2]); s.step(); s.load_state_dict(s.state_dict())
o = stepped(optim.SGD); s = S.ChainedScheduler([S.ConstantLR(o), S.StepLR(o, 2)]); s.step(); s.load_state_dict(s.state_dict()); s.get_last_lr()
o = stepped(optim.SGD); s = S.ReduceLROnPlateau(o); s.step(1.0); s.load_state_dict(s.state_dict())
m = W.AveragedModel(nn.Linear(2, 2)); m.update_parameters(nn.Linear(2, 2)); m(x); W.update_bn([x], nn.BatchNorm1d(2))
tc.testing.make_tensor((2,), dtype=tc.float32, device="cpu"), tc.testing.assert_close(x, x)
tc.utils.checkpoint.checkpoint(lambda t: t * t, leaf, use_reentrant=False).sum().backward()
tc.utils.checkpoint.checkpoint(lambda t: t * t, leaf, use_reentrant=True).sum().backward()
tc.utils.checkpoint.checkpoint_sequential([nn.Linear(2, 2), nn.Tanh()], 2, leaf, use_reentrant=False).sum().backward()
tc.utils.checkpoint.detach_variable((leaf,))
x[0], x[:, 1], x[..., None], x[x > 0.3], x[i], x[[0, 1]], x[i, i], x[tc.tensor([True, False])], x[-1:, ::2]
x[0] = 1; x[:, 1] = v; x[x > 0.3] = 2.0; x[i] = x.clone(); x[[0, 1], [1, 0]] = v; x[...] = 0
! x["a"]
! x[5]
! x[0, 0, 0]
! x[0] = tc.rand(3)
! x[tc.tensor([9])]
x + x, x - 1, 2 * x, x / x, x // 1, x % 1, x ** 2, x @ x, -x, +x, abs(x), 1 - x, 1 / x, 2 ** x, 3 // x, 5 % x, x == x, x != 1, x < 1, x <= x, x > x, x >= 1
i & i, i | 1, i ^ i, i << 1, i >> 1, ~i, 1 & i, 1 | i, 1 ^ i, divmod(x, 2) if hasattr(x, "__divmod__") else None
x += 1; x -= x; x *= 2; x /= 3; x //= 1; x %= 2; x **= 2; i &= 1; i |= 1; i ^= 1; i <<= 1; i >>= 1
! x + "a"
! x @ v[:1]
! x += "a"
float(x[0, 0]), int(i[1]), bool(i[0]), complex(x[0, 0]), len(x), list(x), hash(x), repr(x), str(leaf), format(x[0, 0], ".2f"), 0.5 in x, x.tolist()
! float(x)
! len(x[0, 0])
! bool(x)
copy.copy(x), copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf)), copy.deepcopy(nn.Linear(2, 2)), pickle.loads(pickle.dumps(tc.Size((1, 2))))
y = x.clone(); y.note = y; y.other = [1]
y = Sub(x); y.note = y; del y
tc.tensor([1, 2]), tc.tensor([[1.0], [2.0]]), tc.tensor(1j), tc.as_tensor(x.numpy()), tc.from_numpy(x.numpy()), tc.asarray([1]), tc.tensor(x), tc.Tensor([1.0]), tc.Tensor(2, 2)
! tc.tensor([[1], [1, 2]])
! tc.tensor("a")
! tc.tensor([1, "a"])
! tc.from_numpy(np.array(["a"]))
! tc.zeros(2**62, 2**62)
! tc.zeros(2**50)
! tc.zeros(-1)
memoryview(x.numpy()), np.asarray(x), np.array(x), np.from_dlpack(x), x.numpy().sum(), tc.frombuffer(bytes, dtype=tc.uint8), np.add(x.numpy(), 1)
s = x.untyped_storage(); s.nbytes(), s.data_ptr(), s[0], s[:2], list(s)[:1], s.tolist(), s.clone(), s.copy_(s), len(s), repr(s), s.fill_(0), s.is_shared()
s = x.storage(); s.size(), s[0], s.tolist(), s.float(), s.double(), s.clone(), s.data_ptr(), s.dtype, repr(s), len(s), s.nbytes()
t = tc.Generator(); t.manual_seed(3), t.seed(), t.initial_seed(), t.get_state(), t.set_state(t.get_state()), t.device; tc.rand(2, generator=t)
tc.device("cpu"), tc.device("cuda", 0) == tc.device("cpu"), repr(tc.device("cpu")), hash(tc.device("cpu")), tc.device("cpu").type, tc.device("cpu").index
! tc.device("moon")
tc.Size((1, 2)).numel(), tc.Size([3]) + (1,), tc.Size((1, 2))[1:], tc.Size((1,)) * 2, repr(tc.Size((1,))), x.shape
! tc.Size("ab")
with tc.fork_rng(): tc.rand(1)
! with warnings.catch_warnings(): warnings.simplefilter("error"); tc.add(x, x, out=tc.empty(3))
x.map_(x, lambda a, b: a + b) if hasattr(x, "map_") else None
x.apply_(lambda a: a * 2) if hasattr(x, "apply_") else None
! x.apply_(lambda a: "no")
tc.nonzero(x, as_tuple=True), tc.split(x, 1), tc.unbind(x), tc.broadcast_tensors(x, v), tc.unique(i, return_counts=True), tc.topk(x, 1), tc.svd(x)
x.data = v; leaf.grad = tc.ones(2, 2); leaf.grad = None; x.requires_grad = True; x.requires_grad = False
! x.grad = tc.ones(3)
! x.grad = "a"
! x.dtype = 3
! x.shape = 3
with tc.utils.checkpoint.set_checkpoint_debug_enabled(False) if hasattr(tc.utils.checkpoint, "set_checkpoint_debug_enabled") else tc.no_grad(): pass
[every(o) for o in (x, leaf * 2, (leaf * 2).grad_fn, x.untyped_storage(), x.storage(), tc.Generator(), tc.float32, tc.finfo(tc.float32), tc.iinfo(tc.int8), tc.device("cpu"), x.T, nn.Linear(2, 2), nn.LazyLinear(2), x.shape)]
leaf.register_post_accumulate_grad_hook(nothing); (leaf * 2).sum().backward()
x.as_subclass(Sub), x.to_device("cpu"), x.new_tensor([1]), x.new([1]), x.storage_type(), x.is_shared(), x.map2_(x, x, lambda a, b, c: a)
x.pin_memory() if tc.cuda.is_available() else None
s = x.untyped_storage(); s.untyped(), s.cpu(), s.element_size(), s.is_pinned(), s.type(), tc.UntypedStorage.from_buffer(bytes, "little", dtype=tc.float32), s.size()
t = tc.ones(4); t.storage().note = 1; t.view(tc.int32).storage(), t.storage().untyped(); s = t.storage(); del t; s.note, s.tolist()
s = x.storage(); s.device, s.untyped(), s.element_size(), s.is_shared(), s.is_pinned(), s.cpu(), s.pickle_storage_type(), s.resizable(), s.fill_(1), s.copy_(s), s.resize_(4), s.type()
s = tc.UntypedStorage.from_file(path + "/a.raw", True, 16); t = tc.FloatStorage.from_file(path + "/a.raw", True, 4); t.from_buffer(bytes, "little")
s = tc.UntypedStorage(8); s.resizable(), s.clone(), s.nbytes(), tc.FloatStorage([1.0]), tc.FloatStorage(3)
Marked.apply(leaf)[0].sum().backward(), Vjp.apply(leaf).sum().backward()
! tc.autograd.Function.apply(x)
! tc.autograd.Function.forward(None, x)
! tc.autograd.Function.backward(None, x)
! tc.autograd.Function.jvp(None, x)
! tc.autograd.Function.vjp(None, x)
! tc.autograd.Function.setup_context(None, (x,), x)
m = nn.LSTM(2, 2); m.permute_hidden((tc.rand(1, 2, 2), tc.rand(1, 2, 2)), i), nn.GRU(2, 2).permute_hidden(tc.rand(1, 2, 2), i), m.get_expected_cell_size(three, None)
m = nn.Linear(2, 2); m.extra_repr(), nn.Module().extra_repr(), nn.Dropout().extra_repr(), repr(nn.Transformer(2, 1, 1, 1, 4))
y = leaf * 2; y.grad_fn.metadata["k"] = 1; z = Double.apply(leaf); z.grad_fn.metadata["k"] = 1
tc.get_default_dtype(), tc.UntypedStorage(4).resize_(8), tc.UntypedStorage(4).fill_(1), tc.UntypedStorage(4).copy_(tc.UntypedStorage(4))
tc.float32.to_complex(), tc.complex64.to_real(), tc.float32.is_signed, x.shape.numel(), x.item if False else x[0, 0].item(), tc.Generator().clone_state()
! tc.Node()
! tc.cuda.init()
tc.jit.script(nothing), tc.jit.trace(nothing, x), tc.jit.wait(tc.jit.fork(nothing)), tc.jit.freeze(nn.Tanh().eval()), tc.jit.Error()
tc.jit.isinstance([x], list[tc.Tensor]), tc.jit.TracerWarning(), tc.jit.strict_fusion().__enter__()
! tc.jit.CompilationUnit()
! tc.jit.RecursiveScriptModule()
tc.compile(nn.Tanh())(x), tc._dynamo.optimize()(nothing), tc._dynamo.graph_break(), tc._dynamo.mark_dynamic(x, 0), tc._dynamo.mark_static(x)
nn.parallel.replicate(nn.Tanh(), []), nn.parallel.scatter([1, {"a": None}], ["cpu"]), nn.parallel.gather([None], "cpu")
! nn.parallel.parallel_apply([nn.Tanh()], [x])
! nn.parallel.scatter(x, ["cpu"])
! tc.autograd.profiler.emit_nvtx().__enter__()
! tc.autograd.profiler.emit_itt().__enter__()
! tc.autograd.profiler.load_nvprof(path)
tc.jit.optimize_for_inference(nn.Tanh()), tc.torch_version.TorchVersion("2.1") < (2, 2)
! tc.jit.save(nn.Tanh(), path + "/a")
! tc.jit.load(path + "/a")
! x.share_memory_()
! x.cuda()
! nn.Linear(1, 1).cuda()
! nn.Linear(1, 1).share_memory()
! nn.parallel.DistributedDataParallel(nn.Tanh())
d = tc.distributed; d.is_available(), d.is_backend_available("mpi"), d.is_initialized(), d.is_mpi_available(), d.is_nccl_available(), d.is_gloo_available(), d.is_ucc_available(), d.is_xccl_available(), d.is_torchelastic_launched(), d.get_node_local_rank(0)
d = tc.distributed; d.init_process_group(); g = d.group.WORLD; d.GroupMember.WORLD is g, d.get_rank(), d.get_world_size(), d.get_backend(), d.Backend("MPI"), d.get_process_group_ranks(g), d.get_global_rank(g, 0), d.get_group_rank(g, 0), g.rank(), g.size(), g.name(), d.destroy_process_group()
d = tc.distributed; d.init_process_group(); [d.all_reduce(x, op) for op in (d.ReduceOp.SUM, d.ReduceOp.AVG)], d.broadcast(x, 0), d.reduce(x, 0), d.all_gather([v], v), d.all_gather_into_tensor(v, v), d.gather(v, [v]), d.scatter(v, [v]), d.barrier(), d.monitored_barrier(), d.destroy_process_group()
d = tc.distributed; d.init_process_group(); w = d.all_reduce(x.t(), async_op=True); w.wait(), w.is_completed(), w.is_success(), w.exception(), d.reduce_scatter(v, [v]), d.reduce_scatter_tensor(v, v), d.all_to_all([v], [v]), d.all_to_all_single(v, v + 1), d.destroy_process_group()
d = tc.distributed; d.init_process_group(); o = [None]; d.all_gather_object(o, "a"), d.broadcast_object_list(o), d.gather_object("a", o), d.scatter_object_list(o, ["a"]), d.destroy_process_group()
d = tc.distributed; d.init_process_group(); m = nn.parallel.DistributedDataParallel(nn.Linear(2, 2)); m(x).sum().backward(), m.no_sync().__enter__(), d.destroy_process_group()
! nn.parallel.DistributedDataParallel.join(None)
! nn.parallel.DistributedDataParallel.register_comm_hook(None, None, None)
! tc.distributed.new_group()
! tc.distributed.new_subgroups()
! tc.distributed.send(x, 0)
! tc.distributed.recv(x, 0)
! tc.distributed.isend(x, 0)
! tc.distributed.irecv(x, 0)
! tc.multiprocessing.set_sharing_strategy("none")
m = nn.Sequential(nn.Linear(2, 2)); m.compile(); m.set_submodule("0", nn.Tanh()); nn.parallel.data_parallel(m, x), nn.attention.SDPBackend.MATH
with tc.amp.autocast("cpu", enabled=False): tc.amp.is_autocast_available("cpu")
tc.set_autocast_enabled("cpu", False), tc.set_autocast_dtype("cpu", tc.get_autocast_dtype("cpu")), tc.set_autocast_cache_enabled(True)
tc.set_autocast_cpu_enabled(False), tc.set_autocast_cpu_dtype(tc.bfloat16), tc.set_autocast_gpu_dtype(tc.float16)
s = tc.amp.GradScaler("cpu"); o = optim.SGD([leaf], 0.1); s.scale([(leaf * leaf).sum()])[0].backward(); s.unscale_(o), s.step(o), s.update(), s.load_state_dict(s.state_dict())
s = tc.amp.GradScaler("cpu"); s.is_enabled(), s.get_scale(), s.set_growth_factor(s.get_growth_factor()), s.set_backoff_factor(s.get_backoff_factor()), s.set_growth_interval(s.get_growth_interval())
o = optim.SGD([leaf], 0.1); o.register_step_pre_hook(nothing_fits), o.register_step_post_hook(nothing_fits), o.register_state_dict_pre_hook(nothing_fits)
o = optim.SGD([leaf], 0.1); o.register_state_dict_post_hook(nothing_fits), o.register_load_state_dict_pre_hook(nothing_fits), o.register_load_state_dict_post_hook(nothing_fits)
o = optim.SGD([leaf], 0.1); h = o.register_step_post_hook(lambda *a: None); leaf.grad = tc.ones(2, 2); o.step(); h.remove()
with tc.autograd.profiler.profile() as p, tc.autograd.profiler.record_function("part"): (leaf * leaf).sum().backward()
with tc.autograd.profiler.profile() as p: tc.autograd.profiler.record_function("part")(nothing)()
p = tc.autograd.profiler.profile(); p.__enter__(); x + x; p.__exit__(); p.table(), p.key_averages().table(sort_by="count"), p.total_average(), p.self_cpu_time_total, p.events()[0].time_range.elapsed_us()
p = tc.autograd.profiler.profile(); p.__enter__(); x + x; p.__exit__(); p.export_chrome_trace(path + "/t.json"), tc.autograd.profiler.FunctionEventAvg().add(p.events()[0]), repr(p), str(p)
P = tc.profiler; p = P.profile(schedule=P.schedule(wait=0, warmup=0, active=1), activities=[P.ProfilerActivity.CPU]); p.start(), x + x, p.step(), p.stop(), p.events(), p.key_averages()
P = tc.profiler; p = P.profile(); p.start(); p.add_metadata("a", "b"), p.add_metadata_json("c", "[1]"), p.toggle_collection_dynamic(False, [P.ProfilerActivity.CPU]); p.stop(); p.export_chrome_trace(path + "/t.json")
! tc.profiler.profile().export_stacks(path)
P = tc.profiler; p = P.profile(on_trace_ready=P.tensorboard_trace_handler(path, "w")); p.start(); x + x; p.stop(); p.export_chrome_trace(path + "/t.json"), P.ProfilerAction.NONE
[repr(m) for m in (nn.Bilinear(2, 2, 3), nn.Embedding(3, 2), nn.EmbeddingBag(3, 2), nn.GroupNorm(1, 2), nn.RNNCell(2, 2), nn.LSTM(2, 2))]
nn.RNNBase("LSTM", 2, 2), nn.RNNCellBase(2, 2, True, 4)
! x.eig()
! x.lstsq(x)
! x.solve(x)
x.symeig() if hasattr(x, "symeig") else None
! tc.eig(x)
! tc.lstsq(x, x)
! tc.matrix_rank(x)
! tc.solve(x, x)
m = nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2]); m.reset_parameters(), repr(m)
m = nn.ModuleDict({"a": nn.ReLU()}); m["b"] = nn.Tanh(); m.keys(), m.items(), m.values(), m.update({"c": nn.ReLU()}), m.pop("a"), m.clear(), len(m)
m = nn.ModuleList([nn.ReLU()]); m.append(nn.Tanh()), m.extend([nn.ReLU()]), m.insert(0, nn.ReLU()), m[0], m[:1], m.pop(0), list(m), repr(m)
m = nn.Sequential(nn.ReLU()); m.append(nn.Tanh()), m.extend([nn.ReLU()]), m.insert(0, nn.ReLU()), m[0], m[:1], m.pop(0), list(m), repr(m), m(x)
m = nn.ParameterList([leaf]); m.append(x), m.extend([v]), m[0], list(m), repr(m)
m = nn.ParameterDict({"a": leaf}); m.keys(), m.values(), m.items(), m.get("a"), m.update({"b": x}), m.pop("a"), m.clear(), repr(m)
m = nn.Sequential(nn.Linear(2, 2), nn.Tanh()); m.register_module("k", nn.ReLU()); m.get_submodule("0"), m.get_parameter("0.weight"), m.apply(nothing), m.type(tc.float32), m.float()
m = nn.Linear(2, 2); m.double(), m.half(), m.bfloat16(), m.float(), m.cpu(), m.to(tc.float64), m.requires_grad_(), m.zero_grad(), m.train(), m.eval()
m = nn.BatchNorm1d(2); m.get_buffer("running_mean"), m.state_dict(), m.load_state_dict(m.state_dict()), m.reset_running_stats(), m.reset_parameters(), copy.deepcopy(m), m.to(tc.float16)
m = nn.Linear(2, 2); m.register_forward_hook(nothing); m.register_forward_pre_hook(nothing); m.register_full_backward_hook(nothing); m.register_full_backward_pre_hook(nothing); m(leaf).sum().backward()
m = nn.Linear(2, 2); m.register_state_dict_pre_hook(nothing); m.register_load_state_dict_pre_hook(nothing); m.register_load_state_dict_post_hook(nothing); m.load_state_dict(m.state_dict())
m = nn.Linear(2, 2); h = m.register_forward_hook(nothing); h.remove(); m.register_buffer("b", x); m.register_parameter("p", nn.Parameter(x)); list(m.named_modules()), list(m.named_buffers()), del_(m, "b")
! nn.Linear(2, 2).load_state_dict({"weight": x, "other": x})
! nn.Linear(2, 2)(tc.rand(3))
! nn.Linear(2, 2).get_submodule("moon")
! nn.Module().get_extra_state()
! nn.Module().set_extra_state(1)
! nn.Module()(x)
m = nn.Linear(2, 2); U.parametrize.register_parametrization(m, "weight", Invertible()); m.weight = x; m(x); m.parametrizations.weight.right_inverse(x)
with U.parametrize.cached(): m = U.parametrizations.weight_norm(nn.Linear(2, 2)); m(x), m(x)
p = U.rnn.pack_sequence([three[0], three[1, :1]]); p.float(), p.half(), p.long(), p.int()
m = U.spectral_norm(nn.Linear(2, 2)); m(x); m.load_state_dict(m.state_dict()), pickle.loads(pickle.dumps(m.state_dict())), copy.deepcopy(nn.Linear(2, 2))
! optim.Optimizer([leaf], {}).step()
! optim.lr_scheduler.LRScheduler(optim.SGD([leaf], 0.1)).step()
! optim.SGD([x * leaf], 0.1)
! optim.SGD([], 0.1)
! optim.Adam([leaf], betas=(2, 3))
! tc.load(path + "/none.pt")
! tc.load(__import__("io").BytesIO(b"no file"))
! tc.io.load_npy(path)
! tc.safetensors.load(b"12345678901")
! tc.save({"a": object()}, path + "/bad.pt")
! tc.save([loop()], path + "/bad.pt")
! tc.from_dlpack(3)
! tc.from_arrow(3)
! tc.autograd.grad(x.sum(), leaf)
! tc.autograd.grad((leaf * 2), leaf)
! tc.autograd.gradcheck(lambda t: t.detach() * t, tc.rand(2, dtype=tc.float64, requires_grad=True))
! tc.testing.assert_close(x, x + 1)
! tc.utils.checkpoint.checkpoint(nothing_fits, leaf, use_reentrant=False)
y = leaf * leaf; z = y.sum(); z.backward(); del z
! y = leaf * leaf; y.sum().backward(); y.sum().backward()
! y = leaf.exp(); z = y.exp(); y.add_(1); z.sum().backward()
! leaf.add_(1)
! leaf.numpy()
h = leaf.register_hook(raising); (leaf * 2).sum()
! leaf.register_hook(raising); (leaf * 2).sum().backward()
! with tc.autograd.graph.saved_tensors_hooks(raising, raising): leaf * leaf
with tc.autograd.graph.saved_tensors_hooks(nothing, raising): leaf * leaf
! with tc.autograd.graph.saved_tensors_hooks(lambda t: t, raising): (leaf * leaf).sum().backward()
! with tc.autograd.detect_anomaly(): (leaf.detach().requires_grad_() * float("nan")).sqrt().sum().backward()
! with tc.autograd.graph.disable_saved_tensors_hooks("no"), tc.autograd.graph.save_on_cpu(): leaf * leaf
! tc.linalg.inv(tc.zeros(2, 2))
! tc.linalg.cholesky(-spd)
y = leaf; ys = [y := (y * 1.01) for _ in range(500)]; ys[-1].sum().backward(); del ys, y
y = leaf; y = [y := (y * 1.01) for _ in range(500)][-1]
a = leaf * 1; a[0] = v; b = a.view(4); b.mul_(2); a.sum().backward()
x.refers = [x]; x.refers[0] is x
w = __import__("weakref").ref(leaf); w()
t = threading.Thread(target=lambda: (leaf * leaf).sum().backward()); t.start(); t.join()
"""


class Tripled(tc.autograd.Function):
    """A function with jvp(), whose context saves its input for it."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_forward(t)
        ctx.note = [ctx]
        return t * 3

    @staticmethod
    def jvp(ctx, tangent):
        (t,) = ctx.saved_tensors
        return tangent * 3 + t * 0


class Double(tc.autograd.Function):
    """A function whose context saves its input."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        ctx.note = [ctx]
        return t * 2

    @staticmethod
    def backward(ctx, grad):
        (t,) = ctx.saved_tensors
        return grad * 2 + t * 0


class Marked(tc.autograd.Function):
    """A function that changes its input and has an output without gradient."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_forward(t)
        t = t.clone()
        ctx.mark_non_differentiable(t)
        ctx.set_materialize_grads(False)
        ctx.mark_dirty()
        return t * 2, t

    @staticmethod
    def backward(ctx, grad, _):
        assert ctx.saved_variables == ()
        return grad * 2


class Vjp(tc.autograd.Function):
    """A function with setup_context() and vjp()."""

    @staticmethod
    def forward(t):
        return t * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx, grad):
        return grad * 2


class Invertible(nn.Module):
    """A parametrization that may be assigned to."""

    def forward(self, t):
        return t * 2

    def right_inverse(self, t):
        return t / 2


class Failing(tc.autograd.Function):
    """A function whose backward raises."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t.clone()

    @staticmethod
    def backward(ctx, grad):
        raise KeyError("no")


class Sub(tc.Tensor):
    """A tensor subclass."""


def nothing(*_):
    """A hook."""


def raising(*_):
    """A hook that fails."""
    raise KeyError("no")


def nothing_fits(t):
    """A part that fails."""
    return t @ tc.rand(7)


class Stream(tc.utils.data.IterableDataset):
    """Three numbers."""

    def __iter__(self):
        return iter(range(3))

    def __len__(self):
        return 1


def loop():
    """A list that contains itself."""
    made = []
    made.append(made)
    return made


def every(thing):
    """Reads every public attribute that can be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dir(thing):
            if not name.startswith("__"):
                try:
                    getattr(thing, name)
                except (AttributeError, RuntimeError, NotImplementedError, TypeError):
                    pass


def stepped(kind, *args):
    """An optimizer that takes a step and loads its previous state."""
    p = tc.rand(2, requires_grad=True)
    o = kind([{"params": [p]}], lr=0.1, *args)
    o.add_param_group({"params": [tc.rand(1, requires_grad=True)]})
    (p * p).sum().backward()
    o.step(lambda: 1.0) if kind is optim.SGD else o.step()
    o.zero_grad()
    o.load_state_dict(o.state_dict())
    repr(o)
    return o


def scheduled(kind, *args):
    """A schedule that takes a step and loads its previous state."""
    p = tc.rand(2, requires_grad=True)
    o = optim.SGD([p], lr=0.1, momentum=0.9)
    s = kind(o, *args)
    o.step(), s.step(), s.get_last_lr(), s.load_state_dict(s.state_dict())
    return s


def weights(path):
    """The path of a file with a tensor x."""
    tc.safetensors.save_file({"x": tc.rand(2, 2)}, f"{path}/w.st")
    return f"{path}/w.st"


def clicks(path):
    folder = f"{path}/clicks"
    if not os.path.exists(folder):
        tc.data.generate(folder, rows=40, preset="small")
    return folder


def hctr_reader(path):
    """The files of hctr()."""
    hugectr = tc.hugectr
    files = {"source": f"{path}/hctr.txt", "eval_source": f"{path}/hctr_eval.txt"}
    if not os.path.exists(files["source"]):
        hugectr.DataGenerator(hugectr.DataGeneratorParams(
            hugectr.DataReaderType_t.Norm, 1, 1, 2, True, slot_size_array=[3, 4], num_files=1, eval_num_files=1,
            num_samples_per_file=20, **files)).generate()
    return hugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, check_type=hugectr.Check_t.Sum, **files)


def hctr(path, collection=False, **options):
    """A compiled model in HugeCTR's language."""
    hugectr = tc.hugectr
    solver = hugectr.CreateSolver(batchsize=10, batchsize_eval=10, max_eval_batches=1, i64_input_key=True, **options)
    optimizer = hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local)
    model = hugectr.Model(solver, hctr_reader(path), optimizer)
    model.add(hugectr.Input(1, "label", 1, "dense", [hugectr.DataReaderSparseParam("keys", 1, True, 2)]))
    if collection:
        tables = hugectr.EmbeddingCollectionConfig()
        tables.embedding_lookup([hugectr.EmbeddingTableConfig("t", 7, 2)], ["keys"], "emb", ["sum"])
        tables.shard([["t"]], [("mp", ["t"])])
        model.add(tables)
    else:
        kind = hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash
        model.add(hugectr.SparseEmbedding(kind, 1, 2, "sum", "emb", "keys", [3, 4], optimizer))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, "emb", "flat", leading_dim=4))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, "flat", "logit"))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss, ["logit", "label"], "loss"))
    model.compile()
    return model


def loss_of(leaf):
    """A closure for an optimizer: computes a loss and its gradient."""
    def loss():
        leaf.grad = None
        value = (leaf * leaf).sum()
        value.backward()
        return value
    return loss


def names(path):
    """Names available to the lines, with new samples each time."""
    return {
        **fresh(), "path": str(path), "weights": weights(path), "clicks": clicks(path), "tc": tc, "nn": nn, "F": nn.functional, "U": nn.utils,
        "xp": tc.array_api, "np": np, "A": tc.autograd.functional, "S": optim.lr_scheduler, "W": optim.swa_utils, "optim": optim,
        "warnings": warnings, "copy": copy, "pickle": pickle, "threading": threading, "del_": delattr, "Double": Double,
        "Failing": Failing, "Tripled": Tripled, "fwAD": fwAD, "Marked": Marked, "Vjp": Vjp, "Invertible": Invertible, "Sub": Sub, "nothing": nothing,
        "raising": raising, "loop": loop, "nothing_fits": nothing_fits, "every": every, "stepped": stepped, "scheduled": scheduled,
        "loss_of": loss_of, "os": os, "ten": {"batchsize": 10}, "Stream": Stream,
        "hctr": hctr, "hctr_reader": hctr_reader,
    }


def lines():
    """(text, code, must fail) of every line."""
    for text in LINES.strip().splitlines():
        fails = text.startswith("! ")
        text = text[2 * fails:]
        yield text, compile(text, text, "exec"), fails
